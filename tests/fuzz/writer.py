"""What all parts of the generator share: kinds of values, what is set at a place, choices, and expressions filled in.

A `Writer` keeps the kinds of the names that are set, so that most programs pass the checker. Every choice comes from
one seeded stream: a seed is a program. What may be written is in the tables of the other files of this folder.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

T = TypeVar("T")

ANY = (-1,)
"""The shape of a kind whose sizes and rank nobody knows: that of a function's argument, or of a tensor that grows."""

SHAPES = ((), (), (), (3,), (3,), (4,), (2, 3), (3, 2), (1,), (0,), (2,), (2, 2))
"""Of new names."""

HIGHEST = 3
"""How often one value is differentiated, at most."""

PLAIN = ("0.5", "1.0", "2.0", "-1.5", "3.0", "0.1", "7.25", "-0.3")
SPECIAL = ("nan", "inf", "-inf", "-0.0", "0.0", "1e-310", "1e308", "-1e300", "5e-324", "1e-30")
INTS = ("0", "1", "2", "3", "-1", "5", "-7", "100")
MOST_WRITTEN = 30
"""The elements of a tensor that is written out, at most."""

_DTYPES = {"b": "bool", "h": "i32", "i": "i64", "g": "f32", "f": "f64"}
_GAP = re.compile(r"\{([bhigf]?)(=|\.|T|fn|\d+(?:,\d+)*)\}")


@dataclass(frozen=True)
class Kind:
    """The type of a value: a dtype and literal sizes (or `ANY`)."""

    dtype: str
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype in ("f64", "f32")


@dataclass(frozen=True)
class Function:
    """A function that is declared: what it takes and gives."""

    name: str
    params: tuple[Kind, ...]
    result: Kind
    part: str = ""  # the index of the result in the tuple that the function gives
    defaults: int = 0  # how many of the last arguments need not be given
    named: tuple[str, ...] = ()  # the names of its params, where they may be used


@dataclass
class Scope:
    """What is set at a place, and what may stand there."""

    names: dict[str, Kind]
    params: tuple[str, ...] = ()
    growing: dict[str, int] = field(default_factory=dict)  # names whose sizes change, with their ranks; all f64
    tuples: dict[str, tuple[Kind, ...]] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)  # counters and the like: not assigned
    outside: frozenset[str] = frozenset()  # what came into the function: no derivative leads back beyond it
    function: Kind | None = None  # what the function gives whose body this is
    trips: int = 1  # how often this place is reached, at most
    depth: int = 0

    @property
    def top(self) -> bool:
        return self.function is None

    @property
    def in_loop(self) -> bool:
        return self.trips > 1

    def inner(self, trips: int = 1) -> Scope:
        """The body of a branch, or of a loop of so many trips: what it sets need not be set afterwards."""
        return replace(
            self,
            names=dict(self.names),
            growing=dict(self.growing),
            tuples=dict(self.tuples),
            fixed=set(self.fixed),
            trips=self.trips * max(trips, 1),
            depth=self.depth + 1,
        )

    def having(self, names: Mapping[str, Kind]) -> Scope:
        """With more names: the body of a lambda."""
        return replace(self, names=self.names | names)

    def free(self, wanted: Callable[[Kind], bool]) -> list[str]:
        """Names that may be assigned."""
        return [n for n, k in self.names.items() if n not in self.fixed and wanted(k)]

    def floats(self) -> list[str]:
        return [n for n, k in self.names.items() if k.is_float]


@dataclass(frozen=True)
class Form:
    """A way to write a statement: lines, or None where it does not fit."""

    write: Callable[[Writer, Scope], list[str] | None]
    weight: int = 1


Templates = Callable[["Writer", Kind], Sequence[Sequence[str]]]


