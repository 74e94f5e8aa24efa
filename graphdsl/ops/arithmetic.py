"""Arithmetic on elements: `+ - * / // % **`, negation, and `scale`, with which derivatives multiply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdsl.ops import faults
from graphdsl.ops.forms import X, math_body, op1, op2
from graphdsl.ops.op import Attrs, Composite, Elementwise, Op
from graphdsl.ops.type_rules import arithmetic, arithmetic_dtype, elementwise, floating
from graphdsl.ops.types import DType

if TYPE_CHECKING:
    from graphdsl.core.emit import Emit
    from graphdsl.core.ir import Value
    from graphdsl.ops.scalar import Code, S

GROUP = "elementwise"


def opposite(e: Emit, g: Value) -> Value:
    """`-g` without -0.0."""
    return e.sub(e.like(0.0, g), g)


ADD = Op(
    name="add",
    doc="Sum; ints wrap.",
    typing=arithmetic,
    compute=Elementwise(op2("add"), numpy="add", numpy_ints=True, python="x + y"),
    vjp=(lambda e, g, y, a, b: g, lambda e, g, y, a, b: g),
    bound=0.5,
    reference="numpy.add",
    group=GROUP,
    minus_zeros=(-1,),
)

SUB = Op(
    name="sub",
    doc="Difference; ints wrap.",
    typing=arithmetic,
    compute=Elementwise(op2("sub"), numpy="subtract", numpy_ints=True, python="x - y"),
    vjp=(lambda e, g, y, a, b: g, lambda e, g, y, a, b: opposite(e, g)),
    reference="numpy.subtract",
    group=GROUP,
    minus_zeros=(0,),
)

MUL = Op(
    name="mul",
    doc="Product; ints wrap.",
    typing=arithmetic,
    compute=Elementwise(op2("mul"), numpy="multiply", numpy_ints=True, python="x * y"),
    vjp=(lambda e, g, y, a, b: e.scale(g, b), lambda e, g, y, a, b: e.scale(g, a)),
    reference="numpy.multiply",
    group=GROUP,
)

DIV = Op(
    name="div",
    doc="Quotient of floats; ints are made floats first.",
    typing=floating,
    compute=Elementwise(op2("div"), numpy="divide", python="x / y if y else kernel(x, y)"),
    vjp=(
        lambda e, g, y, a, b: e.scale(g, e.div(e.like(1.0, b), b)),
        lambda e, g, y, a, b: e.scale(g, e.neg(e.div(y, b))),
    ),
    reference="numpy.true_divide",
    group=GROUP,
    cost=5,
)


def _scale(code: Code, g: S, d: S) -> S:
    # adding +0.0 turns a product of -0.0 into +0.0; that changes no sum, and saves adding it where one begins
    return code.select(g.eq(0.0), code.const(g.dtype, 0.0), g * d + 0.0)


SCALE = Op(
    name="scale",
    doc="`g * d`, but +0.0 where `g` is 0, whatever `d` is, and never -0.0: how derivatives multiply.",
    typing=floating,
    compute=Elementwise(_scale, python="x * y + 0.0 if x else 0.0"),
    vjp=(lambda e, c, y, g, d: e.scale(c, d), lambda e, c, y, g, d: e.scale_both(c, g)),
    group=GROUP,
    minus_zeros=(),
)


def _scale_both(code: Code, c: S, g: S) -> S:
    return code.select(c.eq(0.0) | g.eq(0.0), code.const(c.dtype, 0.0), c * g + 0.0)


# A cotangent that is 0, and one that is not there because no path led to it, must not differ in anything: with
# `scale(c, g)` an infinite `c` would make a NaN of the one and nothing of the other.
SCALE_BOTH = Op(
    name="scale_both",
    doc="`c * g`, but +0.0 where either is 0: how derivatives of derivatives multiply two cotangents.",
    typing=floating,
    compute=Elementwise(_scale_both, python="x * y + 0.0 if x and y else 0.0"),
    vjp=(lambda e, k, y, c, g: e.scale_both(k, g), lambda e, k, y, c, g: e.scale_both(k, c)),
    group=GROUP,
    minus_zeros=(),
)

NEG = Op(
    name="neg",
    doc="The opposite; flips the sign of zeros and nan too, ints wrap.",
    typing=arithmetic,
    compute=Elementwise(op1("neg"), numpy="negative", numpy_ints=True, python="-x"),
    vjp=(lambda e, g, y, x: opposite(e, g),),
    bound=0.0,
    reference="numpy.negative",
    group=GROUP,
)


# ---- // and %, by NumPy's divmod (numpy/_core/src/npymath/npy_math_internal.h.src, `npy_divmod`) -------


def _int_divisor(code: Code, x: S, y: S) -> S:
    """`y`, or 1 where dividing by it would be undefined: by 0 (a fault), and of the least int by -1 (done apart)."""
    code.fail(y.eq(0), faults.DIVISION)
    return code.select(y.eq(0) | y.eq(-1), code.const(y.dtype, 1), y)


def _int_floordiv(code: Code, x: S, y: S) -> S:
    divisor = _int_divisor(code, x, y)
    quotient = x / divisor
    rest = x - quotient * divisor
    below = rest.ne(0) & ((rest ^ divisor) < 0)
    floored = code.select(below, quotient - 1, quotient)
    return code.select(y.eq(-1), -x, floored)


def _int_mod(code: Code, x: S, y: S) -> S:
    divisor = _int_divisor(code, x, y)
    rest = code.op2("rem", x, divisor)
    return code.select(rest.ne(0) & ((rest ^ divisor) < 0), rest + divisor, rest)


def _float_mod(code: Code, x: S, y: S) -> tuple[S, S]:
    """The remainder with the sign of `y`, and whether `y` had to be added once to get there."""
    rest = code.op2("rem", x, y)
    crossed = rest.ne(0.0) & ((y < 0.0) ^ (rest < 0.0))
    moved = code.select(crossed, rest + y, rest)
    return code.select(rest.eq(0.0), code.op2("copysign", code.const(x.dtype, 0.0), y), moved), crossed


def _float_floordiv(code: Code, x: S, y: S) -> S:
    rest = code.op2("rem", x, y)
    _, crossed = _float_mod(code, x, y)
    quotient = (x - rest) / y
    quotient = code.select(crossed, quotient - 1.0, quotient)
    down = code.op1("floor", quotient)
    near = code.select(quotient - down > 0.5, down + 1.0, down)
    zero = code.op2("copysign", code.const(x.dtype, 0.0), x / y)
    return code.select(y.eq(0.0), x / y, code.select(quotient.eq(0.0), zero, near))


def _floordiv(code: Code, x: S, y: S) -> S:
    return _float_floordiv(code, x, y) if x.dtype.is_float else _int_floordiv(code, x, y)


def _mod(code: Code, x: S, y: S) -> S:
    return _float_mod(code, x, y)[0] if x.dtype.is_float else _int_mod(code, x, y)


def _is_int(dtype: DType, attrs: Attrs) -> bool:
    return not dtype.is_float


FLOORDIV = Op(
    name="floordiv",
    doc="The floor of the quotient; an int divided by 0 is an error.",
    typing=elementwise(arithmetic_dtype, fails=_is_int),
    compute=Elementwise(_floordiv, python_ints="x // y if y > 0 else kernel(x, y)"),
    faults=(faults.DIVISION,),
    bound=0.0,
    reference="numpy.floor_divide",
    group=GROUP,
    cost=20,
)

MOD = Op(
    name="mod",
    doc="The rest of `//`, with the sign of the divisor; an int by 0 is an error.",
    typing=elementwise(arithmetic_dtype, fails=_is_int),
    compute=Elementwise(_mod, python_ints="x % y if y > 0 else kernel(x, y)"),
    vjp=(lambda e, g, y, a, b: g, lambda e, g, y, a, b: e.scale(g, e.neg(e.floordiv(a, b)))),
    faults=(faults.DIVISION,),
    bound=0.0,
    reference="numpy.remainder",
    group=GROUP,
    cost=20,
)


# ---- powers ------------------------------------------------------------------------------------------


def _int_pow(code: Code, x: S, k: S) -> S:
    """By squaring over all bits of `k`, from the lowest; the product wraps, so the order does not matter."""
    code.fail(k < 0, faults.NEGATIVE_POWER, k)
    result, square = code.const(x.dtype, 1), x
    for bit in range(8 * x.dtype.bytes - 1):
        taken = (code.op2("lshr", k, code.const(k.dtype, bit)) & 1).ne(0)
        result = code.select(taken, result * square, result)
        square = square * square
    return result


def _pow(code: Code, x: S, y: S) -> S:
    return math_body("pow")(code, x, y) if x.dtype.is_float else _int_pow(code, x, y)


def _pow_by_exponent(e: Emit, g: Value, y: Value, x: Value, k: Value) -> Value:
    """`y log x`; at `x = 0` the limit for `k > 0` is 0, and so it is taken for `k = 0` too (as PyTorch does)."""
    settled = e.and_(e.eq(x, e.like(0.0, x)), e.ge(k, e.like(0.0, k)))
    return e.scale(g, e.scale(y, e.log(e.where(settled, e.like(1.0, x), x))))


POW = Op(
    name="pow",
    doc="`x ** y`. An int to a negative int power is an error.",
    typing=elementwise(arithmetic_dtype, fails=_is_int),
    compute=Elementwise(_pow),
    vjp=(
        # scale: 0 where the exponent is 0, also at x = 0, and yet with the right mixed derivative there
        lambda e, g, y, x, k: e.scale(g, e.scale(k, e.pow(x, e.sub(k, e.like(1.0, k))))),
        _pow_by_exponent,
    ),
    faults=(faults.NEGATIVE_POWER,),
    bound=0.55,
    reference="numpy.power",
    group=GROUP,
    cost=60,
)


def _powi(code: Code, x: S, *, k: int) -> S:
    if k < 0 and not x.dtype.is_float:
        code.fail(code.const(x.dtype, 0).eq(0), faults.NEGATIVE_POWER, code.const(x.dtype, k))
        return x
    if k == 0:
        one = code.const(x.dtype, 1)
        return code.select(x.eq(x), one, one)  # an element for each of `x`
    result = x
    for bit in bin(abs(k))[3:]:
        result = result * result
        if bit == "1":
            result = result * x
    return 1.0 / result if k < 0 else result


def _powi_slope(e: Emit, g: Value, y: Value, x: Value, *, k: int) -> Value | None:
    if k == 0:
        return None
    if k == 1:
        return g
    return e.scale(g, e.mul(e.like(float(k), x), power(e, x, k - 1)))


def power(e: Emit, x: Value, k: int) -> Value:
    """`x ** k` for a literal `k`: by repeated squaring while it is small."""
    if k == 1:
        return x
    if abs(k) <= 8:
        return e.powi(x, k=k)
    return e.pow(x, e.like(float(k) if x.type.dtype.is_float else k, x))


def _powi_fails(dtype: DType, attrs: Attrs) -> bool:
    return attrs["k"] < 0 and not dtype.is_float


POWI = Op(
    name="powi",
    doc="`x ** k` for a literal int `k` of at most 8: repeated squaring over the bits of `k` from the highest.",
    typing=elementwise(arithmetic_dtype, fails=_powi_fails),
    compute=Elementwise(_powi),
    vjp=(_powi_slope,),
    faults=(faults.NEGATIVE_POWER,),
    bound=4.0,
    reference="numpy.power",
    group=GROUP,
)

SQUARE = Op(
    name="square",
    doc="`x * x`.",
    params=X,
    typing=arithmetic,
    compute=Composite(lambda e, x: e.powi(x, k=2)),
    reference="numpy.square",
    group=GROUP,
)


ABS = Op(
    name="abs",
    doc="Absolute value; its derivative at 0 is 0. The least int stays itself.",
    params=X,
    typing=arithmetic,
    compute=Elementwise(op1("abs"), numpy="absolute", numpy_ints=True, python="abs(x)"),
    vjp=(lambda e, g, y, x: e.scale(g, e.sign(x)),),
    bound=0.0,
    reference="numpy.absolute",
    group=GROUP,
)


def _sign(code: Code, x: S) -> S:
    zero, one = code.const(x.dtype, 0), code.const(x.dtype, 1)
    return code.select(x > zero, one, code.select(x < zero, -one, x))


SIGN = Op(
    name="sign",
    doc="-1, 0 or 1; zeros keep their sign, nan stays nan.",
    params=X,
    typing=arithmetic,
    compute=Elementwise(_sign),
    bound=0.0,
    reference="numpy.sign",
    group=GROUP,
)
