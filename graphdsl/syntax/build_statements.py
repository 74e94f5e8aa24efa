"""The callbacks of the LALR machine for statements, blocks and declarations; expressions stand in `build.py`."""

from __future__ import annotations

from graphdsl.source.span import Span
from graphdsl.syntax import ast
from graphdsl.syntax.build import ExpressionBuilder
from graphdsl.syntax.lexer import Token

FLOATS = ("f32", "f64")


class Builder(ExpressionBuilder):
    """Makes the whole tree. Each method is a rule of the grammar."""

    def module(self, start: int, end: int, *body: ast.Stmt | None) -> list[ast.Stmt]:
        return [s for s in body if s is not None]

    def block(self, start: int, end: int, *body: ast.Stmt | None) -> ast.BlockNode:
        return ast.BlockNode(self.span(start, end), [s for s in body if s is not None])

    # ---- declarations and assignments -------------------------------------------------------

    def declare(
        self, start: int, end: int, word: Token, name: ast.Name, type: ast.TypeExpr | None, value: ast.Expr | None
    ) -> ast.Declare:
        span = self.span(start, end)
        match word.kind:
            case "PARAM" if value is None:
                raise self._without_value(span, f"the param `{name.id}` has no first value", f"{span.text} = 1.0")
            case "CONST" if value is None:
                raise self._without_value(span, f"the const `{name.id}` has no value", f"{span.text} = 1.0")
            case "INPUT" if value is None and type is None:
                hint = f"write `input {name.id}: f64[n]`, or give a default: `input {name.id} = 1.0`"
                raise self.error("E0124", f"the input `{name.id}` has neither a type nor a default", span, hint)
            case "PARAM":
                return ast.Declare(span, "param", name, type, value)
            case "CONST":
                return ast.Declare(span, "const", name, type, value)
            case _:
                return ast.Declare(span, "input", name, type, value)

    def _without_value(self, span: Span, message: str, example: str) -> Exception:
        return self.error("E0124", message, span, f"write `{example}`")

    def exprs(self, start: int, end: int, *items: ast.Expr) -> tuple[ast.Expr, ...]:
        return items

    def assign(self, start: int, end: int, targets: tuple[ast.Expr, ...], values: tuple[ast.Expr, ...]) -> ast.Assign:
        checked = tuple(self._target(t) for t in targets)
        return ast.Assign(self.span(start, end), checked, None, None, self._one(values))

    def _one(self, values: tuple[ast.Expr, ...]) -> ast.Expr:
        """One value; several, written without brackets, are a tuple."""
        if len(values) == 1:
            return values[0]
        return ast.TupleLit(values[0].span.to(values[-1].span), values)

    def _target(self, node: ast.Expr) -> ast.Name | ast.Index:
        inner = node
        while isinstance(inner, ast.Index) and not node.span.text.startswith("("):
            inner = inner.value
        if isinstance(inner, ast.Name) and not inner.span.text.startswith("("):
            assert isinstance(node, ast.Name | ast.Index)
            return node
        raise self._no_target(node)

    def _no_target(self, node: ast.Expr) -> Exception:
        hint = "a name or `name[index]` stands before `=`"
        match node:
            case ast.Number() | ast.Bool() | ast.NoneLit() if node.span.text.isalpha():
                message = f"`{node.span.text}` is a reserved word, and cannot be assigned to"
                return self.error("E0115", message, node.span, "choose another name")
            case ast.TupleLit():
                hint = "write the names without brackets: `a, b = …`"
            case ast.Name() | ast.Index():
                hint = "write it without brackets"
            case ast.Binary(op="==" | "<" | "<=" | ">" | ">=" | "!="):
                hint = "`=` assigns, `==` compares"
            case ast.Attribute():
                hint = "an attribute cannot be set; `x[i] = v` sets an element"
            case ast.CallExpr(func=ast.Name(id=name)):
                hint = f"a function is defined by `fn {name}(…) = …`"
        return self.error("E0118", "this cannot be assigned to", node.span, hint)

    def annotated(self, start: int, end: int, target: ast.Expr, type: ast.TypeExpr, value: ast.Expr) -> ast.Assign:
        name = self._target(target)
        if not isinstance(name, ast.Name):
            hint = "an element has the type of its tensor: leave the annotation away"
            raise self.error("E0118", "only a name takes a type", name.span, hint)
        return ast.Assign(self.span(start, end), (name,), type, None, value)

    def augment(self, start: int, end: int, token: Token) -> Token:
        return token

    def augmented(self, start: int, end: int, targets: tuple[ast.Expr, ...], op: Token, value: ast.Expr) -> ast.Assign:
        text = self.text[op.start : op.end]
        if len(targets) > 1:
            span = targets[0].span.to(targets[-1].span)
            raise self.error("E0118", f"`{text}` takes one target", span, "write one statement for each")
        return ast.Assign(self.span(start, end), (self._target(targets[0]),), None, text[:-1], value)

    def update(self, start: int, end: int, targets: tuple[ast.Expr, ...], value: ast.Expr) -> ast.Update:
        target = self._target(targets[0])
        if len(targets) > 1 or not isinstance(target, ast.Name):
            span = targets[0].span.to(targets[-1].span)
            raise self.error("E0118", "`:=` stores into one param", span, "write `w := …`, the name of one param")
        return ast.Update(self.span(start, end), target, value)

    def call_stmt(self, start: int, end: int, exprs: tuple[ast.Expr, ...]) -> ast.ExprStmt:
        span = self.span(start, end)
        match exprs:
            case (ast.CallExpr() as call,):
                return ast.ExprStmt(span, call)
            case (ast.Binary(op="=="),):
                hint = "`=` assigns, `==` compares"
            case _:
                short = end - start < 60 and "\n" not in span.text
                hint = f"to see it, write `print {span.text}`" if short else "to see it, print it"
        raise self.error(
            "E0119", "this value is not used: a statement that is an expression must be a call", span, hint
        )

    # ---- control flow -----------------------------------------------------------------------

    def if_stmt(
        self, start: int, end: int, cond: ast.Expr, then: ast.BlockNode, orelse: ast.BlockNode | ast.IfStmt | None
    ) -> ast.IfStmt:
        if isinstance(orelse, ast.IfStmt):
            orelse = ast.BlockNode(orelse.span, [orelse])
        return ast.IfStmt(self.span(start, end), cond, then, orelse)

    def while_stmt(self, start: int, end: int, cond: ast.Expr, body: ast.BlockNode) -> ast.WhileStmt:
        return ast.WhileStmt(self.span(start, end), cond, body)

    def for_stmt(
        self, start: int, end: int, targets: tuple[ast.Name, ...], over: ast.Expr, body: ast.BlockNode
    ) -> ast.ForStmt:
        return ast.ForStmt(self.span(start, end), targets, over, body)

    def break_stmt(self, start: int, end: int) -> ast.Break:
        return ast.Break(self.span(start, end))

    def continue_stmt(self, start: int, end: int) -> ast.Continue:
        return ast.Continue(self.span(start, end))

    def return_stmt(self, start: int, end: int, values: tuple[ast.Expr, ...] | None) -> ast.Return:
        return ast.Return(self.span(start, end), None if values is None else self._one(values))

    def checkpoint(self, start: int, end: int, body: ast.BlockNode) -> ast.Checkpoint:
        return ast.Checkpoint(self.span(start, end), body)

    # ---- functions and modules --------------------------------------------------------------

    def param(
        self, start: int, end: int, name: ast.Name, type: ast.TypeExpr | None, default: ast.Expr | None
    ) -> ast.FnParam:
        return ast.FnParam(self.span(start, end), name, type, default)

    def params(self, start: int, end: int, *params: ast.FnParam | None) -> tuple[ast.FnParam, ...]:
        given = tuple(p for p in params if p is not None)
        self.distinct(tuple(p.name for p in given))
        optional = None
        for param in given:
            if param.default is None and optional is not None:
                message = f"`{param.name.id}` has no default, and stands after `{optional.name.id}`, which has one"
                raise self.error("E0120", message, param.span, "params with a default come last")
            optional = param if param.default is not None else None
        return given

    def names(self, start: int, end: int, *names: ast.Name) -> tuple[ast.Name, ...]:
        return names

    def body_expr(self, start: int, end: int, value: ast.Expr) -> ast.BlockNode:
        return ast.BlockNode(value.span, [ast.Return(value.span, value)])

    def fn_def(
        self,
        start: int,
        end: int,
        name: ast.Name,
        params: tuple[ast.FnParam, ...],
        result: ast.TypeExpr | ast.TupleType | None,
        body: ast.BlockNode,
    ) -> ast.FnDef:
        return ast.FnDef(self.span(start, end), name, params, result, body)

    def prop_def(
        self,
        start: int,
        end: int,
        word: Token,
        name: ast.Name,
        params: tuple[ast.FnParam, ...],
        result: ast.TypeExpr | ast.TupleType | None,
        body: ast.BlockNode,
    ) -> ast.FnDef:
        return ast.FnDef(self.span(start, end), name, params, result, body, True)

    def vjp_def(
        self,
        start: int,
        end: int,
        word: Token,
        name: ast.Name,
        params: tuple[ast.Name, ...],
        results: tuple[ast.Name, ...],
        body: ast.BlockNode,
    ) -> ast.VjpDef:
        self.distinct((*params, *results))
        if len(results) % 2:
            span = results[0].span.to(results[-1].span)
            hint = "after `;` come the results, then a cotangent for each: `; y, gy`"
            raise self.error("E0120", "each result needs a cotangent", span, hint)
        return ast.VjpDef(self.span(start, end), name, params, results, body)

    def use_stmt(
        self, start: int, end: int, module: ast.Name | ast.String, word: Token | None, alias: ast.Name | None
    ) -> ast.Use:
        span = self.span(start, end)
        if isinstance(module, ast.Name):
            return ast.Use(span, module.id, False, alias or module)
        if len(module.parts) != 1 or not isinstance(module.parts[0], str):
            raise self.error("E0124", "the path of a module is plain text", module.span)
        path = module.parts[0]
        if alias is None:
            stem = path.rpartition("/")[2].partition(".")[0]
            hint = f"write `use {module.span.text} as {stem if stem.isidentifier() else 'name'}`"
            raise self.error("E0124", "a module that is a path needs a name", span, hint)
        return ast.Use(span, path, True, alias)

    def default_stmt(self, start: int, end: int, word: Token, dtype: Token) -> ast.Default:
        text = self.text[dtype.start : dtype.end]
        if text not in FLOATS:
            where = self.span(dtype.start, dtype.end)
            raise self.error("E0121", "the default float is f32 or f64", where, "write `default f32`")
        return ast.Default(self.span(start, end), text)

    # ---- effects ----------------------------------------------------------------------------

    def print_stmt(self, start: int, end: int, items: tuple[ast.Expr, ...]) -> ast.PrintStmt:
        return ast.PrintStmt(self.span(start, end), items)

    def assert_stmt(self, start: int, end: int, cond: ast.Expr, message: ast.Expr | None) -> ast.AssertStmt:
        return ast.AssertStmt(self.span(start, end), cond, message)

    def save_stmt(self, start: int, end: int, path: ast.Expr, *items: ast.Expr) -> ast.SaveStmt:
        return ast.SaveStmt(self.span(start, end), path, items)

    def seed_stmt(self, start: int, end: int, value: ast.Expr) -> ast.SeedStmt:
        return ast.SeedStmt(self.span(start, end), value)
