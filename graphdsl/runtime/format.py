"""Numbers and tensors as text: what `print` shows, what a format spec does, and JSON. The one place for all of it.

Floats have the shortest text that reads back as the same value in their dtype. A value is what eager mode has: a Python
number (`np.float32` for f32) or an array.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdsl.ops.types import BOOL, F32, F64, DType

if TYPE_CHECKING:
    from graphdsl.runtime.events import Shown, Summary

Scalar = float | int | bool | np.float32

SHOWN = 1_000  # elements of a tensor that are printed in full
_EDGE = 3  # of longer axes, at each end, where it is more
_WIDEST = 1_000  # width and precision of a format spec
_SPEC = r"(?s)(?:.?[<>=^])?[-+ ]?z?#?0?(\d*)[_,]?(?:\.(\d+))?([bdeEfFgGoxX%s]?)"


def type_text(dtype: DType, shape: tuple[int, ...]) -> str:
    """`f64[3, 4]`."""
    return f"{dtype.value}[{', '.join(map(str, shape))}]" if shape else dtype.value


def text(value: Any, dtype: DType) -> str:
    """A value as `print` shows it after its name."""
    if not isinstance(value, np.ndarray):
        return number(value, dtype)
    shown = brackets(value, dtype) if _parts(value.shape) <= SHOWN else _summary(value, dtype)
    return f"{type_text(dtype, value.shape)} {shown}"


def probed(item: Shown | Summary) -> str:
    """A value with its name, as a probe shows it, or its statistics."""
    from graphdsl.runtime.events import Shown

    if isinstance(item, Shown):
        return f"{item.name} = {text(item.value, item.dtype)}"
    named = (("min", item.low, item.dtype), ("max", item.high, item.dtype), ("mean", item.mean, item.mean_dtype))
    found = [f"{word} {number(value, dtype)}" for word, value, dtype in named if value is not None]
    return f"{item.name}: {', '.join([type_text(item.dtype, item.shape), *found, f'nans {item.nans}'])}"


def _parts(shape: tuple[int, ...]) -> int:
    """How many elements there are, or pairs of brackets with nothing in them."""
    return prod(shape[: shape.index(0)] if 0 in shape else shape)


def number(value: Scalar, dtype: DType) -> str:
    """A scalar: `0.1`, `20`, `1e-07`, `inf`, `nan`, `-0.0`, `true`."""
    if dtype is BOOL:
        return "true" if value else "false"
    if dtype is F64:
        return repr(float(value))
    return repr(_decimal(value)) if dtype is F32 else str(int(value))


def brackets(array: np.ndarray[Any, Any], dtype: DType) -> str:
    """All elements of an array: `[[1.0, 2.0], [3.0, 4.0]]`."""
    if dtype is F32:
        array = _decimals(array)
    listed = str(array.tolist())
    return listed.replace("T", "t").replace("F", "f") if dtype is BOOL else listed


def json_value(value: Any, dtype: DType) -> str:
    """A value as JSON text; what is not finite as the strings "NaN", "Infinity", "-Infinity"."""
    written = brackets(value, dtype) if isinstance(value, np.ndarray) else number(value, dtype)
    if "n" in written and dtype.is_float:
        written = written.replace("nan", '"NaN"').replace("-inf", '"-Infinity"')
        written = re.sub(r"(?<!-)\binf\b", '"Infinity"', written)
    return written


def spec_problem(spec: str, dtype: DType) -> str | None:
    """What is wrong with a format spec for scalars of this dtype; None: nothing."""
    match = re.fullmatch(_SPEC, spec)
    if match is None:
        return f"`{spec}` is not a format spec"
    if any(part and (len(part) > 4 or int(part) > _WIDEST) for part in match.groups()[:2]):
        return f"a width or precision in a format spec is at most {_WIDEST}"
    try:
        samples: dict[DType, Scalar] = {BOOL: True, F32: np.float32(1), F64: 1.0}
        formatted(samples.get(dtype, 1), dtype, spec)
    except ValueError:
        return f"the format spec `{spec}` does not fit a value of type {dtype.value}"
    return None


def formatted(value: Scalar, dtype: DType, spec: str) -> str:
    """A scalar under a format spec of Python's (checked before by `spec_problem`)."""
    kind = spec[-1:]
    if dtype is BOOL:
        return format(number(value, dtype), spec) if not kind.isalpha() or kind == "s" else format(int(value), spec)
    if dtype is F32:
        # without a type and a precision Python writes the shortest text, which is that of the decimal
        exact = kind.isalpha() or kind == "%" or "." in spec
        return format(float(value) if exact else _decimal(value), spec)
    return format(float(value) if dtype is F64 else int(value), spec)


def _decimal(value: Any) -> float:
    """The f64 nearest to the shortest decimal of an f32: its text in f64 is that decimal."""
    return float(str(np.float32(value)))


def _decimals(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same for each element."""
    return array.astype(np.str_).astype(np.float64)


def _summary(array: np.ndarray[Any, Any], dtype: DType) -> str:
    """The elements at the ends of each axis, with `...` between them."""
    kept = array
    for axis, size in enumerate(array.shape):
        if size > 2 * _EDGE:
            kept = np.take(kept, [*range(_EDGE), *range(size - _EDGE, size)], axis)
    full = iter(brackets(np.ascontiguousarray(kept.reshape(-1)), dtype)[1:-1].split(", "))

    def level(axis: int) -> str:
        if axis == array.ndim:
            return next(full)
        items = [level(axis + 1) for _ in range(kept.shape[axis])]
        if array.shape[axis] > 2 * _EDGE:
            items.insert(_EDGE, "...")
        return f"[{', '.join(items)}]"

    return level(0)
