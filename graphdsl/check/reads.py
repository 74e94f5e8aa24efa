"""Which names a piece of text reads and sets: free names, a function's locals, what a function reads of the top level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import assert_never

from graphdsl.source.record import dataclass
from graphdsl.syntax import ast
from graphdsl.syntax.walk import children


@dataclass(frozen=True, slots=True)
class Read:
    """A name that is read. `called`: as a function, and here (not when a lambda runs some time later)."""

    node: ast.Name
    called: bool


def reads(*roots: ast.Node) -> Iterator[Read]:
    """The free names of expressions, in order; iterative."""
    bound: Counter[str] = Counter()
    around: list[ast.Lambda] = []
    for found in _walk(roots):
        match found:
            case None:
                bound.subtract(p.id for p in around.pop().params)
            case ast.Lambda(params=params):
                bound.update(p.id for p in params)
                around.append(found)
            case Read(node=node, called=called):
                if not bound[node.id]:
                    yield Read(node, called and not around)


def captures(root: ast.Lambda) -> dict[ast.Lambda, dict[str, ast.Name]]:
    """For a lambda and each one inside: its free names, in order, each where it is read first. In one pass."""
    names: dict[ast.Lambda, dict[str, ast.Name]] = {}
    around: list[ast.Lambda] = []
    for found in _walk((root,)):
        match found:
            case None:
                around.pop()
            case ast.Lambda():
                around.append(found)
                names[found] = {}
            case Read(node=node):
                for inner in reversed(around):
                    if node.id in names[inner] or any(p.id == node.id for p in inner.params):
                        break
                    names[inner][node.id] = node
    return names


def _walk(roots: Iterable[ast.Node]) -> Iterator[Read | ast.Lambda | None]:
    """The names that are read, and each lambda where it begins; None where it ends."""
    stack: list[ast.Node | None] = list(reversed(tuple(roots)))
    while stack:
        node = stack.pop()
        match node:
            case None:
                yield None
            case ast.Name():
                yield Read(node, False)
            case ast.Lambda(body=body):
                yield node
                stack += [None, body]
            case ast.CallExpr(func=func, args=args):
                stack.extend(a.value for a in reversed(args))
                name = func.name if isinstance(func, ast.Attribute) else func
                if isinstance(name, ast.Name):
                    yield Read(name, True)
                if isinstance(func, ast.Attribute):
                    stack.append(func.value)
                elif not isinstance(func, ast.Name):
                    stack.append(func)
            case ast.Attribute(value=value):
                stack.append(value)
            case _:
                stack += reversed(list(children(node)))


def own_expressions(stmt: ast.Stmt) -> tuple[ast.Node, ...]:
    """The expressions that a statement reads itself, blocks inside it left out."""
    match stmt:
        case ast.Declare(value=value) | ast.Return(value=value):
            return () if value is None else (value,)
        case ast.Assign(targets=targets, op=op, value=value):
            read = [t for t in targets if op is not None or isinstance(t, ast.Index)]
            return (value, *read)
        case ast.Update(name=name, value=value):
            return (value, name)  # the new value has the type of the old one
        case ast.ExprStmt(value=value) | ast.SeedStmt(value=value):
            return (value,)
        case ast.IfStmt(cond=cond) | ast.WhileStmt(cond=cond):
            return (cond,)
        case ast.ForStmt(over=over):
            return (over,)
        case ast.PrintStmt(items=items):
            return items
        case ast.AssertStmt(cond=cond, message=message):
            return (cond,) if message is None else (cond, message)
        case ast.SaveStmt(path=path, items=items):
            return (path, *items)
        case ast.Break() | ast.Continue() | ast.Checkpoint() | ast.Use() | ast.Default():
            return ()
        case ast.FnDef() | ast.VjpDef():
            return ()  # read when it is called
        case _:
            assert_never(stmt)


def target_name(target: ast.Name | ast.Index) -> ast.Name | None:
    """The name that an assignment to `target` sets."""
    node: ast.Node = target
    while isinstance(node, ast.Index):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def own_targets(stmt: ast.Stmt) -> list[ast.Name]:
    """The names that a statement sets itself, blocks inside it left out."""
    match stmt:
        case ast.Declare(name=name) | ast.Update(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [n for t in targets if (n := target_name(t)) is not None]
        case ast.ForStmt(targets=names):
            return list(names)
        case ast.ExprStmt() | ast.PrintStmt() | ast.AssertStmt() | ast.SaveStmt() | ast.SeedStmt() | ast.Default():
            return []
        case ast.IfStmt() | ast.WhileStmt() | ast.Checkpoint() | ast.Break() | ast.Continue() | ast.Return():
            return []
        case ast.FnDef() | ast.VjpDef() | ast.Use():
            return []  # functions and modules are no variables
        case _:
            assert_never(stmt)


def dim_names(*types: ast.TypeExpr | ast.TupleType | None) -> Iterator[ast.Name]:
    """The names among the dims of annotations."""
    for type in types:
        match type:
            case ast.TypeExpr(dims=dims):
                yield from (d for d in dims if isinstance(d, ast.Name))
            case ast.TupleType(items=items):
                yield from dim_names(*items)


def statements(block: Iterable[ast.Stmt]) -> Iterator[ast.Stmt]:
    """All statements, those in blocks included (the bodies of `fn`s are not)."""
    stack = [iter(block)]
    while stack:
        for stmt in stack[-1]:
            yield stmt
            if inner := inner_blocks(stmt):
                stack.extend(iter(b.body) for b in reversed(inner))
                break
        else:
            stack.pop()


def inner_blocks(stmt: ast.Stmt) -> list[ast.BlockNode]:
    """The blocks of a statement that run where it stands."""
    if isinstance(stmt, ast.FnDef | ast.VjpDef):
        return []
    return [node for node in children(stmt) if isinstance(node, ast.BlockNode)]


def names_set(block: Iterable[ast.Stmt]) -> set[str]:
    """Every name that some statement of the block sets or some annotation binds."""
    found: set[str] = set()
    for stmt in statements(block):
        if not isinstance(stmt, ast.Update):
            found.update(n.id for n in own_targets(stmt))
        if isinstance(stmt, ast.Assign | ast.Declare):
            found.update(n.id for n in dim_names(stmt.type))
    return found


def function_locals(node: ast.FnDef) -> frozenset[str]:
    """The names that belong to a function: its parameters, what it sets, and the dims of its annotations."""
    own = {p.name.id for p in node.params} | names_set(node.body.body)
    own |= {n.id for n in dim_names(node.result, *(p.type for p in node.params))}
    return frozenset(own)


def function_reads(node: ast.FnDef, own: frozenset[str]) -> Iterator[Read]:
    """What a function reads that is not its own; defaults see only the top level."""
    for stmt in statements(node.body.body):
        yield from (r for r in reads(*own_expressions(stmt)) if r.node.id not in own)
    for param in node.params:
        if param.default is not None:
            yield from reads(param.default)
