"""The comparison of methods: who runs, the one judge, and what is kept of it."""
