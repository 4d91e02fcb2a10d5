"""The search of a method: strategies, trials, journal, and workers on Ray."""
