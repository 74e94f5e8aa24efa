"""Exit statuses."""

DONE = 0
WRONG_PROGRAM = 1
WRONG_USAGE = 2
DIFFERS = 3
FAULT = 70  # graphdsl itself failed (EX_SOFTWARE)
INTERRUPTED = 130
