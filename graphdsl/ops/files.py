"""Reading data from files."""

from __future__ import annotations

from typing import Any

from graphdsl.ops.op import Attrs, Effect, Host, Kind, Op, Param, Setting, Typing
from graphdsl.ops.types import Type


def _load_types(setting: Setting, types: tuple[Type, ...], attrs: Attrs) -> Typing:
    """`type` is the annotation, or what the header of the file said when the program was checked."""
    return Typing((), (attrs["type"],), True)


def _load(runtime: Any, *, path: str, entry: Any, type: Type) -> Any:
    return runtime.load(path, entry, type)


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
