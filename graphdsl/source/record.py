"""`dataclass`, made quickly.

The standard one takes 0.2 to 0.8 ms for each class, which for the hundred classes that a run imports is more than
all the rest of starting up. This one writes the same methods with one `exec` a class and leaves out what nobody here
uses (`order`, `kw_only`, `InitVar`). `fields`, `replace` and `field` of the standard module work on it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, field
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """The decorator, with or without options."""
        if cls is None:
            return lambda made: _made(made, **options)
        return _made(cls, **options)


@dataclasses.dataclass
class _Probe:
    field: int


_PLAIN = dataclasses.fields(_Probe)[0]._field_type  # type: ignore[attr-defined]  # marks what is no ClassVar


def _made(cls: type, *, eq: bool = True, repr: bool = True, frozen: bool = False, slots: bool = False) -> type:
    inherited: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited.update(getattr(base, "__dataclass_fields__", {}))
    own = {n: _field(cls, n, t) for n, t in cls.__annotations__.items() if "ClassVar" not in t}
    known = {**inherited, **own}
    space: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    text = [_init(known, space, frozen, slots, hasattr(cls, "__post_init__"))]
    compared = [n for n, f in known.items() if f.compare]
    if eq:
        text.append(_eq(compared, frozen))
    exec("\n".join(text), space)  # the texts are made of the names of fields alone
    members: dict[str, Any] = {"__init__": space["__init__"], "__dataclass_fields__": known}
    members["__match_args__"] = tuple(n for n, f in known.items() if f.init)
    if eq:
        members["__eq__"] = space["__eq__"]
        members["__hash__"] = space["__hash__"] if frozen else None
    if repr:
        members["__repr__"] = _repr
    if frozen:
        members["__setattr__"] = members["__delattr__"] = _refuse
    for name, member in members.items():
        if name not in cls.__dict__ or name in ("__dataclass_fields__", "__hash__"):
            setattr(cls, name, member)
    return _slotted(cls, tuple(own)) if slots else cls


def _field(cls: type, name: str, annotation: str) -> Any:
    """The field of an annotation; its default is left as the class's attribute."""
    default = cls.__dict__.get(name, MISSING)
    made: Any = default if isinstance(default, dataclasses.Field) else field(default=default)
    made.name, made.type, made._field_type, made.kw_only = name, annotation, _PLAIN, False
    if isinstance(default, dataclasses.Field):
        if made.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, made.default)
    return made


def _init(known: dict[str, Any], space: dict[str, Any], frozen: bool, slots: bool, post: bool) -> str:
    params, lines = ["self"], []
    if frozen and not slots:
        lines.append("_d = self.__dict__")
    for name, made in known.items():
        value = name
        if made.default_factory is not MISSING:
            space[f"_new_{name}"] = made.default_factory
            value = f"_new_{name}() if {name} is _MISSING else {name}" if made.init else f"_new_{name}()"
        elif made.default is not MISSING:
            space[f"_default_{name}"] = made.default
            value = name if made.init else f"_default_{name}"
        elif not made.init:
            continue
        if made.init:
            default = "_MISSING" if made.default_factory is not MISSING else f"_default_{name}"
            has = made.default_factory is not MISSING or made.default is not MISSING
            params.append(f"{name}={default}" if has else name)
        if not frozen:
            lines.append(f"self.{name} = {value}")
        else:
            lines.append(f"_set(self, {name!r}, {value})" if slots else f"_d[{name!r}] = {value}")
    if post:
        lines.append("self.__post_init__()")
    return f"def __init__({', '.join(params)}):\n " + "\n ".join(lines or ["pass"])


def _eq(compared: list[str], frozen: bool) -> str:
    mine, others = ("(" + "".join(f"{who}.{n}, " for n in compared) + ")" for who in ("self", "other"))
    text = (
        f"def __eq__(self, other):\n return {mine} == {others} if other.__class__ is self.__class__ else NotImplemented"
    )
    return text + (f"\ndef __hash__(self):\n return hash({mine})" if frozen else "")


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot set or delete field {name!r}")


def _slotted(cls: type, own: tuple[str, ...]) -> type:
    """The same class with slots."""
    members = {n: m for n, m in cls.__dict__.items() if n not in own and n not in ("__dict__", "__weakref__")}
    return type(cls)(cls.__name__, cls.__bases__, {**members, "__slots__": own, "__qualname__": cls.__qualname__})
