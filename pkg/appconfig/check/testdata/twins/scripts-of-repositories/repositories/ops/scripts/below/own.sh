# a directory of its own
