"""What a name holds where paths join: one type for what comes from each (grammars/README.md, "Control flow").

`Shape`s are what a binding looks like without its values. They join upwards; `fit` converts a binding to a joined shape
where it comes from, `hold` makes the binding that is read afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

from graphdsl.check.context import Frame
from graphdsl.check.values import POISON, Binding, Special, Str, Tensor, Tuple, kind_name
from graphdsl.core.ir import Convert, Undef, Value
from graphdsl.ops.type_rules import same_dim, same_shape
from graphdsl.ops.types import Dim, DType, Size, Type, join_dtypes
from graphdsl.source.record import dataclass
from graphdsl.source.span import Span
from graphdsl.source.words import counted


@dataclass(frozen=True)
class Fixed:
    """A function, a string or nothing: the same on all paths."""

    binding: Binding


@dataclass(frozen=True)
class Items:
    parts: tuple[Shape, ...]


class Bottom:
    """Nothing is known: a name that is not set, or what came of an error."""


BOTTOM = Bottom()
Shape = Type | Fixed | Items | Bottom
Path = tuple[int, ...]  # which part of a tuple
NewSize = Callable[[Path, int], Size]  # of a part and an axis


class JoinProblem(Exception):
    """Two things that no name can hold in turn. The message lacks only the name."""


def shape_of(binding: Binding) -> Shape:
    """What a binding looks like."""
    match binding:
        case Tensor(value=value):
            return value.type
        case Tuple(items=items):
            return Items(tuple(shape_of(i) for i in items))
        case Special(kind="poison"):
            return BOTTOM
        case _:
            return Fixed(binding)


class Joiner:
    """Joins shapes; a dim that differs becomes the size that `new_size` gives for its leaf and axis."""

    def __init__(self, default_float: DType, new_size: NewSize) -> None:
        self.default_float = default_float
        self.new_size = new_size

    def join(self, a: Shape, b: Shape, path: Path = ()) -> Shape:
        match a, b:
            case Bottom(), _:
                return b
            case _, Bottom():
                return a
            case Type(), Type():
                return self._tensors(a, b, path)
            case Items(parts=p), Items(parts=q) if len(p) == len(q):
                return Items(tuple(self.join(x, y, (*path, i)) for i, (x, y) in enumerate(zip(p, q, strict=True))))
            case Items(parts=p), Items(parts=q):
                raise JoinProblem(f"has {counted(len(p), 'part')} on one path and {len(q)} on another")
            case Fixed(binding=x), Fixed(binding=y) if same_thing(x, y):
                return a
        if shape_name(a) == shape_name(b):
            what = "functions" if isinstance(a, Fixed) and not isinstance(a.binding, Str) else "strings"
            raise JoinProblem(f"holds different {what} on the paths")
        raise JoinProblem(f"is {shape_name(a)} on one path and {shape_name(b)} on another")

    def _tensors(self, a: Type, b: Type, path: Path) -> Type:
        if a.rank != b.rank:
            raise JoinProblem(f"is {a} on one path and {b} on another, and needs one rank")
        dtype, weak = join_dtypes((a, b), self.default_float)
        dims: list[Dim] = []
        for axis, (p, q) in enumerate(zip(a.shape, b.shape, strict=True)):
            dims.append(p if same_dim(p, q) else self.new_size(path, axis))
        return Type(dtype, tuple(dims), weak)


def shape_name(shape: Shape) -> str:
    """What a message calls it."""
    match shape:
        case Type():
            return str(shape)
        case Items(parts=parts):
            return f"a tuple of {len(parts)}"
        case Fixed(binding=binding):
            return kind_name(binding)
        case _:
            return "nothing"


def same_thing(a: Binding, b: Binding) -> bool:
    """Whether two functions or strings are the same on both paths."""
    match a, b:
        case Str(), Str() if a.plain is not None:
            return a.plain == b.plain
    if type(a) is type(b) and hasattr(a, "node"):
        return a.node is b.node and getattr(a, "captured", ()) == getattr(b, "captured", ())  # type: ignore[union-attr]
    if type(a) is type(b) and hasattr(a, "op"):
        return a.name == b.name  # type: ignore[union-attr]
    return a is b


def equal_shapes(a: Shape, b: Shape) -> bool:
    """Whether joining changed nothing."""
    match a, b:
        case Type(), Type():
            same = a.dtype is b.dtype and a.weak == b.weak and a.rank == b.rank
            return same and same_shape(a.shape, b.shape)
        case Items(parts=p), Items(parts=q):
            return len(p) == len(q) and all(equal_shapes(x, y) for x, y in zip(p, q, strict=True))
        case Fixed(), Fixed():
            return same_thing(a.binding, b.binding)
    return a is b


# ---- values for a shape ------------------------------------------------------------------------------


def types_in(shape: Shape) -> list[Type]:
    """The types of the values that a binding of this shape holds."""
    match shape:
        case Type():
            return [shape]
        case Items(parts=parts):
            return [t for part in parts for t in types_in(part)]
        case _:
            return []


def fit(f: Frame, binding: Binding | None, shape: Shape, span: Span) -> list[Value]:
    """The values of a binding, converted to a joined shape, in the block that is open; placeholders for nothing."""
    match binding, shape:
        case Tensor(value=value), Type():
            return [joined(f, value, shape, span)]
        case Tuple(items=items), Items(parts=parts):
            return [v for item, part in zip(items, parts, strict=True) for v in fit(f, item, part, span)]
    return [undefined(f, t, span) for t in types_in(shape)]


def undefined(f: Frame, type: Type, span: Span) -> Value:
    """A placeholder that is never read."""
    out = Value(type)
    f.block.body.append(Undef(span, out))
    return out


def joined(f: Frame, value: Value, type: Type, span: Span) -> Value:
    """`value` with the dtype of a join: the same value still, between floats."""
    if value.type.dtype is type.dtype:
        return value
    return converted(f, value, type.with_shape(value.type.shape), span)


def converted(f: Frame, value: Value, type: Type, span: Span) -> Value:
    """`value` with another type of the same rank: passed on where a derivative looks through it, else cast."""
    if value.type.dtype is not type.dtype and not (value.type.dtype.is_float and type.dtype.is_float):
        value = f.at(span).convert(value, type.dtype)
    if same_type(value.type, type):
        return value
    out = Value(type, value.name)
    f.block.body.append(Convert(span, value, out))
    return out


def same_type(a: Type, b: Type) -> bool:
    """Whether two types are the same, dims included."""
    return equal_shapes(a, b)


def hold(shape: Shape, values: list[Value], name: str | None) -> Binding:
    """The binding of this shape that holds these values (taken from the front of the list)."""
    match shape:
        case Type():
            value = values.pop(0)
            if name is not None and name[0] != "%":
                value.name = value.name or name
            return Tensor(value)
        case Items(parts=parts):
            return Tuple(tuple(hold(part, values, name) for part in parts))
        case Fixed(binding=binding):
            return binding
        case _:
            return POISON
