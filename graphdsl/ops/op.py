"""The form of an op's entry: all there is to know of one operation, in one place.

From an entry come the checker's rule, eager evaluation, native code, both derivative modes, the line
of `graphdsl ops`, and the generated tests. The entries themselves stand in the other files of this
folder; `graphdsl.ops.table` collects them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from graphdsl.ops.types import DType, Type
from graphdsl.source.diagnostic import FaultKind
from graphdsl.source.record import dataclass

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, Reader, S

Attrs = Mapping[str, Any]
FoldKind = Literal["sum", "prod", "max", "min"]  # of bools, `max` is any and `min` is all


class TypeProblem(Exception):
    """What a type rule says of operands that do not fit. `operand` is the one to underline, if it is one."""

    def __init__(self, code: str, message: str, hint: str | None = None, operand: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.operand = operand


# ---- how a call is written --------------------------------------------------------------------


class Kind(enum.Enum):
    """What an argument of a call is, and what becomes of it."""

    TENSOR = "tensor"  # an operand
    TENSORS = "tensors"  # a list or tuple written out: its items are operands
    OPERANDS = "operands"  # all positional arguments that are left, each an operand
    SIZES = "sizes"  # dims, as arguments or as one list: attr `name` holds each as an int, or where it is not known its
    # `Size` (None: a new one); those that are no ints are i64 scalar operands after the tensors, in order
    AXES = "axes"  # known when checked: none, an int, or a tuple of ints → attr, normalised by the type rule
    STATIC = "static"  # an int, bool or string known when checked → attr
    TEXT = "text"  # a plain string → attr


REQUIRED: Any = object()


@dataclass(frozen=True)
class Param:
    name: str
    kind: Kind = Kind.TENSOR
    default: Any = REQUIRED


# ---- types -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """What a type rule may ask of the program: its default float (`default f32`)."""

    default_float: DType


@dataclass(frozen=True)
class Typing:
    """What a type rule finds: the dtype each operand is converted to first, the results, and
    whether this use can fail as it runs (sizes or values that only then are known)."""

    operands: tuple[DType, ...]
    outs: tuple[Type, ...]
    fails: bool = False
    attrs: Attrs | None = None  # normalised (axes counted from 0, …); None: as given


TypeRule = Callable[[Setting, tuple[Type, ...], Attrs], Typing]


# ---- what is computed -------------------------------------------------------------------------


@dataclass(frozen=True)
class Elementwise:
    """One element from one element of each operand, with broadcasting.

    `body(code, *xs, **attrs)` gets scalars of the operands' dtypes. `numpy` names the function that computes the same
    bits (whatever strides and platform; floats only unless `numpy_ints`, which covers bools too), `python` the
    expression over Python floats `x`, `y`, `z` that does (and over ints, then wrapped, and bools where `numpy_ints`);
    `python_ints` one over ints whose values are in range. `sqrt` may stand in them, and `kernel`: the op itself, for
    what is rare.
    """

    body: Callable[..., S]
    numpy: str | None = None
    numpy_ints: bool = False
    python: str | None = None
    python_ints: str | None = None


@dataclass(frozen=True)
class Pointwise:
    """Each result element from elements of the operands at computed places: what moves or makes data.

    `at(code, place, operands, out_sizes, attrs)` is the access pattern for compiled code, with a `Reader` for each
    operand (scalar ones have rank 0); a reader of an empty operand may be asked for place 0, to no use.
    `numpy(*operands, **attrs)` does the same to arrays (a view is fine) and makes its checks.
    `sizes(code, operands, attrs)` gives the sizes of the result and makes the checks in compiled code: needed where the
    type does not tell the sizes, or the op can fail.
    """

    at: Callable[[Code, tuple[S, ...], tuple[Reader, ...], tuple[S, ...], Attrs], S]
    numpy: Callable[..., Any]
    sizes: Callable[[Code, Sequence[Reader], Attrs], Sequence[S]] | None = None


@dataclass(frozen=True)
class Reduce:
    """Over `attrs["axes"]` (a sorted tuple), in the order of grammars/README.md, "Numbers".

    `attrs["keepdims"]` keeps the axes as 1.
    `search`: where the first element is that is equal to the result, counted along the axes.
    """

    fold: FoldKind
    search: bool = False


@dataclass(frozen=True)
class SumTo:
    """The sum to the shape of operand 1, over the axes that are 1 there and those that it lacks in front."""


@dataclass(frozen=True)
class Contract:
    """The matrix product of grammars/README.md, "Numbers"; `attrs["guard"]` lists the operands of which each, if all its
    elements are 0, makes the result +0.0 throughout."""


@dataclass(frozen=True)
class Scatter:
    """A copy of operand 0 with elements replaced (`add=False`) or added to, in order; in place where it is dead.

    The place is as in the op `index`: attrs["spec"] and its operands."""

    add: bool


@dataclass(frozen=True)
class Draw:
    """Random numbers: element `j` from block `counter + j`. `body(code, w0, w1, w2, w3, *params)` gets the
    four 32-bit words of the Philox block as i64 scalars below 2**32."""

    body: Callable[..., S]


@dataclass(frozen=True)
class Host:
    """Done by a Python function in both modes (`load`, LAPACK). `run(runtime, *operands, **attrs)`."""

    run: Callable[..., Any]


@dataclass(frozen=True)
class Composite:
    """Written in other ops: `expand(emit, *operands, **attrs)` is carried out where the call is checked."""

    expand: Callable[..., Value | tuple[Value, ...]]


Reducing = Reduce | SumTo
Compute = Elementwise | Pointwise | Reducing | Contract | Scatter | Draw | Host | Composite


# ---- derivatives ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Into:
    """A contribution that is added to the running sum by an op of its own: `op(sum, *args, **attrs)`.

    So a gradient of `x[i]` costs what one element costs."""

    op: str
    args: tuple[Value, ...]
    attrs: Attrs


# rule(emit, g, y, *operands, **attrs): the contribution to one operand; None: there is none
Rule = Callable[..., "Value | Into | None"]
# each(emit, i, g, y, *operands, **attrs): for ops with any number of operands
EachRule = Callable[..., "Value | Into | None"]


class Effect(enum.Enum):
    NONE = "none"
    RANDOM = "random"  # moves the stream's counter
    READ = "read"  # reads a file


@dataclass(frozen=True, eq=False)
class Op:
    """One operation. See the fields' types for what each part means.

    `linear` names the operands in which the op is linear (jointly, as in `update`; `(-1,)`: in all, as in `concat`):
    its forward rule is then the op on the tangents. For another elementwise op the forward rule follows from `vjp`
    (each is `scale(g, d)`, which is symmetric). Any other op that has a `vjp` states
    `jvp(emit, tangents, y, *operands, **attrs)`; a tangent is None where an operand has none.
    `prepare(emit, args, attrs)` is what `Emit` does to a call first (checks of operands that are ops of their own): it
    gives the operands and attrs to go on with, and leaves alone those that it gave.
    `shape_only` names operands of which only the shape is read.
    `bound` is the error in ulps (0.5: correctly rounded; 0: exact).
    `minus_zeros` names the operands from which alone a -0.0 in a result may come, or tells them by the operands' types.
    """

    name: str
    doc: str
    typing: TypeRule
    compute: Compute
    params: tuple[Param, ...] | None = None  # None: cannot be called by this name in a program
    vjp: tuple[Rule | None, ...] | EachRule | None = None
    jvp: Callable[..., Value | None] | None = None
    linear: tuple[int, ...] = ()
    shape_only: tuple[int, ...] = ()
    prepare: Callable[[Emit, tuple[Value, ...], Attrs], tuple[tuple[Value, ...], Attrs]] | None = None
    faults: tuple[FaultKind, ...] = ()
    effect: Effect = Effect.NONE
    minus_zeros: tuple[int, ...] | Callable[[Sequence[Type]], tuple[int, ...]] | None = (
        None  # (-1,): all; None: it makes some
    )
    cost: int = 1  # about how many additions an element takes
    bound: float = 0.5
    reference: str | None = None  # the function that settles special cases: "numpy.sqrt"
    group: str = ""  # the heading under which `graphdsl ops` lists it
