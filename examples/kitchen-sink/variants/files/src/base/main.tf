# Nothing to make.
