"""The ways in which ops can fail as they run. The numbers in the texts are given where the fault is found."""

from __future__ import annotations

from graphdsl.source.diagnostic import FaultKind

BROADCAST = FaultKind(
    "E0702",
    "the sizes {0} and {1} on axis {2} do not fit each other",
    "sizes that meet must be equal, or one of them 1",
)
INDEX = FaultKind("E0703", "index {0} is out of range for axis {2}, which has size {1}")
DIVISION = FaultKind("E0704", "integer division by zero")
NEGATIVE_POWER = FaultKind(
    "E0705", "an integer to the negative power {0}", "make the base a float: `f64(x) ** k`, `2.0 ** k`"
)
WEAK_I32 = FaultKind("E0706", "the number {0} does not fit i32", "cast the i32 operand to i64")
STEP = FaultKind("E0707", "a step of 0 leads nowhere")
INNER = FaultKind("E0708", "cannot multiply matrices: {0:column} against {1:row}")
INNER_VECTORS = FaultKind("E0708", "cannot multiply vectors: {0:element} against {1}")
INNER_VECTOR_LEFT = FaultKind("E0708", "cannot multiply: a vector of {0:element} against {1:row}")
INNER_VECTOR_RIGHT = FaultKind("E0708", "cannot multiply: {0:column} against a vector of {1:element}")
RESHAPE = FaultKind("E0709", "cannot reshape {0:element} into a shape of {1}")
EMPTY = FaultKind("E0710", "there is no largest or smallest element: axis {0} has size 0")
NEGATIVE_SIZE = FaultKind("E0711", "a size of {0}: sizes must not be negative")
CANNOT_BROADCAST = FaultKind("E0712", "cannot broadcast axis {2} of size {0} to {1}")
LENGTHS = FaultKind("E0713", "the sizes {0} and {1} on axis {2} differ, and should be equal")
MASK = FaultKind("E0714", "a mask of size {0} on an axis of size {1} (axis {2})")
AXES = FaultKind("E0715", "the sizes {0} and {1} on axes {2} and {3} differ, and should be equal")
TOO_MANY = FaultKind(
    "E0716", "a tensor of these sizes is too large", "the sizes of a tensor that are not 0 multiply to at most 2**60"
)
NO_COUNT = FaultKind(
    "E0717", "the elements of `arange` cannot be counted", "its start and step must be finite, and its end not nan"
)
NO_INTS = FaultKind(
    "E0718", "no int can be drawn from {0} up to, but not, {1}", "the end must be above the start, by at most 2**53"
)
