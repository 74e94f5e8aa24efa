"""The quick `dataclass` does what the standard one does, as far as it is used here."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import pytest

from graphdsl.source import record


def made(dataclass: Any, **options: Any) -> Any:
    """A few classes by one of the two decorators."""

    class Base:
        first: int

    class Derived(Base):
        shared: ClassVar[int] = 7
        second: str = "b"
        third: list[int] = dataclasses.field(default_factory=list, compare=False)
        fourth: int = dataclasses.field(init=False, repr=False, default=4)

        def __post_init__(self) -> None:
            object.__setattr__(self, "fourth", self.first * 2)

    return dataclass(**options)(Base) and dataclass(**options)(Derived)


@pytest.mark.parametrize(
    "options",
    [{}, {"frozen": True}, {"eq": False, "repr": False, "slots": True}, {"frozen": True, "slots": True}, {"eq": False}],
)
def test_like_the_standard_one(options: dict[str, bool]) -> None:
    ours, standard = (made(d, **options) for d in (record.dataclass, dataclasses.dataclass))
    a, b = ours(1), standard(1)
    assert (a.first, a.second, a.third, a.fourth, a.shared) == (b.first, b.second, b.third, b.fourth, b.shared)
    assert ours(1, "x", third=[2]).third == [2]
    assert ours.__match_args__ == standard.__match_args__
    assert [f.name for f in dataclasses.fields(a)] == [f.name for f in dataclasses.fields(b)]
    assert dataclasses.replace(a, second="c").second == "c"
    assert (ours(1) == ours(1, third=[5])) is (standard(1) == standard(1, third=[5]))
    assert (ours(1) == ours(2)) is (standard(1) == standard(2))
    if not options.get("slots"):
        assert (repr(a) == repr(b)) is options.get("repr", True)
    if options.get("frozen"):
        assert hash(ours(1)) == hash(ours(1, third=[5]))
        with pytest.raises(dataclasses.FrozenInstanceError):
            a.first = 3
    else:
        a.first = 3
    assert hasattr(a, "__dict__") is hasattr(b, "__dict__")


def test_missing_and_unknown_arguments() -> None:
    with pytest.raises(TypeError):
        made(record.dataclass)()
    with pytest.raises(TypeError):
        made(record.dataclass)(1, unknown=2)
