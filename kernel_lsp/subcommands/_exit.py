"""Exit codes, the same for every command."""

RAN = 0
FOUND = 1
BAD_INPUT = 2
FAULT = 3
INTERRUPTED = 130
