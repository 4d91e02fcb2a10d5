"""Questions about the method that are no contest between methods: each a file here and one in conf/experiments."""
