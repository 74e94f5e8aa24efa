"""GDL, a language for computation graphs: `graphdsl.load(path).run()`. See `graphdsl.api`."""

from __future__ import annotations

TYPE_CHECKING = False  # to type checkers it is true; an import here would come before Ctrl-C is taken care of
if TYPE_CHECKING:
    from graphdsl.api import ProgramError as ProgramError
    from graphdsl.api import UnknownName as UnknownName
    from graphdsl.api import load as load
    from graphdsl.api import loads as loads

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # The command line imports this package and not the API: nothing is loaded here.
    if name in ("ProgramError", "UnknownName", "load", "loads"):
        from graphdsl import api

        return getattr(api, name)
    raise AttributeError(f"module 'graphdsl' has no attribute '{name}'")
