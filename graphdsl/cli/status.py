"""Exit statuses, and what ends a command otherwise than by an error of the program or of the command line."""

from __future__ import annotations

from graphdsl.source.diagnostic import Fault

DONE = 0
WRONG_PROGRAM = 1  # also where what is fed does not fit it
WRONG_USAGE = 2  # also where what is fed cannot be read
DIFFERS = 3
FAULT = 70  # graphdsl itself failed (EX_SOFTWARE)
INTERRUPTED = 130


class Failed(Exception):
    """What the command does after the run failed: a fault that has no place in the program."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault
