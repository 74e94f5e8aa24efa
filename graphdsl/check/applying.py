"""Applying a function that is a value: what `map` and its kin do with the functions that they are given."""

from __future__ import annotations

from graphdsl.check.calls import invoke_op
from graphdsl.check.context import DTYPES, Frame
from graphdsl.check.expect import as_tensor
from graphdsl.check.functions import call_with
from graphdsl.check.values import POISON, Binding, Builtin, Closure, Named, has_poison, kind_name
from graphdsl.core.steps import Steps
from graphdsl.source.span import Span


def function_argument(f: Frame, binding: Binding, span: Span, what: str) -> bool:
    """Whether this is a function; reports it if not."""
    if isinstance(binding, Named | Closure | Builtin):
        return True
    if not has_poison(binding):
        f.error("E0212", f"{what} must be a function, and is {kind_name(binding)}", span)
    return False


def apply_function(f: Frame, span: Span, callee: Binding, args: list[Binding]) -> Steps[Binding]:
    """Call it with these arguments, by position."""
    if any(has_poison(a) for a in args):
        return POISON
    match callee:
        case Builtin(op=None, name=name) if name in DTYPES and len(args) == 1:
            value = as_tensor(f, args[0], span, "what is cast")
            return POISON if value is None else f.apply("cast", span, (value,), dtype=DTYPES[name])
        case Builtin(op=op) if op is not None:
            return invoke_op(f, span, op, args)
        case Named() | Closure():
            result: Binding = yield call_with(f, span, callee, args)
            return result
        case Builtin(name=name):
            return f.error("E0213", f"`{name}` cannot be passed as a function here", span)
    return POISON
