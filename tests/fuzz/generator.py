"""Hypothesis strategies for whole programs over what the language has.

A `Writer` keeps the types of the names that are set, so that most programs pass the checker; on purpose a few
do not, fail as they run, or meet special values. `programs()` gives the text of one program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]

FLOATS = ("f64", "f64", "f64", "f32")
SHAPES = ((), (), (), (3,), (3,), (4,), (2, 3), (3, 2), (1,), (0,))
PLAIN = ("0.5", "1.0", "2.0", "-1.5", "3.0", "0.1", "7.25", "-0.3")
SPECIAL = ("nan", "inf", "-inf", "-0.0", "0.0", "1e-310", "1e308", "-1e300", "5e-324", "1e-30")
UNARY = ("sin", "cos", "tanh", "exp", "abs", "sqrt", "log", "sigmoid", "relu", "square", "floor", "-")
BINARY = ("+", "+", "-", "*", "*", "/", "%", "//")
COMPARE = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True)
class Kind:
    """The type of a name: a dtype and literal sizes."""

    dtype: str
    shape: tuple[int, ...] = ()

    @property
    def is_float(self) -> bool:
        return self.dtype in ("f64", "f32")


@dataclass(frozen=True)
class Function:
    name: str
    params: tuple[Kind, ...]
    result: Kind


@dataclass
class Scope:
    """Names that are set here, and what may stand here."""

    names: dict[str, Kind]
    params: tuple[str, ...] = ()
    in_loop: bool = False
    top: bool = True
    depth: int = 0
    fixed: set[str] = field(default_factory=set)  # loop counters and the like: not assigned

    def inner(self, *, in_loop: bool = False) -> Scope:
        return Scope(dict(self.names), self.params, in_loop or self.in_loop, self.top, self.depth + 1, set(self.fixed))


class Writer:
    """Writes one program; every choice is drawn, so that Hypothesis can shrink it."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.count = 0
        self.functions: list[Function] = []

    # ---- choices ----

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def chance(self, percent: int) -> bool:
        return bool(self.draw(st.integers(0, 99)) < percent)

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # ---- expressions ----

    def literal(self, kind: Kind) -> str:
        if kind.shape:
            items = ", ".join(self.literal(Kind(kind.dtype, kind.shape[1:])) for _ in range(kind.shape[0]))
            if 0 in kind.shape:
                return f"{kind.dtype}(zeros({', '.join(map(str, kind.shape))}))"
            return f"[{items}]" if len(kind.shape) > 1 else f"{kind.dtype}([{items}])"
        match kind.dtype:
            case "bool":
                return str(self.pick(("true", "false")))
            case "i64" | "i32":
                text = str(self.pick((0, 1, 2, 3, -1, 5, -7, 100)))
                return text if kind.dtype == "i64" else f"i32({text})"
            case _:
                return str(self.pick(SPECIAL) if self.chance(4) else self.pick(PLAIN))

    def expression(self, scope: Scope, kind: Kind, depth: int = 3) -> str:
        names = [n for n, k in scope.names.items() if k == kind]
        if depth <= 0 or self.chance(20):
            return str(self.pick(names)) if names and self.chance(93) else self.literal(kind)
        if kind.is_float:
            return self.float_expression(scope, kind, depth - 1)
        if kind.dtype == "bool":
            return self.bool_expression(scope, kind, depth - 1)
        return self.int_expression(scope, kind, depth - 1)

    def float_expression(self, scope: Scope, kind: Kind, depth: int) -> str:
        forms: list[Callable[[], str]] = [
            lambda: self.binary(scope, kind, depth),
            lambda: self.binary(scope, kind, depth),
            lambda: self.unary(scope, kind, depth),
            lambda: (
                f"where({self.expression(scope, Kind('bool', kind.shape), depth)}, "
                f"{self.expression(scope, kind, depth)}, {self.expression(scope, kind, depth)})"
            ),
            lambda: (
                f"({self.expression(scope, kind, depth)} if {self.expression(scope, Kind('bool'), depth)}"
                f" else {self.expression(scope, kind, depth)})"
            ),
            lambda: (
                f"{self.pick(('maximum', 'minimum'))}({self.expression(scope, kind, depth)}, "
                f"{self.expression(scope, kind, depth)})"
            ),
            lambda: f"({self.expression(scope, kind, depth)}) ** {self.pick((2, 3, -1, 0, 1, 0.5, -2))}",
        ]
        if not kind.shape:
            forms += [lambda: self.reduction(scope, kind, depth), lambda: self.element(scope, kind, depth)]
        if len(kind.shape) == 1:
            forms += [lambda: self.product(scope, kind, depth), lambda: self.gather(scope, kind, depth)]
        if len(kind.shape) == 2:
            forms.append(lambda: f"({self.expression(scope, Kind(kind.dtype, kind.shape[::-1]), depth)}).T")
        calls = [f for f in self.functions if f.result == kind]
        if calls and scope.top:
            forms.append(lambda: self.call(scope, self.pick(calls), depth))
        return str(self.pick(forms)())

    def binary(self, scope: Scope, kind: Kind, depth: int) -> str:
        other = kind if self.chance(60) else Kind(kind.dtype)
        left, right = self.expression(scope, kind, depth), self.expression(scope, other, depth)
        if other != kind and self.chance(50):
            left, right = right, left
        return f"({left} {self.pick(BINARY)} {right})"

    def unary(self, scope: Scope, kind: Kind, depth: int) -> str:
        name = self.pick(UNARY)
        inner = self.expression(scope, kind, depth)
        return f"(-{inner})" if name == "-" else f"{name}({inner})"

    def reduction(self, scope: Scope, kind: Kind, depth: int) -> str:
        shape = self.pick(((3,), (4,), (2, 3), (1,)))
        return f"{self.pick(('sum', 'mean', 'max', 'sum'))}({self.expression(scope, Kind(kind.dtype, shape), depth)})"

    def element(self, scope: Scope, kind: Kind, depth: int) -> str:
        vectors = [n for n, k in scope.names.items() if k.dtype == kind.dtype and len(k.shape) == 1]
        if not vectors:
            return self.literal(kind)
        vector = self.pick(vectors)
        size = scope.names[vector].shape[0]
        if size == 0 or self.chance(4):
            return f"{vector}[{self.expression(scope, Kind('i64'), depth)}]"
        counters = [n for n, k in scope.names.items() if k == Kind("i64")]
        if counters and self.chance(40):
            return f"{vector}[{self.pick(counters)} % {size}]"
        return f"{vector}[{self.number(-size, size - 1)}]"

    def product(self, scope: Scope, kind: Kind, depth: int) -> str:
        (n,) = kind.shape
        if n not in (2, 3):
            return self.binary(scope, kind, depth)
        inner = 5 - n
        matrix = self.expression(scope, Kind(kind.dtype, (n, inner)), depth)
        vector = self.expression(scope, Kind(kind.dtype, (inner,)), depth)
        return f"({matrix} @ {vector})"

    def gather(self, scope: Scope, kind: Kind, depth: int) -> str:
        (n,) = kind.shape
        if n == 3 and self.chance(50):
            return f"({self.expression(scope, Kind(kind.dtype, (2, 3)), depth)})[{self.number(-2, 1)}]"
        if n == 3:
            place = self.pick(("1:", ":3", ":-1", "[3, 0, 3]"))
            return f"({self.expression(scope, Kind(kind.dtype, (4,)), depth)})[{place}]"
        return self.unary(scope, kind, depth)

    def call(self, scope: Scope, function: Function, depth: int) -> str:
        args = ", ".join(self.expression(scope, k, depth - 1) for k in function.params)
        return f"{function.name}({args})"

    def bool_expression(self, scope: Scope, kind: Kind, depth: int) -> str:
        compared = Kind(self.pick(("f64", "f64", "i64")), kind.shape)
        if kind.shape or self.chance(70):
            left, right = self.expression(scope, compared, depth), self.expression(scope, compared, depth)
            return f"({left} {self.pick(COMPARE)} {right})"
        joined = self.pick(("and", "or", "&", "|"))
        return f"({self.expression(scope, kind, depth)} {joined} {self.expression(scope, kind, depth)})"

    def int_expression(self, scope: Scope, kind: Kind, depth: int) -> str:
        operator = self.pick(("+", "-", "*", "//", "%", "&", "|"))
        right = self.expression(scope, kind, depth)
        if operator in ("//", "%") and self.chance(90):
            right = str(self.pick((2, 3, -2)))
        return f"({self.expression(scope, kind, depth)} {operator} {right})"

    # ---- statements ----

    def block(self, scope: Scope, indent: str, length: int) -> list[str]:
        lines: list[str] = []
        for _ in range(length):
            lines += [indent + line for line in self.statement(scope)]
        return lines or [indent + "pass_ = 0"]

    def statement(self, scope: Scope) -> list[str]:
        forms: list[Callable[[Scope], list[str]]] = [self.assign, self.assign, self.assign, self.store, self.show]
        if scope.depth < 3:
            forms += [self.branch, self.loop, self.repeat]
        forms += [self.derivative, self.derivative]
        if scope.in_loop:
            forms.append(self.leave)
        if scope.top and scope.params:
            forms.append(self.update)
        if self.chance(3):
            forms.append(self.check)
        return list(self.pick(forms)(scope))

    def assign(self, scope: Scope) -> list[str]:
        changeable = [n for n in scope.names if n not in scope.fixed]
        if changeable and self.chance(55):
            name = self.pick(changeable)
            kind = scope.names[name]
        else:
            name, kind = self.fresh("v"), self.kind()
        value = self.expression(scope, kind)
        scope.names[name] = kind
        return [f"{name} = {value}"]

    def kind(self) -> Kind:
        dtype = self.pick((*FLOATS, "f64", "i64", "bool"))
        return Kind(dtype, self.pick(SHAPES) if dtype not in ("i64", "bool") else ())

    def store(self, scope: Scope) -> list[str]:
        free = {n: k for n, k in scope.names.items() if k.is_float and n not in scope.fixed}
        vectors = [n for n, k in free.items() if len(k.shape) == 1 and k.shape[0] > 2]
        if not vectors:
            return self.assign(scope)
        name = self.pick(vectors)
        kind = scope.names[name]
        place = self.pick(("0", "-1", "1:3", "::2", ":"))
        if self.chance(30):
            return [f"{name}[1:] = {name}[:-1] * {self.literal(Kind(kind.dtype))}"]
        operator = self.pick(("=", "=", "+=", "*="))
        return [f"{name}[{place}] {operator} {self.expression(scope, Kind(kind.dtype), 2)}"]

    def show(self, scope: Scope) -> list[str]:
        if not scope.names:
            return ["print 1"]
        names = [self.pick(scope.names) for _ in range(self.number(1, 2))]
        scalars = [n for n, k in scope.names.items() if k.shape == () and k.dtype != "bool"]
        if scalars and self.chance(25):
            if self.chance(50):
                return [f'print "{{{self.pick(scalars)}}}"']
            return [f'print "at {{{self.pick(scalars)}}} and {{{self.pick(scalars)}:.3e}}"']
        return [f"print {', '.join(names)}"]

    def branch(self, scope: Scope) -> list[str]:
        condition = self.expression(scope, Kind("bool"), 2)
        lines = [f"if {condition} {{", *self.block(scope.inner(), "    ", self.number(1, 3))]
        if self.chance(60):
            lines += ["} else {", *self.block(scope.inner(), "    ", self.number(1, 3))]
        return [*lines, "}"]

    def loop(self, scope: Scope) -> list[str]:
        inner = scope.inner(in_loop=True)
        if self.chance(30):
            rows = [n for n, k in scope.names.items() if k.shape in ((2, 3), (3, 2), (3,), (4,), (0,))]
            if rows:
                matrix = self.pick(rows)
                kind = scope.names[matrix]
                row = self.fresh("r")
                inner.names[row] = Kind(kind.dtype, kind.shape[1:])
                return [f"for {row} in {matrix} {{", *self.block(inner, "    ", self.number(1, 3)), "}"]
        counter = self.fresh("i")
        inner.names[counter] = Kind("i64")
        over = self.pick(("0..3", "0..4", "0..1", "0..0", "3..0 step -1", "1..6 step 2"))
        return [f"for {counter} in {over} {{", *self.block(inner, "    ", self.number(1, 4)), "}"]

    def repeat(self, scope: Scope) -> list[str]:
        counter = self.fresh("k")
        inner = scope.inner(in_loop=True)
        inner.names[counter] = Kind("i64")
        inner.fixed.add(counter)
        scope.names[counter] = Kind("i64")
        scope.fixed.add(counter)
        extra = f" and {self.expression(inner, Kind('bool'), 1)}" if self.chance(50) else ""
        return [
            f"{counter} = 0",
            f"while {counter} < {self.number(0, 4)}{extra} {{",
            f"    {counter} += 1",
            *self.block(inner, "    ", self.number(1, 3)),
            "}",
        ]

    def leave(self, scope: Scope) -> list[str]:
        return [f"if {self.expression(scope, Kind('bool'), 1)} {{ {self.pick(('break', 'continue'))} }}"]

    def check(self, scope: Scope) -> list[str]:
        return [f'assert {self.expression(scope, Kind("bool"), 2)}, "no"']

    def update(self, scope: Scope) -> list[str]:
        name = self.pick(scope.params)
        kind = scope.names[name]
        return [f"{name} := {self.expression(scope, kind, 2)}"]

    def derivative(self, scope: Scope) -> list[str]:
        targets = [n for n, k in scope.names.items() if k.is_float]
        if not targets:
            return self.assign(scope)
        target = self.pick(targets)
        scalars = [n for n, k in scope.names.items() if k.is_float and not k.shape]
        lines = []
        if scalars and self.chance(50):
            y = self.pick(scalars)
        else:
            y = self.fresh("y")
            dtype = scope.names[target].dtype
            lines.append(f"{y} = sum({target} * {self.expression(scope, Kind(dtype), 2)})")
            scope.names[y] = Kind(dtype)
        result = self.fresh("g")
        lines.append(f"{result} = grad({y}, {target})")
        scope.names[result] = scope.names[target]
        if not scope.names[target].shape and self.chance(40):
            lines.append(f"print grad({result}, {target})")
        elif self.chance(50):
            lines.append(f"print {result}")
        return lines

    # ---- whole programs ----

    def function(self) -> list[str]:
        params = tuple(Kind("f64", self.pick(((), (), (3,)))) for _ in range(self.number(1, 2)))
        result = Kind("f64", self.pick(((), (3,))))
        name = self.fresh("fun")
        scope = Scope({f"p{i}": k for i, k in enumerate(params)}, top=False, depth=2)
        head = f"fn {name}({', '.join(scope.names)})"
        if self.chance(30):
            lines = [f"{head} = {self.expression(scope, result)}"]
        else:
            body = self.block(scope, "    ", self.number(1, 4))
            lines = [f"{head} {{", *body]
            if self.chance(30):
                condition = self.expression(scope, Kind("bool"), 1)
                lines.append(f"    if {condition} {{ return {self.expression(scope, result, 2)} }}")
            lines += [f"    return {self.expression(scope, result, 2)}", "}"]
        self.functions.append(Function(name, params, result))
        return lines

    def program(self) -> str:
        lines = ["default f32"] if self.chance(10) else []
        names: dict[str, Kind] = {}
        default = "f32" if lines else "f64"
        for _ in range(self.number(1, 3)):
            kind = Kind(default, self.pick(((), (), (3,), (2, 3))))
            name = self.fresh("w")
            lines.append(f"param {name}: {default}{list(kind.shape) or ''} = {self.literal(kind)}")
            names[name] = kind
        if self.chance(20):
            lines += ["seed 3", "u0 = uniform(3)", "n0 = normal()"]
            names |= {"u0": Kind(default, (3,)), "n0": Kind(default)}
        if default == "f64":
            for _ in range(self.number(0, 2)):
                lines += self.function()
        params = tuple(n for n in names if n.startswith("w"))
        scope = Scope(names, params, fixed=set(params))
        lines += self.block(scope, "", self.number(2, 7))
        lines += [f"print {name}" for name in scope.names]
        return "\n".join(lines) + "\n"


@st.composite
def programs(draw: Draw) -> str:
    """The text of a program."""
    return Writer(draw).program()
