"""How a program can be run, by name. (A module of its own: the command line asks before anything else is loaded.)"""

from __future__ import annotations

MODES = ("eager", "graph")
