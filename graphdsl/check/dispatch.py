"""Which function checks which kind of node. The modules that define them register them here, so that all may call all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from graphdsl.check.context import Frame
from graphdsl.syntax import ast

Handler = Callable[[Frame, Any], Any]
H = TypeVar("H", bound=Handler)

_HANDLERS: dict[type[ast.Node], Handler] = {}


def handles(*kinds: type[ast.Node]) -> Callable[[H], H]:
    """Register a function for kinds of nodes."""

    def register(handler: H) -> H:
        _HANDLERS.update(dict.fromkeys(kinds, handler))
        return handler

    return register


def expression(f: Frame, node: ast.Node) -> Any:
    """What an expression stands for: its `Binding` at once, or the steps to it. To be yielded to the trampoline."""
    return _HANDLERS[type(node)](f, node)


def statement(f: Frame, node: ast.Stmt) -> Any:
    """Check a statement: the steps, or None where it is done."""
    return _HANDLERS[type(node)](f, node)
