"""Exit statuses."""

DONE = 0
WRONG_PROGRAM = 1  # also where what is fed does not fit it
WRONG_USAGE = 2  # also where what is fed cannot be read
DIFFERS = 3
FAULT = 70  # graphdsl itself failed (EX_SOFTWARE)
INTERRUPTED = 130
