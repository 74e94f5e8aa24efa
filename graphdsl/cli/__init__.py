"""The command line: one module a command, and what they share. Only here is anything printed."""
