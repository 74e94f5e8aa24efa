"""What is made of one block of four 32-bit random words, each an i64 below 2**32: uniform and normal numbers."""

from __future__ import annotations

from graphdsl.ops.math.logarithm import log_inside
from graphdsl.ops.math.parts import poly
from graphdsl.ops.scalar import Code, S
from graphdsl.ops.types import F32, F64, I64, DType

# sin(2 pi t) / t in t**2 for |t| ≤ 1/4, fpminimax; sin is off by less than 2**-25 and 2**-54.5 of itself
_SIN_OF_TURN_F32 = "0x1.921fb6p2 -0x1.4abbdap5 0x1.466b8ap6 -0x1.328aeep6 0x1.41308p5"
_SIN_OF_TURN_F64 = (
    "0x1.921fb54442d18p2 -0x1.4abbce625be38p5 0x1.466bc67759f01p6 -0x1.32d2cce5dfa3fp6 0x1.50783467448ebp5 "
    "-0x1.e3073fc6fea42p3 0x1.e8ef94966d10cp1 -0x1.6eeefddeddfc7p-1 0x1.8cd3a69bcdc82p-4"
)


def uniform(code: Code, w0: S, w1: S, w2: S, w3: S, *, dtype: DType) -> S:
    """A multiple of 2**-53 (f64) or 2**-24 (f32) in [0, 1), each as likely."""
    if dtype is F32:
        return code.convert(_float(code, _upper(code, w0, 24)) * 2.0**-24, F32)
    return _unit(code, w0, _float(code, _upper(code, w1, 21)))


def normal(code: Code, w0: S, w1: S, w2: S, w3: S, *, dtype: DType) -> S:
    """Box and Muller's transform ("A note on the generation of random normal deviates", 1958)."""
    if dtype is F32:
        u = code.convert((_float(code, w0) + 1.0) * 2.0**-32, F32)
        turn = code.convert(_float(code, w2) * 2.0**-32, F32)
    else:
        u = _unit(code, w0, _float(code, _upper(code, w1, 21)) + 1.0)
        turn = _unit(code, w2, _float(code, _upper(code, w3, 21)))
    radius = code.op1("sqrt", -2.0 * log_inside(code, u, subnormals=False))  # u is in (0, 1]
    t = abs(turn - 0.5) - 0.25  # cos(2 pi turn) is the sine of this turn
    return radius * (t * poly(code, t * t, _SIN_OF_TURN_F32 if dtype is F32 else _SIN_OF_TURN_F64))


def _unit(code: Code, word: S, more: S) -> S:
    """`word * 2**-32 + more * 2**-53`."""
    return code.fma(_float(code, word), code.const(F64, 2.0**-32), more * 2.0**-53)


def _upper(code: Code, word: S, bits: int) -> S:
    return code.op2("lshr", word, code.const(I64, 32 - bits))


def _float(code: Code, word: S) -> S:
    """A word as f64, by its bits: vectors of i64 have no conversion on many CPUs."""
    return code.from_bits(word | (1075 << 52)) - 2.0**52
