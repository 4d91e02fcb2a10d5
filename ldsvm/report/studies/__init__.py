"""Studies of the method itself, without a contest of methods: for each a file here and one in conf/experiments."""
