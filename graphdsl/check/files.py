"""`load` and `save`.

The entry of a `load` is known when the program is checked; its type is the annotation, else what the file says, and then
the path is known, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphdsl.check import names
from graphdsl.check.arguments import match_arguments
from graphdsl.check.context import Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import known
from graphdsl.check.printing import default_typed, evaluated, parts_of, source_text
from graphdsl.check.types import declared_type
from graphdsl.check.values import NONE, POISON, Binding, Special, Static, Str, Tensor, has_poison, kind_name
from graphdsl.core.ir import Item, Save
from graphdsl.core.steps import Steps
from graphdsl.ops.files import Hole
from graphdsl.ops.types import Size, Type
from graphdsl.source.diagnostic import Fault
from graphdsl.source.span import Span
from graphdsl.syntax import ast


def load_call(f: Frame, node: ast.Expr) -> ast.CallExpr | None:
    """The node, if it is a call of the built-in `load`."""
    match node:
        case ast.CallExpr(func=ast.Name(id="load")):
            own = "load" in f.shared.outline.functions or names.variable(f, "load") is not None
            return None if own else node
    return None


def load(f: Frame, node: ast.CallExpr, annotation: ast.TypeExpr | None) -> Steps[Binding]:
    """`load("d.csv", "price")`"""
    found = match_arguments(f, "`load`", node.span, node.args, ("path", "entry"), frozenset({"entry"}))
    if found is None:
        for arg in node.args:
            yield expression(f, arg.value)
        return POISON
    if "path" not in found:
        return f.error("E0320", "`load` needs the path of a file", node.span)
    where = found["path"][0].value
    path: Binding = yield expression(f, where)
    entry: Static | Special | None = None
    if "entry" in found:
        entry = yield _entry(f, found["entry"][0].value)
    if has_poison(path) or isinstance(entry, Special):
        return POISON
    if not isinstance(path, Str):
        return f.error("E0320", f"`path` of `load` is a string, not {kind_name(path)}", where.span)
    if annotation is None and path.plain is None:
        hint = "say what it holds: `x: f64[n] = load(…)`"
        return f.error("E0320", "a file whose name is known only as the program runs has no type yet", where.span, hint)
    type = _header(f, path.plain or "", entry, node.span) if annotation is None else _annotated(annotation)
    if type is None:
        return POISON
    words = [p.value for p in path.parts if isinstance(p, Item)]
    parts = tuple(p if isinstance(p, str) else Hole(p.value.type.dtype, p.spec) for p in path.parts)
    return f.apply("load", node.span, words, path=parts, entry=entry, type=type)


def _entry(f: Frame, node: ast.Expr) -> Steps[Static | Special | None]:
    """The name of a column or an entry, or several; a poison if it is none."""
    found: tuple[Binding, Static | None] = yield known(f, _names_apart(node))
    binding, value = found
    if has_poison(binding):
        return POISON
    if binding is not NONE and not _is_word(value):
        wanted = "a plain string or a list of them, known when the program is checked"
        f.error("E0320", f"`entry` of `load` must be {wanted}", node.span)
        return POISON
    return value


def _names_apart(node: ast.Expr) -> ast.Expr:
    """A list of columns, which are not stacked to a tensor."""
    return ast.TupleLit(node.span, node.items) if isinstance(node, ast.ListLit) else node


def _is_word(value: Static | None) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(v, str) for v in value)
    return isinstance(value, str)


def _annotated(annotation: ast.TypeExpr) -> Type:
    """The type that a load must turn out to have; dims with names are tested or bound afterwards."""
    return declared_type(annotation, lambda _: Size())


def _header(f: Frame, path: str, entry: Static | None, span: Span) -> Type | None:
    """The type that the file's header tells."""
    from graphdsl.runtime.files import type_of

    try:
        dtype, shape = type_of(f.shared.source.folder, path, entry)
    except Fault as fault:
        shown = fault.kind.diagnostic(span, fault.numbers)
        f.error(shown.code, shown.message, span, shown.hint)
        return None
    return Type(dtype, shape)


def load_form(f: Frame, node: ast.CallExpr, args: tuple[ast.Arg, ...]) -> Steps[Binding]:
    """A `load` without an annotation."""
    result: Binding = yield load(f, ast.CallExpr(node.span, node.func, args), None)
    return result


names.FORMS["load"] = load_form


# ---- save ---------------------------------------------------------------------------------------------


@handles(ast.SaveStmt)
def save(f: Frame, stmt: ast.SaveStmt) -> Steps[None]:
    """The path and all items are evaluated, then written."""
    path: Binding = yield expression(f, stmt.path)
    given: list[tuple[Binding, ast.Expr]] = yield evaluated(f, stmt.items)
    items = [i for binding, node in given for i in _entries(f, binding, node)]
    if not isinstance(path, Str):
        if not has_poison(path):
            f.error("E0219", f"the path of a `save` is a string, not {kind_name(path)}", stmt.path.span)
        return
    single = len(path.parts) == 1 and str(path.parts[0]).lower().endswith(".npy")
    if _well_named(f, stmt, items, single):
        f.block.body.append(Save(stmt.span, path.parts, tuple(items)))


def _entries(f: Frame, binding: Binding, node: ast.Expr) -> Iterator[Item]:
    """What is saved of one item: a tuple `t` as `t_0`, `t_1_0`."""
    for part, name in parts_of(binding, node.id if isinstance(node, ast.Name) else source_text(node.span), "{}_{}"):
        if isinstance(part, Tensor):
            yield Item(default_typed(f, part.value, node.span), name)
        elif not has_poison(part):
            f.error("E0218", f"{kind_name(part)} cannot be saved", node.span)


def _well_named(f: Frame, stmt: ast.SaveStmt, items: list[Item], single: bool) -> bool:
    """Entries of an `.npz` are bare names, each once; the one value of an `.npy` needs none."""
    if not single:
        for node in stmt.items:
            if not isinstance(node, ast.Name):
                hint = "give it a name first, or save it alone to a `.npy`"
                f.error("E0222", "what is saved is named by a bare name", node.span, hint)
                return False
    names_given = [i.name for i in items]
    twice = next((n for n in names_given if names_given.count(n) > 1), None)
    if twice is not None:
        f.error("E0222", f"two values would be saved as `{twice}`", stmt.span, "save one of them under another name")
    return twice is None
