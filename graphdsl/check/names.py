"""Reading and setting names: which of a variable, a `fn` and a built-in a name is, and the test where it may not be set."""

from __future__ import annotations

from graphdsl.check import faults
from graphdsl.check.branches import DEAD, LOST
from graphdsl.check.context import DTYPES, MOST_SUGGESTIONS, Frame
from graphdsl.check.problems import nearest
from graphdsl.check.values import (
    MOST_LEAVES,
    MOST_LEVELS,
    POISON,
    Binding,
    Builtin,
    Named,
    Slot,
    leaves,
    measure,
    without_static,
)
from graphdsl.core.ir import Block, Fail, If
from graphdsl.ops.table import OPS
from graphdsl.source.diagnostic import Label
from graphdsl.source.span import Span
from graphdsl.syntax import ast

LOOP = "a loop"  # one way in which names are set
FORMS: dict[str, object] = {}  # built-ins that the checker writes out; filled by the modules that define them

# built-ins of the language that a later version brings
PLANNED = frozenset(
    """
    choice cholesky det eigh inv logdet lstsq median pad qr quantile repeat solve svd tile topk triangular_solve
    """.split()
)


def variable(f: Frame, name: str) -> Slot | None:
    """What a variable of this name holds here, whether or not it is set on every path."""
    if f.outer is not None and name not in f.own:
        return f.outer.get(name)
    return f.names.get(name)


def builtin(name: str) -> Builtin | None:
    """The built-in function of that name. A name that begins with a dot is one whatever else is called so."""
    name = name.removeprefix(".")
    if name in FORMS or name in DTYPES:
        return Builtin(name, None)
    op = OPS.get(name)
    return Builtin(name, op) if op is not None and op.params is not None else None


def function(f: Frame, name: str) -> Binding | None:
    """The `fn` or the built-in of that name."""
    if (node := f.shared.outline.functions.get(name)) is not None:
        return Named(node)
    return builtin(name)


def read(f: Frame, node: ast.Name) -> Binding:
    """What a name stands for where it is not called."""
    slot = variable(f, node.id)
    if slot is not None:
        return use(f, slot, node)
    return _function_here(f, node) or unknown(f, node)


def known(f: Frame, node: ast.Name) -> bool:
    """Whether a name stands for anything where it is not called."""
    return variable(f, node.id) is not None or _function_here(f, node) is not None


def _function_here(f: Frame, node: ast.Name) -> Binding | None:
    return None if is_local(f, node.id) else function(f, node.id)


def use(f: Frame, slot: Slot, node: ast.Name) -> Binding:
    """What a slot holds; where the name may not be set, that is tested here, once for all that follows."""
    if slot in (LOST, DEAD):
        assert f.unreached, f"`{node.id}` is read where it was taken for dead"
        return POISON
    if slot.is_set is None:
        return slot.binding
    unset = Block([], [Fail(node.span, faults.NEVER_SET, (), (node.id, slot.why))])
    f.block.body.append(If(node.span, slot.is_set, Block(), unset, ()))
    settled = Slot(slot.binding, slot.span)
    if f.outer is not None and node.id not in f.own:
        return slot.binding
    f.names.set(node.id, settled)
    return slot.binding


def is_local(f: Frame, name: str) -> bool:
    """Whether the name belongs to the function, set or not."""
    return f.outer is not None and name in f.own


def unknown(f: Frame, node: ast.Name) -> Binding:
    """A name that no path has set."""
    name = node.id
    if is_local(f, name) or (f.outer is None and name in f.shared.outline.variables):
        hint = None
        if name in f.shared.outline.variables and is_local(f, name):
            hint = f"`{name}` is set in this function, so it is not the `{name}` of the top level"
        elif name in f.shared.outline.modules:
            hint = f"a variable is called `{name}`, which hides the module"
        return f.error("E0202", f"`{name}` is not set here on any path", node.span, hint or _suggestion(f, name))
    if name in f.shared.outline.variables:
        return f.error("E0202", f"`{name}` is not set yet where this is called", node.span)
    if name in f.shared.outline.modules:
        return f.error("E0201", f"`{name}` is a module, and no value", node.span, f"read what it holds: `{name}.…`")
    name = name.removeprefix(".")
    if name in ("zip", "enumerate"):
        return f.error("E0201", f"`{name}` stands only in a `for`: `for … in {name}(…)`", node.span)
    if name in PLANNED:
        return f.error("E0900", f"`{name}` is not here yet", node.span)
    return f.error("E0201", f"there is no `{name}`", node.span, _suggestion(f, name))


def _suggestion(f: Frame, name: str) -> str | None:
    f.shared.suggestions += 1
    if f.shared.suggestions > MOST_SUGGESTIONS:
        return None
    known = [*f.names.names(), *(f.outer or {}), *f.shared.outline.functions]
    close = nearest(name, known) or nearest(
        name, [*DTYPES, *FORMS, *(n for n, op in OPS.items() if op.params is not None)]
    )
    return None if close is None or close == name else f"did you mean `{close}`?"


# ---- setting ------------------------------------------------------------------------------------------


def bind(f: Frame, node: ast.Name, binding: Binding, keep_static: bool = False) -> None:
    """Let a name hold what it is given (the rules on who may be set are `assignable`'s)."""
    if not keep_static:
        binding = without_static(binding)
    count, levels = measure(binding)
    if count > MOST_LEAVES or levels > MOST_LEVELS:
        message = f"`{node.id}` holds too much: at most {MOST_LEAVES} values, nested {MOST_LEVELS} deep"
        binding = f.error("E0312", message, node.span)
    for value in leaves(binding):
        value.name = value.name or (None if node.id[0] == "$" else node.id)
        f.shared.made.setdefault(value, node.span)
    f.names.set(node.id, Slot(binding, node.span))


def assignable(f: Frame, node: ast.Name, by: str = "`=`") -> bool:
    """Whether this name may be set here, in the way that `by` names; reports it if not."""
    if f.outer is not None:
        if node.id in f.dims:
            f.error("E0203", f"`{node.id}` is the size of a dim, and may not be set", node.span)
        return node.id not in f.dims
    kind = f.shared.kinds.get(node.id)
    if kind not in ("param", "const", "dim"):
        return True
    labels = (Label(f.shared.declared[node.id], "declared here"),)
    if kind == "param":
        hint = f"write `{node.id} := …`, which stores a new value and makes it a fresh leaf"
        if by == LOOP:
            hint = "give what the loop counts another name"
        f.error("E0204", f"`{node.id}` is a param, which {by} does not change", node.span, hint, labels)
    elif kind == "const":
        f.error("E0203", f"`{node.id}` is a const, and may not be set again", node.span, labels=labels)
    else:
        f.error("E0203", f"`{node.id}` is the size of a dim, and may not be set", node.span, labels=labels)
    return False


def place(span: Span) -> str:
    """How messages name a place."""
    return f"line {span.line}"
