"""Reading data from files."""

from __future__ import annotations

from typing import Any

from graphdsl.ops.op import Attrs, Effect, Host, Kind, Op, Param, Setting, Typing
from graphdsl.ops.types import DType, Type
from graphdsl.source.record import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Hole:
    """Where a value stands in a text, by its format if it has one."""

    dtype: DType
    spec: str | None

    def __repr__(self) -> str:
        return f"{{{self.dtype.value}{'' if self.spec is None else f':{self.spec}'}}}"


def _load_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    """`type` is the annotation, or what the header of the file said when the program was checked."""
    return Typing(tuple(t.dtype for t in types), (attrs["type"],), True)


def _load(runtime: Any, *words: Any, path: tuple[str | Hole, ...], entry: Any, type: Type) -> Any:
    """`words` are the values in the path."""
    return runtime.load(path, words, entry, type)


LOAD = Op(
    name="load",
    doc='A value from a `.npy`, an entry of an `.npz`, a column or several of a `.csv`: `load("d.csv", "price")`.',
    params=(Param("path", Kind.STATIC), Param("entry", Kind.STATIC, None)),
    typing=_load_types,
    compute=Host(_load),
    effect=Effect.READ,
    bound=0.0,
    group="files",
)
