"""The typed core: the one form that a checked program has.

Static single assignment with structured regions. Eager mode interprets it; graph mode transforms it
(`graphdsl.graph` adds instructions of its own for saved values and fused kernels). No rule of the
language is decided after it: joins, conversions, faults, effects and names that may be unset are explicit.

Scoping: a block sees its own params and instructions, and everything of the blocks around it that stands before.
A function sees only its own params. Values and instructions compare by identity.

What a derivative may tell apart (grammars/README.md, "Derivatives"): an `Apply`, a `Const`, a `Feed` and a function's own param
are values. The outs of `If`, `While`, `For`, `Call`, the params of loop bodies and a `Convert` only pass on a value
they got: `origin` looks through them. The params of a `Func` are new values of each call.
Cotangents are summed for each `Value` of this form separately; what passes a value on adds its whole sum, once, to
what it got it from (several outs or params of one instruction: the last one first).
"""

from __future__ import annotations

from typing import Any, Literal

from graphdsl.ops.op import Attrs, Op
from graphdsl.ops.types import Type
from graphdsl.source.diagnostic import FaultKind, Label
from graphdsl.source.record import dataclass, field
from graphdsl.source.span import Span


class Value:
    """One SSA value. `name` is the source name it was first given, for printing and messages."""

    __slots__ = ("leaf", "name", "number", "tracked", "type")

    def __init__(self, type: Type, name: str | None = None) -> None:
        self.type = type
        self.name = name
        self.tracked = False  # may lie between a derivative's target and what is differentiated (both ends included)
        self.number = 0  # tells it apart where NaNs are followed
        self.leaf = False  # may itself be a derivative's target: recorded even where nothing leads to it

    def __repr__(self) -> str:
        return f"<{self.name or 'value'}: {self.type}>"


TapeValue = Value  # a value that stands for a tape (graph mode has some): no number, and only passed on to calls


@dataclass(eq=False, repr=False, slots=True)
class Block:
    """Instructions in order. `params` are bound on entry, `yields` are what it hands on at its end."""

    params: list[Value] = field(default_factory=list)
    body: list[Instr] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)


@dataclass(eq=False, repr=False, slots=True)
class Apply:
    """A call of an op. Operands have their final dtypes; elementwise ops broadcast. `fails`: it is an effect."""

    span: Span
    op: Op
    args: tuple[Value, ...]
    attrs: Attrs
    outs: tuple[Value, ...]
    fails: bool = False


@dataclass(eq=False, repr=False, slots=True)
class Const:
    """A literal: a scalar, or a list of literals, whose elements `value` holds in row-major order."""

    span: Span
    value: float | int | bool | tuple[float | int | bool, ...]
    out: Value


@dataclass(eq=False, repr=False, slots=True)
class Convert:
    """A conversion without loss at a join or an annotation: the same value with another dtype (between floats),
    or with another type of the same dtype (no longer weak, dims now known)."""

    span: Span
    arg: Value
    out: Value


@dataclass(eq=False, repr=False, slots=True)
class Leaf:
    """`w := arg` (`param` is its name), or a param's first value: a fresh value with no history."""

    span: Span
    param: str
    arg: Value
    out: Value


@dataclass(eq=False, repr=False, slots=True)
class Feed:
    """A value from outside: an input or a param's first value that was fed. Checked against `out.type` before the run;
    named dims are bound by it."""

    span: Span
    name: str
    out: Value


@dataclass(eq=False, repr=False, slots=True)
class Undef:
    """A placeholder for a name that is not set; never read (a `Fail` guards every read). Its sizes are 0."""

    span: Span
    out: Value


@dataclass(eq=False, repr=False, slots=True)
class If:
    """`cond` is a scalar bool. Both blocks yield what `outs` take; neither has params."""

    span: Span
    cond: Value
    then: Block
    orelse: Block
    outs: tuple[Value, ...]


@dataclass(eq=False, repr=False, slots=True)
class While:
    """`cond.params` and `body.params` are the carried values; `cond` yields one bool, `body` the next carried values.
    `outs` are the carried values when `cond` first yields false. `called`: what messages call it; None: there is no such loop
    in the program. `before`: how many trips messages count before these (None: 0)."""

    span: Span
    inits: tuple[Value, ...]
    cond: Block
    body: Block
    outs: tuple[Value, ...]
    called: str | None = "loop"
    before: Value | None = None


@dataclass(eq=False, repr=False, slots=True)
class For:
    """`count` trips (an i64 scalar; none if it is ≤ 0). `body.params[0]` is the trip's number (i64, not carried), the
    others are carried. `called` and `before` as of a `While`."""

    span: Span
    count: Value
    inits: tuple[Value, ...]
    body: Block
    outs: tuple[Value, ...]
    called: str | None = "loop"
    before: Value | None = None


@dataclass(eq=False, repr=False, slots=True)
class Call:
    """A call of a checked function: its params are new values, its outs pass on what it returned."""

    span: Span
    func: Func
    args: tuple[Value, ...]
    outs: tuple[Value, ...]


@dataclass(eq=False, repr=False, slots=True)
class Custom:
    """What a call of a function with a derivative rule of its own gave: `outs` are `results`, as new values, from which a
    walk goes on to `args` by `rule` instead of into the call (whose arguments are cut off: no derivative enters it).

    All are floats. The rule is a function of `given` (the arguments, and whatever else it reads), of `outs`, and of a
    cotangent for each of these; it gives one for each of `args`. `through`: the running sums of the arguments pass through
    it; it is a function of `given`, of the cotangents, and of the sums so far, and gives the sums.
    """

    span: Span
    rule: Func
    args: tuple[Value, ...]
    given: tuple[Value, ...]
    results: tuple[Value, ...]
    outs: tuple[Value, ...]
    through: bool = False


