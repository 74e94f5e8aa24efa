"""The ways in which a program fails as it runs that belong to no op."""

from __future__ import annotations

from graphdsl.source.diagnostic import FaultKind

ASSERT = FaultKind("E0701", "{0}")
NEVER_SET = FaultKind("E0720", "`{0}` was never set: {1}", "set it before, so that every path leaves a value")
NO_RESULT = FaultKind("E0721", "`{0}` ended without giving a result, which other paths give")
ZIP_LENGTHS = FaultKind("E0722", "different lengths: {0} and {1}")
DIM = FaultKind("E0723", "axis {2} has size {0}, and should have {1}")
