"""The syntax tree. Every node has its exact span; nodes compare by identity.

Walkers over it are iterative (`graphdsl.syntax.walk`): trees may be 100,000 deep.
"""

from __future__ import annotations

from typing import Literal

from graphdsl.source.record import dataclass, field
from graphdsl.source.span import Source, Span


@dataclass(eq=False, repr=False, slots=True)
class Node:
    span: Span


# ---- expressions ------------------------------------------------------------------------------


@dataclass(eq=False, repr=False, slots=True)
class Number(Node):
    """An int or float literal (ints are within i64; `-9223372036854775808` arrives as one Number)."""

    value: int | float


@dataclass(eq=False, repr=False, slots=True)
class Bool(Node):
    value: bool


@dataclass(eq=False, repr=False, slots=True)
class NoneLit(Node):
    """`none`: in an index or as an argument."""


@dataclass(eq=False, repr=False, slots=True)
class Gap(Node):
    """`{expression:spec}` in a string."""

    expr: Expr
    spec: str


@dataclass(eq=False, repr=False, slots=True)
class String(Node):
    """A string: texts (escapes resolved) and gaps, in order."""

    parts: tuple[str | Gap, ...]


@dataclass(eq=False, repr=False, slots=True)
class Name(Node):
    """NFC-normalised. `nan`, `inf`, `pi` are Numbers."""

    id: str


@dataclass(eq=False, repr=False, slots=True)
class Unary(Node):
    op: Literal["-", "~", "not"]
    operand: Expr


@dataclass(eq=False, repr=False, slots=True)
class Binary(Node):
    """Arithmetic, comparison, `and`, `or`. `op_span` is the operator alone."""

    op: str
    left: Expr
    right: Expr
    op_span: Span


@dataclass(eq=False, repr=False, slots=True)
class Conditional(Node):
    """`then if cond else orelse`"""

    cond: Expr
    then: Expr
    orelse: Expr


@dataclass(eq=False, repr=False, slots=True)
class Range(Node):
    start: Expr
    stop: Expr
    step: Expr | None


@dataclass(eq=False, repr=False, slots=True)
class ListLit(Node):
    items: tuple[Expr, ...]


@dataclass(eq=False, repr=False, slots=True)
class TupleLit(Node):
    items: tuple[Expr, ...]


@dataclass(eq=False, repr=False, slots=True)
class Lambda(Node):
    params: tuple[Name, ...]
    body: Expr


@dataclass(eq=False, repr=False, slots=True)
class Arg(Node):
    """An argument; `name` where it is a named one."""

    name: Name | None
    value: Expr


@dataclass(eq=False, repr=False, slots=True)
class CallExpr(Node):
    """`func(args)`. `x.sum(axis=0)` is a call of an `Attribute`."""

    func: Expr
    args: tuple[Arg, ...]


@dataclass(eq=False, repr=False, slots=True)
class Slice(Node):
    start: Expr | None
    stop: Expr | None
    step: Expr | None


@dataclass(eq=False, repr=False, slots=True)
class Ellipsis_(Node):  # noqa: N801
    """`...` in an index."""


@dataclass(eq=False, repr=False, slots=True)
class Index(Node):
    """`value[items]`"""

    value: Expr
    items: tuple[Expr | Slice | Ellipsis_, ...]


@dataclass(eq=False, repr=False, slots=True)
class Attribute(Node):
    value: Expr
    name: Name


Expr = (
    Number
    | Bool
    | NoneLit
    | String
    | Name
    | Unary
    | Binary
    | Conditional
    | Range
    | ListLit
    | TupleLit
    | Lambda
    | CallExpr
    | Index
    | Attribute
)


# ---- annotations ------------------------------------------------------------------------------


@dataclass(eq=False, repr=False, slots=True)
class TypeExpr(Node):
    """`f64[n, 3, _]`: a dim is an int, a Name, or None for `_`; a bare dtype (a scalar) has no dims."""

    dtype: str
    dims: tuple[int | Name | None, ...]


@dataclass(eq=False, repr=False, slots=True)
class TupleType(Node):
    items: tuple[TypeExpr, ...]


# ---- statements -------------------------------------------------------------------------------


