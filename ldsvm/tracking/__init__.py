"""All that is said to MLflow: runs, models, and the store they lie in."""
