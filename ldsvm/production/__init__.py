"""A model in use: new rows, drift, the gate, promotion, the registry and scoring."""
