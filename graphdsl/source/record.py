"""`dataclass`, made quickly.

The standard one takes 0.2 to 0.8 ms for each class, which for the hundred classes that a run imports is more than
all the rest of starting up. This one writes the same methods, but each when it is first called, and leaves out what
nobody here uses (`order`, `kw_only`, `InitVar`). `fields`, `replace` and `field` of the standard module work on it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
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
    post = hasattr(cls, "__post_init__")
    members: dict[str, Any] = {"__dataclass_fields__": known}
    members["__match_args__"] = tuple(n for n, f in known.items() if f.init)
    written: dict[str, Callable[[], Any]] = {"__init__": lambda: _init(known, frozen, slots, post)}
    if eq:
        compared = [n for n, f in known.items() if f.compare]
        written["__eq__"] = lambda: _eq(compared)
        members["__hash__"] = None
        if frozen:
            written["__hash__"] = lambda: _hash(compared)
    if repr:
        members["__repr__"] = _repr
    if frozen:
        members["__setattr__"] = members["__delattr__"] = _refuse
    home: list[type] = []  # the class, once it is finished
    members |= {name: _later(name, home, write) for name, write in written.items()}
    for name, member in members.items():
        if name not in cls.__dict__ or name in ("__dataclass_fields__", "__hash__"):
            setattr(cls, name, member)
    home.append(_slotted(cls, tuple(own)) if slots else cls)
    return home[0]


def _later(name: str, home: list[type], write: Callable[[], Any]) -> Any:
    """A method that is written when it is first called: most classes are never made use of in one run."""

    def method(self: Any, *args: Any, **named: Any) -> Any:
        made = write()
        setattr(home[0], name, made)
        return made(self, *args, **named)

    return method


def _executed(text: str, space: dict[str, Any], name: str) -> Any:
    exec(text, space)  # the text is made of the names of fields alone
    return space[name]


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


def _init(known: dict[str, Any], frozen: bool, slots: bool, post: bool) -> Any:
    space: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
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
    return _executed(f"def __init__({', '.join(params)}):\n " + "\n ".join(lines or ["pass"]), space, "__init__")


def _values(compared: list[str], who: str) -> str:
    return "(" + "".join(f"{who}.{n}, " for n in compared) + ")"


def _eq(compared: list[str]) -> Any:
    same = f"{_values(compared, 'self')} == {_values(compared, 'other')}"
    text = f"def __eq__(self, other):\n return {same} if other.__class__ is self.__class__ else NotImplemented"
    return _executed(text, {}, "__eq__")


def _hash(compared: list[str]) -> Any:
    return _executed(f"def __hash__(self):\n return hash({_values(compared, 'self')})", {}, "__hash__")


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot set or delete field {name!r}")


def _slotted(cls: type, own: tuple[str, ...]) -> type:
    """The same class with slots."""
    members = {n: m for n, m in cls.__dict__.items() if n not in own and n not in ("__dict__", "__weakref__")}
    return type(cls)(cls.__name__, cls.__bases__, {**members, "__slots__": own, "__qualname__": cls.__qualname__})
