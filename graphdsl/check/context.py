"""What the checker's functions share: the file being checked (`Shared`) and the scope that they are in (`Frame`).

A `Frame` is the top level or one instance of a function. It knows what its names hold now and where
instructions go; the functions on the tree take it as their first argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from graphdsl.check.journal import Journal
from graphdsl.check.leaving import Leaving
from graphdsl.check.liveness import Liveness
from graphdsl.check.outline import Outline
from graphdsl.check.problems import Problems
from graphdsl.check.values import POISON, Binding, Closure, Slot, Tensor, Tuple
from graphdsl.core.emit import Emit
from graphdsl.core.ir import Block, Value
from graphdsl.ops.op import Op, Setting, TypeProblem
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, I64, Dim, DType, Size, Type
from graphdsl.source.diagnostic import Diagnostic, Label
from graphdsl.source.record import dataclass, field
from graphdsl.source.span import Source, Span
from graphdsl.syntax import ast

if TYPE_CHECKING:
    from graphdsl.check.instances import Instance
    from graphdsl.check.loop_types import LoopTypes
    from graphdsl.check.recursion import Open


MOST_DIMS = 32
PRINTED = "$print"  # the name, with its place, of a printed expression that `graphdsl grad` differentiates
MOST_SUGGESTIONS = 20  # looking for the nearest name takes time


@dataclass(frozen=True, eq=False)
class Probe:
    """What shows each value that a name is given, or (`stats`) its statistics, where the condition holds."""

    name: str
    span: Span  # of the name, in the text of the probe
    condition: ast.Expr | None = None
    stats: bool = False


@dataclass(eq=False)
class Probed:
    """Where each probe shows what its name is given, and where it cannot, and why."""

    _shown: set[tuple[Probe, Span]] = field(default_factory=set)
    _hidden: dict[Probe, dict[Span, str]] = field(default_factory=dict)

    def show(self, probe: Probe, span: Span) -> None:
        self._shown.add((probe, span))

    def hide(self, probe: Probe, span: Span, reason: str) -> None:
        self._hidden.setdefault(probe, {})[span] = reason

    def drop(self, span: Span, reason: str) -> None:
        """What was to be shown at this place is not."""
        for probe in [p for p, place in self._shown if place == span]:
            self._shown.discard((probe, span))
            self.hide(probe, span, reason)

    def hidden(self, probe: Probe) -> dict[Span, str]:
        """The places where it shows nothing; what is seen of a loop or a function in one check counts."""
        return {s: why for s, why in self._hidden.get(probe, {}).items() if (probe, s) not in self._shown}

    def shown(self, probe: Probe) -> bool:
        """Whether it shows something anywhere."""
        return any(p is probe for p, _ in self._shown)


@dataclass(frozen=True)
class Request:
    """What the caller wants of the check beside the program itself.

    `fed`: names whose first value comes from outside. `wanted`: top-level names to be read after the program's end.
    `probes`: what shows the values of names. `of`, `wrt`: the derivative that `graphdsl grad` asks for; `wrt` None: none;
    `of` None: the last float scalar; `order` 2: second derivatives, for each pair of names; `every`: by every named value.
    `recompute`: derivatives of loops shall need little memory, but for what is `in_place`.
    `displaced`: names that can be displaced from outside. `nans`: the program shall `stop` where a NaN or inf is made, or
    tell all of them, to `follow` them.
    """

    fed: frozenset[str] = frozenset()
    wanted: frozenset[str] = frozenset()
    of: str | None = None
    wrt: tuple[str, ...] | None = None
    probes: tuple[Probe, ...] = ()
    order: int = 1
    every: bool = False
    recompute: bool = False
    in_place: frozenset[Span] = frozenset()
    displaced: tuple[tuple[str, Type], ...] = ()
    nans: Literal["stop", "follow"] | None = None


# How derivatives call what they are of and by: the place and the text of each mention of a value.
Asked = dict[Value, list[tuple[Span, str]]]


@dataclass(eq=False)
class Shared:
    """One file being checked."""

    source: Source
    outline: Outline
    request: Request
    settings: dict[Source, Setting]  # of each file
    leaving: Leaving
    problems: Problems = field(default_factory=Problems)
    warnings: list[Diagnostic] = field(default_factory=list)
    kinds: dict[str, str] = field(
        default_factory=dict
    )  # of top-level names: param, input, const, dim; others: variable
    declared: dict[str, Span] = field(default_factory=dict)  # where those stand
    sizes: dict[Value, Size] = field(default_factory=dict)  # scalars that are the size of some dim
    fed_sizes: set[Dim] = field(default_factory=set)  # named sizes that feeds bind
    shapes: dict[Value, Value] = field(default_factory=dict)  # `x.shape` → `x`
    claimed: dict[Value, Size] = field(default_factory=dict)  # scalars that something was made with as a size
    made: dict[Value, Span] = field(default_factory=dict)  # where a name was given to a value
    instances: dict[Any, Instance] = field(default_factory=dict)
    open: list[Open] = field(default_factory=list)  # instances of recursive functions that are being checked
    called: set[ast.FnDef | ast.Lambda] = field(default_factory=set)  # functions that some call was checked for
    closures: dict[ast.Lambda, Closure] = field(default_factory=dict)  # one that was made of each lambda
    scopes: dict[ast.FnDef, Liveness] = field(default_factory=dict)
    suggestions: int = 0  # how often a nearest name was looked for
    derives: bool = False  # whether anything is differentiated
    rules: list[Instance] = field(default_factory=list)  # derivative rules of functions, as they were checked
    forwards: set[Value] = field(default_factory=set)  # results of the walks back that a `jvp` begins with
    derived: set[Value] = field(default_factory=set)  # results of derivatives
    asked: Asked = field(default_factory=dict)
    scalars: list[str] = field(default_factory=list)  # float scalars that the top level binds or prints, in order
    probed: Probed = field(default_factory=Probed)
    in_rule: bool = (
        False  # whether a derivative rule is checked, or what it calls: it may have no effect, not even a probe
    )

    @property
    def watched(self) -> bool:
        """Whether probes are written."""
        return bool(self.request.probes) and not self.in_rule


@dataclass(eq=False)
class LoopFrame:
    """A loop around the statement being checked."""

    node: ast.WhileStmt | ast.ForStmt
    after: frozenset[str]
    head: frozenset[str]
    stop: str  # the hidden name that is set once a `break` was reached


class Frame:
    """The top level (`outer` is None) or an instance of a function."""

    def __init__(
        self, shared: Shared, live: Liveness, node: ast.FnDef | ast.Lambda | None = None, depth: int = 0
    ) -> None:
        self.shared = shared
        self.live = live
        self.node = node
        self.depth = depth
        self.names: Journal[Slot] = Journal()
        self.outer: dict[str, Slot | None] | None = None  # top-level names, in a function
        self.own: frozenset[str] = frozenset()  # the names that belong to a function
        self.dims: set[str] = set()  # a function's dim names
        self.params: set[Value] = set()  # values that came from outside
        self.block = Block()
        self.setting = shared.settings[shared.source if node is None else node.span.source]
        self.emit = Emit(self.block, self.setting, Span(shared.source, 0, 0))
        self.loops: list[LoopFrame] = []
        self.blocks_deep = 0  # branches and loops around
        self.unreached = False  # behind a `return` or its like: names may have been given up
        self.guessing = False  # a loop is checked to find out what its names hold
        self.exit_needed = False  # whether something around tests if the block was left
        self.loop_types: dict[ast.Node, LoopTypes] = {}

    @contextmanager
    def inside(self, source: Source) -> Iterator[None]:
        """Check what stands in this file."""
        before = self.setting
        self.setting = self.emit.setting = self.shared.settings[source]
        yield
        self.setting = self.emit.setting = before

    # ---- instructions ----

    def open(self, block: Block) -> Block:
        """Let instructions go to `block`; returns where they went before."""
        before = self.block
        self.block = self.emit.block = block
        return before

    def at(self, span: Span) -> Emit:
        """Where to write instructions that belong to `span`."""
        self.emit.span = span
        return self.emit

    def whole(self, value: int, span: Span) -> Value:
        """An i64."""
        return self.at(span).const(value, I64)

    def truth(self, value: bool, span: Span) -> Value:
        return self.at(span).const(value, BOOL)

    def size(self, value: Value, axis: int, span: Span) -> Value:
        """The length of an axis, an i64; of the same `Size` wherever it is used as a size."""
        dim = value.type.shape[axis]
        if isinstance(dim, int):
            return self.whole(dim, span)
        out: Value = self.at(span).dim(value, axis=axis)
        self.shared.sizes[out] = dim
        return out

    def apply(
        self, op: Op | str, span: Span, args: Sequence[Value | None], spans: Sequence[Span] = (), **attrs: Any
    ) -> Binding:
        """Apply an op; a problem of types is reported at the operand it concerns."""
        try:
            out = self.at(span).apply(OPS[op] if isinstance(op, str) else op, *args, **attrs)
        except TypeProblem as problem:
            return self.type_problem(problem, span, args, spans)
        if isinstance(out, tuple):
            return Tuple(tuple(Tensor(v) for v in out))
        if out.type.rank > MOST_DIMS:
            return self.error(
                "E0324", f"a tensor has at most {MOST_DIMS} dims, and this would have {out.type.rank}", span
            )
        return Tensor(out)

    def value(self, op: str, span: Span, *args: Value, **attrs: Any) -> Value:
        """Apply an op that always fits."""
        out = self.at(span).apply(OPS[op], *args, **attrs)
        assert isinstance(out, Value)
        return out

    def same(self, value: Value) -> Value:
        """A new value of the core that is to hold the same: all that is known of the one is known of the other."""
        new = Value(value.type, value.name)
        tables: tuple[dict[Value, Any], ...] = (
            self.shared.sizes,
            self.shared.shapes,
            self.shared.claimed,
            self.shared.made,
        )
        for known in tables:
            if value in known:
                known[new] = known[value]
        if value in self.shared.derived:
            self.shared.derived.add(new)
        return new

    # ---- problems ----

    def error(
        self, code: str, message: str, span: Span, hint: str | None = None, labels: tuple[Label, ...] = ()
    ) -> Binding:
        """Report a problem; what it concerns becomes a value that causes no further ones."""
        self.shared.problems.error(code, message, span, hint, labels)
        return POISON

    def type_problem(self, p: TypeProblem, span: Span, args: Sequence[Value | None], spans: Sequence[Span]) -> Binding:
        """What a type rule found, with where the operands got their types."""
        place = spans[p.operand] if p.operand is not None and p.operand < len(spans) else span
        labels = []
        operands = [a for a in args if a is not None]
        for arg in operands:
            where = self.shared.made.get(arg)
            if arg.type.shape and arg.name and where is not None and where != place:
                labels.append(Label(where, f"`{arg.name}` is {arg.type}"))
        hint = "; ".join(filter(None, [p.hint, size_origins(operands)])) or None
        return self.error(p.code, p.message, place, hint, tuple(dict.fromkeys(labels)))


def size_origins(args: Sequence[Value]) -> str:
    """Where the sizes in these types came from, as far as it is known."""
    sizes = dict.fromkeys(d for a in args for d in a.type.shape if isinstance(d, Size) and d.name and d.why)
    return ", ".join(f"`{d.name}` is the size of {d.why}" for d in sizes)


DTYPES = {d.value: d for d in DType}
