"""A direct interpreter of the tree, for scalars and tuples: what a program means, with nothing lowered.

The checker's core is held against it: joins, flags, early exits, closures and calls must come to the same prints and
the same failing line. It knows no dtypes beside Python's numbers, and no tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from graphdsl.syntax import ast


class Break(Exception):
    pass


class Continue(Exception):
    pass


class Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class Failed(Exception):
    """The program fails at a line."""

    def __init__(self, line: int) -> None:
        self.line = line


@dataclass
class Scope:
    names: dict[str, Any]
    outer: dict[str, Any] | None = None  # the top level's, in a function
    own: frozenset[str] = frozenset()

    def get(self, node: ast.Name) -> Any:
        names = self.names if self.outer is None or node.id in self.own else self.outer
        if node.id not in names:
            raise Failed(node.span.line)
        return names[node.id]


@dataclass
class Reference:
    module: ast.Module
    printed: list[tuple[int, tuple[Any, ...]]] = field(default_factory=list)
    steps: int = 0

    def run(self) -> int | None:
        """Run the program; the line at which it failed, if it did."""
        self.functions = {s.name.id: s for s in self.module.body if isinstance(s, ast.FnDef)}
        self.top = Scope({})
        try:
            self.block(self.module.body, self.top)
        except Failed as failed:
            return failed.line
        return None

    # ---- statements ----

    def block(self, body: list[ast.Stmt], s: Scope) -> None:
        for stmt in body:
            self.steps += 1
            if self.steps > 20_000:
                raise TimeoutError
            self.statement(stmt, s)

    def statement(self, stmt: ast.Stmt, s: Scope) -> None:
        match stmt:
            case ast.Assign(targets=targets, op=op, value=value):
                if op is not None:
                    assert isinstance(targets[0], ast.Name)
                    s.names[targets[0].id] = arithmetic(op, s.get(targets[0]), self.value(value, s), stmt)
                    return
                given = self.value(value, s)
                for target, part in zip(targets, given if len(targets) > 1 else (given,), strict=True):
                    assert isinstance(target, ast.Name)
                    s.names[target.id] = part
            case ast.ExprStmt(value=value):
                self.value(value, s)
            case ast.IfStmt(cond=cond, then=then, orelse=orelse):
                if self.value(cond, s):
                    self.block(then.body, s)
                elif orelse is not None:
                    self.block(orelse.body, s)
            case ast.WhileStmt(cond=cond, body=body):
                while self.value(cond, s) and self.trip(body, s):
                    pass
            case ast.ForStmt(targets=targets, over=over, body=body):
                for item in self.over(over, s):
                    for target, part in zip(targets, item if len(targets) > 1 else (item,), strict=True):
                        s.names[target.id] = part
                    if not self.trip(body, s):
                        break
            case ast.Break():
                raise Break
            case ast.Continue():
                raise Continue
            case ast.Return(value=value):
                raise Return(None if value is None else self.value(value, s))
            case ast.PrintStmt(items=items):
                self.printed.append((stmt.span.line, tuple(self.value(i, s) for i in items)))
            case ast.AssertStmt(cond=cond):
                if not self.value(cond, s):
                    raise Failed(stmt.span.line)
            case ast.FnDef():
                pass
            case _:
                raise NotImplementedError(type(stmt))

    def trip(self, body: ast.BlockNode, s: Scope) -> bool:
        try:
            self.block(body.body, s)
        except Break:
            return False
        except Continue:
            pass
        return True

    def over(self, node: ast.Expr, s: Scope) -> Any:
        match node:
            case ast.Range(start=start, stop=stop, step=step):
                return range(self.value(start, s), self.value(stop, s), 1 if step is None else self.value(step, s))
            case ast.CallExpr(func=ast.Name(id="zip"), args=args):
                return zip(*(self.over(a.value, s) for a in args), strict=True)
            case ast.CallExpr(func=ast.Name(id="enumerate"), args=args):
                return enumerate(self.over(args[0].value, s))
            case ast.ListLit(items=items):
                return [self.value(i, s) for i in items]
        raise NotImplementedError(type(node))

    # ---- expressions ----

    def value(self, node: ast.Node, s: Scope) -> Any:
        match node:
            case ast.Number(value=value) | ast.Bool(value=value):
                return value
            case ast.Name(id=name):
                is_own = s.outer is None or name in s.own
                if name in self.functions and name not in (s.names if is_own else s.outer or {}):
                    return self.functions[name]
                return s.get(node)
            case ast.Unary(op=op, operand=operand):
                value = self.value(operand, s)
                return -value if op == "-" else not value
            case ast.Binary(op="and", left=left, right=right):
                return self.value(left, s) and self.value(right, s)
            case ast.Binary(op="or", left=left, right=right):
                return self.value(left, s) or self.value(right, s)
            case ast.Binary(op=op, left=left, right=right):
                return arithmetic(op, self.value(left, s), self.value(right, s), node)
            case ast.Conditional(cond=cond, then=then, orelse=orelse):
                return self.value(then if self.value(cond, s) else orelse, s)
            case ast.TupleLit(items=items):
                return tuple(self.value(i, s) for i in items)
            case ast.Index(value=value, items=items):
                return self.value(value, s)[self.value(items[0], s)]
            case ast.Lambda():
                return self.closure(node, s)
            case ast.CallExpr(func=ast.Name(id="while_loop"), args=args):
                test, body, *carry = [self.value(a.value, s) for a in args]
                while self.call(test, carry):
                    carry = self.call(body, carry)
                return tuple(carry)
            case ast.CallExpr(func=ast.Name(id="cond"), args=args):
                test, first, second, *given = [self.value(a.value, s) for a in args]
                return self.call(first if test else second, given)
            case ast.CallExpr(func=func, args=args):
                callee = self.value(func, s)
                return self.call(callee, [self.value(a.value, s) for a in args])
        raise NotImplementedError(type(node))

    def closure(self, node: ast.Lambda, s: Scope) -> Callable[..., Any]:
        """Captures what names are now; functions of the file see the top level as it is when they are called."""
        captured = dict(s.names) if s.outer is None else {**s.outer, **{n: v for n, v in s.names.items() if n in s.own}}

        def run(*args: Any) -> Any:
            names = {**captured, **{p.id: a for p, a in zip(node.params, args, strict=True)}}
            return self.value(node.body, Scope(names))

        return run

    def call(self, callee: Any, args: list[Any]) -> Any:
        if not isinstance(callee, ast.FnDef):
            return callee(*args)
        from graphdsl.check.reads import function_locals

        s = Scope({}, self.top.names, function_locals(callee))
        for i, param in enumerate(callee.params):
            if i < len(args):
                s.names[param.name.id] = args[i]
            else:
                assert param.default is not None
                s.names[param.name.id] = self.value(param.default, self.top)
        try:
            self.block(callee.body.body, s)
        except Return as result:
            if result.value is not None:
                return result.value
            return None
        if any(isinstance(x, ast.Return) and x.value is not None for x in _all(callee.body.body)):
            raise Failed(callee.span.source.place(callee.span.end - 1)[0])
        return None


def _all(body: list[ast.Stmt]) -> Any:
    from graphdsl.check.reads import statements

    return statements(body)


def arithmetic(op: str, a: Any, b: Any, node: ast.Node) -> Any:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//" | "%":
            if b == 0:
                raise Failed(node.span.line)
            return a // b if op == "//" else a % b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case ">=":
            return a >= b
        case "==":
            return a == b
        case "!=":
            return a != b
    raise NotImplementedError(op)
