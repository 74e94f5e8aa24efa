"""How deep the nesting of a program's text may be (grammars/README.md, "Limits")."""

MAX_BLOCKS = 256
MAX_LOOPS = 32
