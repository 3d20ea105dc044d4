"""The command line: one module for each command, data to standard output, words to standard error."""
