"""What some CPUs lack, computed otherwise to the same bits: fused multiply-add, rounding; and the float remainder.

No libm is ever called, so nothing depends on one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from graphdsl.native.flow import intrinsic
from graphdsl.native.target import function
from graphdsl.ops.scalar import S
from graphdsl.ops.types import F32, F64

if TYPE_CHECKING:
    from graphdsl.native.scalar import Llvm

_F64, _I1, _I64, _I128 = ir.DoubleType(), ir.IntType(1), ir.IntType(64), ir.IntType(128)


def rounded(code: Llvm, name: str, x: S) -> S:
    """floor, ceil, trunc or rint, by adding and taking off 2**52 (2**23), which rounds to even."""
    limit = code.const(x.dtype, 2.0**52 if x.dtype is F64 else 2.0**23)
    size = abs(x)
    source = size if name == "trunc" else x
    big = code.op2("copysign", limit, source)
    near = (source + big) - big
    match name:
        case "floor":
            near = code.select(near > x, near - 1.0, near)
        case "ceil":
            near = code.select(near < x, near + 1.0, near)
        case "trunc":
            near = code.select(near > size, near - 1.0, near)
    # large values, infinities and nan are whole already
    return code.select(size < limit, code.op2("copysign", near, x), x)


def fma(code: Llvm, x: S, y: S, z: S) -> S:
    """`x * y + z` rounded once."""
    if x.dtype is F64:
        return _by_lane(code, fma64(code), x, y, z)
    wide = [code.convert(v, F64) for v in (x, y, z)]
    return code.convert(_sum_to_odd(code, wide[0] * wide[1], wide[2]), F32)


def _sum_to_odd(code: Llvm, p: S, z: S) -> S:
    """`p + z` rounded to odd: rounding that to 24 bits is right (Boldo and Melquiond, "Emulation of FMA", 2008).

    `p` is the exact product of two f32. TwoSum gives the error of the sum; if there is one and the sum is even, the
    sum is moved one unit towards the exact value.
    """
    s = p + z
    t = s - p
    error = (p - (s - t)) + (z - t)
    bits = code.bits(s)
    zero = code.const(F64, 0.0)
    outward = code.compare("eq", error > zero, s > zero)
    moved = code.select(outward, bits + 1, bits - 1)
    inexact = (error < zero) | (error > zero)  # a nan error (the sum is not finite) counts as none
    even = (bits & 1).eq(0)
    return code.from_bits(code.select(inexact & even, moved, bits))


def rem(code: Llvm, x: S, y: S) -> S:
    """C's `fmod`, exact: of f32 too, as the remainder of two f32 is one."""
    if x.dtype is F32:
        return code.convert(rem(code, code.convert(x, F64), code.convert(y, F64)), F32)
    return _by_lane(code, fmod64(code), x, y)


def _by_lane(code: Llvm, function: ir.Function, *xs: S) -> S:
    """A scalar function on every lane."""
    b = code.builder
    if code.lanes == 1:
        return S(code, xs[0].dtype, b.call(function, [x.ref for x in xs]))
    result: Any = ir.Constant(xs[0].ref.type, ir.Undefined)
    for lane in range(code.lanes):
        place = ir.Constant(ir.IntType(32), lane)
        one = b.call(function, [b.extract_element(x.ref, place) for x in xs])
        result = b.insert_element(result, one, place)
    return S(code, xs[0].dtype, result)


# ---- functions on ints ----------------------------------------------------------------------------


def fma64(code: Llvm) -> ir.Function:
    """The function for f64, in integer arithmetic of 128 bits; defined where it is first needed in a module."""
    made, b = _private(code, "gdl.fma64", 3)
    if b is None:
        return made
    x, y, z = made.args
    mx, ex, sx = _parts(b, x)
    my, ey, sy = _parts(b, y)
    mz, ez, sz = _parts(b, z)
    negative = b.xor(sx, sy)
    magnitude, exponent, negative = _exact_sum(b, (mx, my, mz), (b.add(ex, ey), ez), negative, sz)
    result = _assembled(b, magnitude, exponent, negative)
    plain = b.fadd(b.fmul(x, y), z)
    zero = ir.Constant(_F64, 0.0)
    # in this order: a product that is no number, or 0; a z that is none; a z of 0
    result = b.select(b.fcmp_ordered("==", z, zero), b.fmul(x, y), result)
    result = b.select(_not_finite(b, z), z, result)
    zero_product = b.or_(b.fcmp_ordered("==", x, zero), b.fcmp_ordered("==", y, zero))
    odd = b.or_(b.or_(_not_finite(b, x), _not_finite(b, y)), zero_product)
    b.ret(b.select(odd, plain, result))
    return made


