"""A slow and plain interpreter of op entries for tests: bodies over NumPy arrays, sums and products by NumPy.

It knows nothing of eager or compiled code, so that entries can be checked by themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from graphdsl.core.ir import Apply, Block, Const, Value
from graphdsl.ops.indexing import write
from graphdsl.ops.op import Contract, Elementwise, Host, Pointwise, Reduce, Scatter, SumTo
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import BOOL, F32, I32, I64, DType
from graphdsl.source.diagnostic import Fault, FaultKind

# functions whose bodies belong to graphdsl.ops.math, which has tests of its own
NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}
NUMPY_NAMES |= {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
SAME_NAMES = "exp log sin cos tan tanh sinh cosh cbrt exp2 expm1 log1p log2 log10 hypot logaddexp".split()
KNOWN = {name: getattr(np, NUMPY_NAMES.get(name, name)) for name in (*SAME_NAMES, *NUMPY_NAMES)}
KNOWN["softplus"] = lambda x: np.logaddexp(x.dtype.type(0), x)
KNOWN["rsqrt"] = lambda x: 1 / np.sqrt(x)
KNOWN |= {"erf": special.erf, "erfc": special.erfc, "lgamma": special.gammaln, "digamma": special.digamma}
KNOWN["gelu"] = lambda x: x * special.ndtr(x)
INTS = {F32: np.int32, I32: np.int32}


def _sigmoid(x: Any) -> Any:
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


class Arrays(Code):
    """Bodies over arrays: every `S.ref` is an array of its dtype."""

    def make(self, dtype: DType, ref: Any) -> S:
        return S(self, dtype, np.asarray(ref, dtype.numpy))

    def const(self, dtype: DType, value: Any) -> S:
        return self.make(dtype, value)

    def op2(self, name: str, x: S, y: S) -> S:
        assert x.dtype is y.dtype, name
        a, b = x.ref, y.ref
        match name:
            case "div" if not x.dtype.is_float:
                divisor = np.where(b == 0, 1, b)
                down = np.floor_divide(a, divisor)
                result = down + ((down * divisor != a) & ((a < 0) != (divisor < 0))).astype(a.dtype)
            case "rem" if x.dtype.is_float:
                result = np.fmod(a, b)
            case "rem":
                result = np.where(b == 1, 0, np.fmod(a, np.where(b == 0, 1, b)))
            case "lshr":
                unsigned = a.astype({4: np.uint32, 8: np.uint64}[a.itemsize])
                result = (unsigned >> b.astype(unsigned.dtype)).astype(a.dtype)
            case _:
                names = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "copysign": "copysign"}
                names |= {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
                names |= {"shl": "left_shift", "ashr": "right_shift"}
                result = getattr(np, names[name])(a, b)
        return self.make(x.dtype, result)

    def compare(self, name: str, x: S, y: S) -> S:
        names = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal"}
        names |= {"gt": "greater", "ge": "greater_equal"}
        return self.make(BOOL, getattr(np, names[name])(x.ref, y.ref))

    def op1(self, name: str, x: S) -> S:
        names = {"neg": "negative", "not": "invert", "abs": "absolute"}
        return self.make(x.dtype, getattr(np, names.get(name, name))(x.ref))

    def fma(self, x: S, y: S, z: S) -> S:
        return self.make(x.dtype, x.ref * y.ref + z.ref)

    def select(self, condition: S, x: S, y: S) -> S:
        assert x.dtype is y.dtype
        return self.make(x.dtype, np.where(condition.ref, x.ref, y.ref))

    def convert(self, x: S, dtype: DType) -> S:
        a = np.asarray(x.ref)
        if x.dtype.is_float and dtype.is_int:
            info = np.iinfo(dtype.numpy)
            whole = np.trunc(np.where(np.isnan(a), 0, a).astype(np.float64))
            inside = np.where((whole >= float(info.max)) | (whole <= float(info.min)), 0, whole).astype(dtype.numpy)
            return self.make(
                dtype, np.where(whole >= info.max, info.max, np.where(whole <= info.min, info.min, inside))
            )
        return S(self, dtype, a.astype(dtype.numpy))

    def bits(self, x: S) -> S:
        dtype = I32 if x.dtype is F32 else I64
        return self.make(dtype, x.ref.view(dtype.numpy))

    def from_bits(self, x: S) -> S:
        raise_to = {I32: np.float32, I64: np.float64}[x.dtype]
        return S(self, F32 if x.dtype is I32 else DType.F64, np.asarray(x.ref).view(raise_to))

    def mul_high(self, x: S, y: S) -> S:
        raise NotImplementedError

    def fail(self, condition: S, kind: FaultKind, *numbers: S) -> None:
        shape = np.broadcast_shapes(*(np.shape(s.ref) for s in (condition, *numbers)))
        where = np.broadcast_to(condition.ref, shape)
        if where.any():
            first = np.flatnonzero(where)[0]
            raise Fault(kind, *(np.broadcast_to(n.ref, shape).reshape(-1)[first].item() for n in numbers))


def apply(op: Any, args: list[Any], attrs: Any) -> Any:
    """The result of one op, as an array."""
    match op.compute:
        case Elementwise(body=body):
            if op.name in KNOWN:
                return KNOWN[op.name](*args)
            if op.name == "sigmoid":
                return _sigmoid(args[0]).astype(args[0].dtype)
            if op.name == "sigmoid_slope":
                return (_sigmoid(args[0]) * _sigmoid(-args[0])).astype(args[0].dtype)
            if op.name == "pow" and args[0].dtype.kind == "f":
                return np.power(*args)
            code = Arrays()
            made = body(code, *(S(code, DType.of(a), a) for a in args), **attrs)
            return np.broadcast_to(made.ref, np.broadcast_shapes(*(np.shape(a) for a in args)))
        case Pointwise(numpy=numpy):
            return np.asarray(numpy(*args, **attrs))
        case Reduce():
            return _reduce(op.name, args, attrs)
        case SumTo():
            return _sum_to(args[0], np.shape(args[1]))
        case Contract():
            nothing = not all(np.any(args[i]) for i in attrs["guard"])
            result = np.matmul(np.nan_to_num(args[0]) if nothing else args[0], args[1])
            return np.zeros_like(result) if nothing else result
        case Scatter(add=add):
            x = np.array(args[0])
            write(x, args[1], tuple(args[2:]), attrs["spec"], add)
            return x
        case Host(run=run):
            return run(None, *args, **attrs)
    raise AssertionError(op.name)


def _sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    lead = x.ndim - len(shape)
    x = x.sum(axis=tuple(range(lead))) if lead else x
    return x.sum(axis=tuple(a for a, d in enumerate(shape) if d == 1 and x.shape[a] != 1), keepdims=True)


def _reduce(kind: str, args: list[Any], attrs: Any) -> Any:
    x = args[0]
    axes, keepdims = attrs["axes"], attrs["keepdims"]
    if kind in ("argmax", "argmin"):
        return getattr(np, kind)(x, axis=axes[0] if len(axes) == 1 else None, keepdims=keepdims)
    return getattr(np, kind)(x, axis=axes, keepdims=keepdims)


def run(block: Block, values: dict[Value, Any]) -> list[Any]:
    """What a block of `Apply`s and `Const`s yields, its params given. Results have the types the core says."""
    with np.errstate(all="ignore"):
        for instr in block.body:
            match instr:
                case Const(value=number, out=out):
                    values[out] = np.asarray(number, out.type.dtype.numpy).reshape(out.type.shape)
                case Apply(op=op, args=args, attrs=attrs, outs=outs):
                    result = apply(op, [values[a] for a in args], attrs)
                    results = result if isinstance(result, tuple) else (result,)
                    for out, made in zip(outs, results, strict=True):
                        check(op.name, made, out)
                        values[out] = np.asarray(made)
                case _:
                    raise AssertionError(instr)
    return [values[v] for v in block.yields]


def check(name: str, made: Any, out: Value) -> None:
    """The type rule told the truth."""
    made = np.asarray(made)
    assert made.dtype.name == out.type.dtype.numpy, (name, made.dtype, out.type)
    assert made.ndim == out.type.rank, (name, made.shape, out.type)
    for size, dim in zip(made.shape, out.type.shape, strict=True):
        assert not isinstance(dim, int) or dim == size, (name, made.shape, out.type)
