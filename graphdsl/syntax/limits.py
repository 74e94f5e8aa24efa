"""How deep the nesting of a program's text may be (language.md §1)."""

MAX_BLOCKS = 256
MAX_LOOPS = 32