@dataclass(eq=False, repr=False, slots=True)
class Declare(Node):
    """`param`, `input` or `const`."""

    kind: Literal["param", "input", "const"]
    name: Name
    type: TypeExpr | None
    value: Expr | None


@dataclass(eq=False, repr=False, slots=True)
class Assign(Node):
    """`targets = value`. A target is a Name or an Index (possibly of an Index) whose innermost value is a Name.

    `type` is an annotation of the one Name. `op` is `+` for `+=` and so on (one target), else None.
    """

    targets: tuple[Name | Index, ...]
    type: TypeExpr | None
    op: str | None
    value: Expr


@dataclass(eq=False, repr=False, slots=True)
class Update(Node):
    """`name := value`"""

    name: Name
    value: Expr


@dataclass(eq=False, repr=False, slots=True)
class ExprStmt(Node):
    value: Expr


@dataclass(eq=False, repr=False, slots=True)
class BlockNode(Node):
    body: list[Stmt] = field(default_factory=list)


@dataclass(eq=False, repr=False, slots=True)
class IfStmt(Node):
    """`else if` is an IfStmt alone in `orelse`."""

    cond: Expr
    then: BlockNode
    orelse: BlockNode | None


@dataclass(eq=False, repr=False, slots=True)
class WhileStmt(Node):
    cond: Expr
    body: BlockNode


@dataclass(eq=False, repr=False, slots=True)
class ForStmt(Node):
    """`targets` as in an assignment of a tuple: names only."""

    targets: tuple[Name, ...]
    over: Expr
    body: BlockNode


@dataclass(eq=False, repr=False, slots=True)
class Break(Node):
    pass


@dataclass(eq=False, repr=False, slots=True)
class Continue(Node):
    pass


@dataclass(eq=False, repr=False, slots=True)
class Return(Node):
    """`return`, `return x`, `return a, b` (a TupleLit)."""

    value: Expr | None


@dataclass(eq=False, repr=False, slots=True)
class FnParam(Node):
    name: Name
    type: TypeExpr | None
    default: Expr | None


@dataclass(eq=False, repr=False, slots=True)
class FnDef(Node):
    """`fn f(x) = e` has a body of one Return. `is_prop` for `prop fn`."""

    name: Name
    params: tuple[FnParam, ...]
    result: TypeExpr | TupleType | None
    body: BlockNode
    is_prop: bool = False


@dataclass(eq=False, repr=False, slots=True)
class VjpDef(Node):
    """`vjp f(x; y, gy) = …`: names of the arguments, then of results and cotangents."""

    name: Name
    params: tuple[Name, ...]
    results: tuple[Name, ...]
    body: BlockNode


@dataclass(eq=False, repr=False, slots=True)
class Use(Node):
    """`use nn`, `use "lib/mine.gdl" as mine`"""

    module: str
    is_path: bool
    alias: Name


@dataclass(eq=False, repr=False, slots=True)
class Default(Node):
    """`default f32`"""

    dtype: str


@dataclass(eq=False, repr=False, slots=True)
class PrintStmt(Node):
    items: tuple[Expr, ...]


@dataclass(eq=False, repr=False, slots=True)
class AssertStmt(Node):
    cond: Expr
    message: Expr | None


@dataclass(eq=False, repr=False, slots=True)
class SaveStmt(Node):
    path: Expr
    items: tuple[Expr, ...]


@dataclass(eq=False, repr=False, slots=True)
class SeedStmt(Node):
    value: Expr


@dataclass(eq=False, repr=False, slots=True)
class Checkpoint(Node):
    body: BlockNode


Stmt = (
    Declare
    | Assign
    | Update
    | ExprStmt
    | IfStmt
    | WhileStmt
    | ForStmt
    | Break
    | Continue
    | Return
    | FnDef
    | VjpDef
    | Use
    | Default
    | PrintStmt
    | AssertStmt
    | SaveStmt
    | SeedStmt
    | Checkpoint
)


@dataclass(eq=False, repr=False, slots=True)
class Module:
    """A parsed file. `comments` are the ranges of its comments, in order."""

    source: Source
    body: list[Stmt]
    comments: list[Span] = field(default_factory=list)
    defaults: dict[Source, str] = field(default_factory=dict)  # the default floats of modules that say one
