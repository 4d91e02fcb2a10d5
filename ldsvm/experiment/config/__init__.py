"""What an experiment file may say: schema, reading, merging, search spaces."""
