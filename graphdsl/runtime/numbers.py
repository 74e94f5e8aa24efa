"""What a single number is as a program runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType

# Python's own types, whose arithmetic is quick, and NumPy's f32
NUMBERS: dict[DType, type[Any]] = {BOOL: bool, I32: int, I64: int, F64: float, F32: np.float32}
