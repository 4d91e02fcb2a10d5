"""Everything that uses MLflow: runs, models, and the store that holds them."""
