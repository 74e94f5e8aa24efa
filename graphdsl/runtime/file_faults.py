"""What can be wrong with a file."""

from __future__ import annotations

from graphdsl.source.diagnostic import FaultKind

CANNOT_READ = FaultKind("E0601", "cannot read `{0}`: {1}")
DAMAGED = FaultKind("E0602", "`{0}` is not a sound {1} file: {2}")
NO_DTYPE = FaultKind(
    "E0603", "`{0}` holds elements of type {1}, which is none of f64, f32, i64, i32, bool", "save it in one of these"
)
PICKLE = FaultKind("E0604", "`{0}` holds Python objects, and these are refused", "save arrays of numbers or bools")
NO_ENTRY = FaultKind("E0605", "`{0}` has no {1} `{2}`", "it has {3}")
NAME_ENTRY = FaultKind("E0606", "which {1} of `{0}`?", "it has {2}")
CELL = FaultKind("E0607", "line {1} of `{0}`: `{2}` in column `{3}` is not a number")
ROW = FaultKind("E0608", "line {1} of `{0}` has {2:cell}, and the first line names {3}")
OTHER_TYPE = FaultKind("E0609", "`{0}` holds {1}, and {2} was expected")
SUFFIX = FaultKind("E0610", "cannot tell how to {1} `{0}`", "the name must end in {2}")
CANNOT_WRITE = FaultKind("E0611", "cannot write `{0}`: {1}", "nothing was changed")
ONE_VALUE = FaultKind("E0612", "`{0}` can hold one value, not {1}", "a name that ends in .npz holds several")
NO_ENTRIES = FaultKind("E0613", "`{0}` holds one value, and has no entry `{1}`", "leave the second argument out")