@dataclass(eq=False, repr=False, slots=True)
class Checkpoint:
    """Instructions whose values are not to be kept for derivatives; `outs` are what it yields. Only the checker knows it:
    `graphdsl.core.checkpoints` writes it in other instructions."""

    span: Span
    body: Block
    outs: tuple[Value, ...]


@dataclass(frozen=True)
class ParamTarget:
    """The leaf of this param on which `y` last depended (`graphdsl grad`)."""

    name: str


Target = Value | ParamTarget


@dataclass(eq=False, repr=False, slots=True)
class Derive:
    """A derivative. grad: `outs[i]` is dy/d(targets[i]); vjp: `seed` is the cotangent. `higher`: it may be differentiated
    in its turn. `fails`: a `Custom` rule that can fail may be called.

    `jvp`, `jacobian`, `hessian` and `hvp` are written in these by the time they are here.
    """

    span: Span
    kind: Literal["grad", "vjp"]
    y: Value
    targets: tuple[Value | ParamTarget, ...]
    seed: Value | None
    outs: tuple[Value, ...]
    higher: bool = False
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """Something printed or formatted: a value under its source text, or (with `spec`) inside a text."""

    value: Value
    name: str
    spec: str | None = None


Text = tuple[str | Item, ...]


@dataclass(eq=False, repr=False, slots=True)
class Print:
    """The items of one `print`, in order: values by name, and texts. Or what a probe shows: one value, or the parts of a
    tuple; `stats`: their statistics."""

    span: Span
    items: tuple[Item | Text, ...]
    event: Literal["print", "probe", "stats"] = "print"


@dataclass(eq=False, repr=False, slots=True)
class Fail:
    """Always fails when reached: a failed assert, a name that was never set, lengths that disagree."""

    span: Span
    kind: FaultKind
    numbers: tuple[Value, ...] = ()  # int scalars for the message
    words: tuple[str, ...] = ()  # after the numbers
    text: Text | None = None  # an assert's message: {0} of the kind
    labels: tuple[Label, ...] = ()


@dataclass(eq=False, repr=False, slots=True)
class Save:
    """Writes named values to a file, whole or not at all."""

    span: Span
    path: Text
    items: tuple[Item, ...]


@dataclass(eq=False, repr=False, slots=True)
class Seed:
    """Sets the random stream's key, and its counter (None: to 0)."""

    span: Span
    arg: Value
    counter: Value | None = None


@dataclass(eq=False, repr=False, slots=True)
class Stream:
    """Where the random stream is: its key, and its counter."""

    span: Span
    outs: tuple[Value, Value]


@dataclass(frozen=True)
class Made:
    """What made a value: an op, or with `operand` its derivative rule for that operand. `roles` say what the values are
    that it was made from, `sources` their numbers, with minus for a cotangent (0: not numbered), `number` that of the value or
    cotangent itself; `operands` and `out` are the types of the op's."""

    op: Op
    attrs: Attrs
    operands: tuple[Type, ...]
    out: Type
    roles: tuple[str, ...]
    sources: tuple[int, ...]
    number: int
    operand: int | None = None


@dataclass(eq=False, repr=False, slots=True)
class NanCheck:
    """Reached where `result` has a NaN or inf: fails if it was `made` so, from `args` without. A derivative's rule only makes
    a note of it, with which the `NanWalk` around fails at its end; `before`: whether the running sum had a NaN, or an
    inf, before its contribution."""

    span: Span
    made: Made
    args: tuple[Value, ...]
    result: Value
    before: tuple[Value, ...] = ()


@dataclass(eq=False, repr=False, slots=True)
class NanWalk:
    """A derivative begins, or `ends` with these results."""

    span: Span
    ends: bool = False
    results: tuple[Value, ...] = ()


NAMELESS = "->"  # the name of functions that have none in the program

Instr = (
    Apply
    | Const
    | Convert
    | Leaf
    | Feed
    | Undef
    | If
    | While
    | For
    | Call
    | Custom
    | Checkpoint
    | Derive
    | Print
    | Fail
    | Save
    | Seed
    | Stream
    | NanCheck
    | NanWalk
)


@dataclass(eq=False, repr=False, slots=True)
class Func:
    """A function checked for one kind of arguments. `body.params` are its params, then the outer names it reads;
    `body.yields` its results. `derived`: it computes a derivative, or stands for a block; no call in the program is one
    of it."""

    name: str
    body: Block
    span: Span
    derived: bool = False

    @property
    def called(self) -> str:
        """What messages call it: forms of it that also save values have a prime."""
        name = self.name.rstrip("'")
        return "this function" if name == NAMELESS else f"`{name}`"


@dataclass(eq=False, repr=False)
class Program:
    """A checked program. `main` has no params. `exports` holds the top-level names that can be read at its end, with the
    value that is true where the name is set (None: always)."""

    main: Func
    exports: dict[str, tuple[Value, Value | None]]
    default_float: Any
    derivatives: dict[str, Value] = field(default_factory=dict)  # asked for by `graphdsl grad`, by target: `w`, `w,b`
