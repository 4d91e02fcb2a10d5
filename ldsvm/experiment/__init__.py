"""Run an experiment that a YAML file describes: configuration, trials, search, judge, tracking. No Prefect here."""