class Writer:
    """Writes one program."""

    def __init__(self, seed: int, templates: Templates) -> None:
        self.rng = random.Random(seed)
        self.templates = templates  # for a kind: groups of ways to compute one
        self.forms: list[Form] = []  # statements that this program is made of
        self.functions: list[Function] = []
        self.also: dict[tuple[int, ...], tuple[str, ...]] = {}  # by shape, what only this program computes with
        self.shapes: tuple[tuple[int, ...], ...] = SHAPES  # of new names
        self.files: dict[str, str] = {}  # beside the program
        self.arguments: list[str] = []  # of its run
        self.maps: dict[str, int] = {}  # functions from any kind to the same; how often each differentiates
        self.operators: dict[str, int] = {}  # the same, of a function and its argument
        self.ruled = False  # whether functions may have derivative rules of their own, through which no `jvp` goes
        self.callers: list[str] = []  # functions of a function of two arguments, and of these
        self.growers: list[str] = []  # functions from a tensor to one of another size
        self.order = 0  # how many derivatives surround what is being written
        self.expressions = 50  # how many more may be written: bounds the time that a program takes
        self.statements = 12
        self.count = 0

    # ---- choices ----

    def pick(self, options: Iterable[T]) -> T:
        return self.rng.choice(list(options))

    def recent(self, names: Iterable[T]) -> T:
        """One of these, rather one of the last."""
        options = list(names)
        return self.rng.choice(options[-3:] if self.chance(50) else options)

    def chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    def number(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # ---- expressions ----

    def literal(self, kind: Kind) -> str:
        if kind.shape:
            if kind.is_float and kind.size > MOST_WRITTEN:
                return self.long(kind)
            if 0 in kind.shape:
                return f"{kind.dtype}(zeros({', '.join(map(str, kind.shape))}))"
            row = Kind(kind.dtype, kind.shape[1:])
            items = ", ".join(self.literal(row) for _ in range(kind.shape[0]))
            return f"[{items}]" if len(kind.shape) > 1 else f"{kind.dtype}([{items}])"
        match kind.dtype:
            case "bool":
                return self.pick(("true", "false"))
            case "i64" | "i32":
                text = self.pick(INTS)
                return text if kind.dtype == "i64" else f"i32({text})"
            case "f32" if self.chance(40):
                return f"f32({self.pick(PLAIN)})"
        return self.pick(SPECIAL) if self.chance(4) else self.pick(PLAIN)

    def long(self, kind: Kind) -> str:
        """A tensor of so many elements that they are not written out."""
        ends = f"{self.pick(PLAIN)}, {self.pick(PLAIN)}, {kind.size}"
        row = self.pick((f"linspace({ends})", f"sin(linspace({ends}) * 9.0)", f"full({kind.size}, {self.pick(PLAIN)})"))
        text = row if len(kind.shape) == 1 else f"reshape({row}, {', '.join(map(str, kind.shape))})"
        return f"{kind.dtype}({text})"

    def atom(self, scope: Scope, kind: Kind) -> str:
        """A name, or what is made of names and literals; of a kind without a known shape there is always a name."""
        if kind.shape == ANY and kind.dtype == "bool":
            return f"({self.atom(scope, Kind('f64', ANY))} < {self.literal(Kind('f64'))})"
        names = [n for n, k in scope.names.items() if k == kind]
        numbers = [n for n, k in scope.names.items() if k in (Kind("f64"), Kind("i64"))]
        if kind == Kind("bool") and numbers and self.chance(80):  # a literal would leave what it decides dead
            number = self.recent(numbers)
            return f"({number} {self.pick(('<', '>', '!='))} {self.literal(scope.names[number])})"
        if names and (kind.shape == ANY or self.chance(93)):
            return self.recent(names)
        if kind.is_float and kind.shape and 0 < kind.size <= MOST_WRITTEN and self.chance(80):
            row = Kind(kind.dtype, kind.shape[1:])
            return f"[{', '.join(self.atom(scope, row) for _ in range(kind.shape[0]))}]"
        return self.literal(kind)

    def expression(self, scope: Scope, kind: Kind, depth: int = 3) -> str:
        self.expressions -= 1
        if depth <= 0 or self.expressions < 0 or self.chance(20):
            return self.atom(scope, kind)
        return self.fill(self.pick(self.pick(self.templates(self, kind))), scope, kind, depth - 1)

    def fill(self, template: str, scope: Scope, kind: Kind, depth: int) -> str:
        """A template with expressions in its gaps.

        `{=}` is of the kind itself, `{.}` a scalar of its dtype, `{T}` of the transposed shape, `{2,3}` of that shape,
        `{fn}` a function from the kind to itself; `b`, `h`, `i`, `g`, `f` in front make it bool, i32, i64, f32, f64.
        """

        def gap(found: re.Match[str]) -> str:
            dtype = _DTYPES.get(found[1], kind.dtype)
            match found[2]:
                case "fn":
                    return self.lambda_(template, scope, kind, depth)
                case "=":
                    shape = kind.shape
                case ".":
                    shape = ()
                case "T":
                    shape = kind.shape[::-1]
                case sizes:
                    shape = tuple(map(int, sizes.split(",")))
            return self.expression(scope, Kind(dtype, shape), depth)

        return _GAP.sub(gap, template)

    def lambda_(self, template: str, scope: Scope, kind: Kind, depth: int) -> str:
        """A function from a kind to itself, to be given to what the template calls."""
        order = self.operators.get(template.partition("(")[0], 0)
        self.order += order
        maps = [name for name, own in self.maps.items() if self.order + own <= HIGHEST]
        if maps and self.chance(30):
            text = self.pick(maps)
        else:
            name = self.fresh("a")
            text = f"{name} -> {self.expression(scope.having({name: kind}), kind, max(depth, 1))}"
        self.order -= order
        return text

    # ---- statements ----

    def refill(self) -> None:
        """Enough to write for one more function."""
        self.expressions, self.statements = max(self.expressions, 25), max(self.statements, 6)

    def block(self, scope: Scope, length: int, indent: str = "    ") -> list[str]:
        return [indent + line for _ in range(length) for line in self.statement(scope)]

    def statement(self, scope: Scope) -> list[str]:
        self.statements -= 1
        if self.statements < 0:
            return []
        while True:
            form = self.rng.choices(self.forms, [f.weight for f in self.forms])[0]
            lines = form.write(self, scope)
            if lines is not None:
                return lines
