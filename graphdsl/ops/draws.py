"""Random numbers: what is made of one block of the stream. Element `j` of a draw uses block `counter + j` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdsl.ops import faults
from graphdsl.ops.creation import SIZES
from graphdsl.ops.forms import math_body
from graphdsl.ops.op import Attrs, Draw, Effect, Op, Setting, Typing
from graphdsl.ops.type_rules import size_operands, sizes_of
from graphdsl.ops.types import F32, F64, I64, DType, Type

if TYPE_CHECKING:
    from graphdsl.ops.scalar import Code, S

GROUP = "random"
TAU = 6.283185307179586


def _draw_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    shape, unknown = sizes_of(attrs["sizes"])
    dtype: DType = attrs.get("dtype") or setting.default_float
    known = {"sizes": tuple(attrs["sizes"]), "dtype": dtype}
    return Typing(size_operands(attrs["sizes"]), (Type(dtype, shape),), unknown, known)


def _unit(code: Code, high: S, low: S) -> S:
    """A multiple of 2**-53 in [0, 1), from the upper 53 of 64 bits."""
    top = (high << 21) | code.op2("lshr", low, code.const(I64, 11))
    return code.convert(top, F64) * 2.0**-53


def _uniform(code: Code, w0: S, w1: S, w2: S, w3: S, *, dtype: DType) -> S:
    if dtype is F32:  # rounding a 53-bit number could give 1
        return code.convert(code.op2("lshr", w0, code.const(I64, 8)), F32) * 2.0**-24
    return _unit(code, w0, w1)


def _normal(code: Code, w0: S, w1: S, w2: S, w3: S, *, dtype: DType) -> S:
    """Box and Muller's transform (1958), in f64 for both dtypes; the logarithm is of a number in (0, 1]."""
    radius = code.op1("sqrt", -2.0 * math_body("log")(code, 1.0 - _unit(code, w0, w1)))
    return code.convert(radius * math_body("cos")(code, TAU * _unit(code, w2, w3)), dtype)


UNIFORM = Op(
    name="uniform",
    doc="Random numbers evenly from [0, 1); sizes as arguments or as one list, none for a scalar.",
    params=(SIZES,),
    typing=_draw_types,
    compute=Draw(_uniform),
    effect=Effect.RANDOM,
    faults=(faults.NEGATIVE_SIZE,),
    reference="numpy.random.Generator.random",
    group=GROUP,
)

NORMAL = Op(
    name="normal",
    doc="Random numbers from the standard normal distribution; sizes as arguments or as one list, none for a scalar.",
    params=(SIZES,),
    typing=_draw_types,
    compute=Draw(_normal),
    effect=Effect.RANDOM,
    faults=(faults.NEGATIVE_SIZE,),
    bound=4.0,
    reference="numpy.random.Generator.standard_normal",
    group=GROUP,
)