def _private(code: Llvm, name: str, arity: int) -> tuple[ir.Function, ir.IRBuilder | None]:
    """The function of that name, with a builder for its body if it is new."""
    module = code.builder.module
    if name in module.globals:
        return module.globals[name], None
    made = function(module, code.target, name, ir.FunctionType(_F64, [_F64] * arity), private=True)
    made.attributes.add("noinline")
    made.attributes.add("readnone")
    return made, ir.IRBuilder(made.append_basic_block())


def _const(value: int, type: Any = _I64) -> ir.Constant:
    return ir.Constant(type, value)


def _count_zeros(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    width = x.type.width
    return b.call(intrinsic(b.module, f"llvm.ctlz.i{width}", x.type, x.type, _I1), [x, ir.Constant(_I1, 0)])


def _not_finite(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    bits = b.and_(b.bitcast(x, _I64), _const(0x7FF << 52))
    return b.icmp_unsigned("==", bits, _const(0x7FF << 52))


def _parts(b: ir.IRBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """A 53-bit whole number with its top bit set, the power of 2 that it is multiplied by, and the sign (1:
    negative).
    """
    bits = b.bitcast(x, _I64)
    field = b.and_(b.lshr(bits, _const(52)), _const(0x7FF))
    fraction = b.and_(bits, _const((1 << 52) - 1))
    subnormal = b.icmp_unsigned("==", field, _const(0))
    shift = b.and_(b.sub(_count_zeros(b, fraction), _const(11)), _const(63))
    mantissa = b.select(subnormal, b.shl(fraction, shift), b.or_(fraction, _const(1 << 52)))
    exponent = b.sub(b.select(subnormal, b.sub(_const(1), shift), field), _const(1075))
    return mantissa, exponent, b.lshr(bits, _const(63))


def _shifted_sticky(b: ir.IRBuilder, x: ir.Value, count: ir.Value) -> ir.Value:
    """`x` shifted right, its lowest bit set if a bit that is 1 fell out."""
    type = x.type
    top = _const(type.width - 1, type)
    count = b.select(b.icmp_signed("<", count, _const(0, type)), _const(0, type), count)
    count = b.select(b.icmp_signed(">", count, top), top, count)
    kept = b.lshr(x, count)
    lost = b.icmp_unsigned("!=", b.shl(kept, count), x)
    return b.or_(kept, b.zext(lost, type))


def _exact_sum(
    b: ir.IRBuilder,
    mantissas: tuple[ir.Value, ir.Value, ir.Value],
    exponents: tuple[ir.Value, ir.Value],
    product_sign: ir.Value,
    z_sign: ir.Value,
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Size, power of 2 and sign of the product plus z, with a sticky lowest bit where it does not fit 128 bits.

    The product has 105 or 106 bits. Where z would have to go more than 73 bits to the left, the product goes right
    instead: it then lies below all that decides the rounding.
    """
    mx, my, mz = (b.zext(m, _I128) for m in mantissas)
    product = b.mul(mx, my)
    distance = b.sub(exponents[1], exponents[0])
    most = _const(73)
    left = b.select(b.icmp_signed(">", distance, most), most, distance)
    up = b.select(b.icmp_signed("<", left, _const(0)), _const(0), left)
    z = b.shl(mz, b.zext(up, _I128))
    z = _shifted_sticky(b, z, b.sext(b.sub(_const(0), left), _I128))
    product = _shifted_sticky(b, product, b.sext(b.sub(distance, left), _I128))
    exponent = b.add(exponents[0], b.sub(distance, left))
    same = b.icmp_unsigned("==", product_sign, z_sign)
    total = b.select(same, b.add(product, z), b.sub(product, z))
    flipped = b.icmp_signed("<", total, _const(0, _I128))
    total = b.select(flipped, b.sub(_const(0, _I128), total), total)
    # what cancels exactly is +0.0
    exact_zero = b.icmp_unsigned("==", total, _const(0, _I128))
    sign = b.select(exact_zero, _const(0), b.xor(product_sign, b.zext(flipped, _I64)))
    return total, exponent, sign


def _assembled(b: ir.IRBuilder, size: ir.Value, exponent: ir.Value, sign: ir.Value) -> ir.Value:
    """The f64 nearest to `size * 2**exponent`: 63 bits with a sticky one, then 53 rounded to even."""
    zeros = b.trunc(_count_zeros(b, size), _I64)
    size = b.shl(size, b.and_(b.zext(zeros, _I128), _const(127, _I128)))
    top = b.trunc(_shifted_sticky(b, size, _const(65, _I128)), _I64)  # the highest bit is bit 62
    biased = b.add(b.add(exponent, _const(65 + 62 + 1023)), b.sub(_const(0), zeros))
    below = b.sub(_const(1), biased)  # how far into the subnormals, if positive
    top = _shifted_sticky(b, top, below)
    whole = b.lshr(b.add(b.add(top, _const(511)), b.and_(b.lshr(top, _const(10)), _const(1))), _const(10))
    field = b.select(b.icmp_signed(">", biased, _const(1)), b.sub(biased, _const(1)), _const(0))
    over = b.icmp_signed(">", field, _const(2046))
    field = b.select(over, _const(2046), field)
    infinity = _const(0x7FF << 52)
    bits = b.add(b.shl(field, _const(52)), whole)
    bits = b.select(b.icmp_unsigned(">", bits, infinity), infinity, bits)
    bits = b.select(b.icmp_unsigned("==", top, _const(0)), _const(0), bits)
    return b.bitcast(b.or_(bits, b.shl(sign, _const(63))), _F64)


def fmod64(code: Llvm) -> ir.Function:
    """The remainder of f64, by long division of the mantissas, 11 bits a step; exact."""
    made, b = _private(code, "gdl.fmod64", 2)
    if b is None:
        return made
    x, y = made.args
    zero = ir.Constant(_F64, 0.0)
    ax, ay = (_absolute(b, v) for v in (x, y))
    with b.if_then(b.or_(b.or_(_not_finite(b, x), b.fcmp_unordered("==", y, zero)), b.fcmp_unordered("!=", y, y))):
        product = b.fmul(x, y)
        b.ret(b.fdiv(b.fsub(product, product), b.fsub(product, product)))  # nan
    with b.if_then(b.fcmp_ordered("<", ax, ay)):
        b.ret(x)
    mx, ex, sign = _parts(b, x)
    my, ey, _ = _parts(b, y)
    rest = _long_division(b, mx, my, b.sub(ex, ey))
    b.ret(_assembled(b, b.zext(rest, _I128), ey, sign))
    return made


def _absolute(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return b.bitcast(b.and_(b.bitcast(x, _I64), _const((1 << 63) - 1)), _F64)


def _long_division(b: ir.IRBuilder, x: ir.Value, y: ir.Value, bits: ir.Value) -> ir.Value:
    """`(x << bits) % y`, for a `y` of 53 bits."""
    before = b.block
    loop, done = b.append_basic_block("divide"), b.append_basic_block("divided")
    first = b.urem(x, y)
    b.branch(loop)
    b.position_at_end(loop)
    rest, left = b.phi(_I64), b.phi(_I64)
    step = b.select(b.icmp_signed("<", left, _const(11)), left, _const(11))
    new_rest = b.urem(b.shl(rest, step), y)
    new_left = b.sub(left, step)
    rest.add_incoming(first, before)
    left.add_incoming(bits, before)
    rest.add_incoming(new_rest, loop)
    left.add_incoming(new_left, loop)
    b.cbranch(b.icmp_signed(">", new_left, _const(0)), loop, done)
    b.position_at_end(done)
    return new_rest
