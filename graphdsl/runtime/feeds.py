"""Values from outside: `--feed x=3`, `x=[1,2]`, `x=@file.npy`, `x=@d.csv:price`, or Python values; made to fit what a
program declares, without loss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from graphdsl.core import ir
from graphdsl.ops.types import F32, F64, I32, I64, DType, Size, Type, converts_freely
from graphdsl.runtime.faults import fault_diagnostic
from graphdsl.runtime.format import type_text
from graphdsl.runtime.limits import Limits
from graphdsl.source.diagnostic import Fault, FaultKind, ProgramError, WrongRequest

NOT_FED = FaultKind("E0620", "`{0}` must be fed", "feed it (`--feed {0}=…`), or give the input a default")
UNREADABLE = FaultKind(
    "E0621",
    "cannot read the value fed to `{0}`: {1}",
    "a number, `[1, 2]`, `@file.npy`, `@file.npz:entry`, `@file.csv:column`",
)
OTHER_DTYPE = FaultKind("E0622", "`{0}` is {1}, and what was fed is {2}", "{3}")
OTHER_RANK = FaultKind(
    "E0623", "`{0}` is {1}, and what was fed has {2}", "`1` is a scalar, `[1, 2]` has one axis, `[[1, 2], [3, 4]]` two"
)
OTHER_SIZE = FaultKind("E0624", "`{0}` is {1}, and what was fed has size {3} on axis {2}")
OTHER_DIM = FaultKind("E0625", "`{0}` is {1}, and what was fed has size {3} on axis {2}, but `{4}` is {5}, from `{6}`")
RANGE = FaultKind("E0626", "`{0}` is {1}, and {2} does not fit that", "i32 goes from -2147483648 to 2147483647")

_LONGEST_INT = 1000  # characters
_NO_I64 = "an int does not fit 64 bits"
_TOKEN = re.compile(r"\s*([\[\],]|[^\[\],\s]+)")
_WORDS = {"true": True, "false": False, "nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_INT = re.compile(r"[+-]?[0-9](_?[0-9])*")
_FLOAT = re.compile(r"[+-]?([0-9](_?[0-9])*\.?([0-9](_?[0-9])*)?|\.[0-9](_?[0-9])*)([eE][+-]?[0-9]+)?")

Given = tuple[np.ndarray[Any, Any], bool]  # a value, and whether it is weak: of no width of its own


def fit_all(wanted: Iterable[ir.Feed], given: Mapping[str, Any], limits: Limits, folder: str = ".") -> dict[str, Any]:
    """The values for a program's feeds, in their run-time form; texts name files relative to `folder`.

    Raises `WrongRequest` where what is given cannot be read, `ProgramError` where it does not fit the program."""
    fed: dict[str, Any] = {}
    dims: dict[Size, tuple[int, str]] = {}
    problems = []
    unread = False
    for feed in wanted:
        value = None
        try:
            if feed.name not in given:
                raise Fault(NOT_FED, feed.name)
            value = read(feed.name, given[feed.name], limits, folder)
            fed[feed.name] = fit(feed.name, feed.out.type, value, dims)
        except Fault as fault:
            problems.append(fault_diagnostic(fault, feed))
            unread |= feed.name in given and value is None
    if problems:
        raise (WrongRequest if unread else ProgramError)(*problems)
    return fed


def read(name: str, given: Any, limits: Limits, folder: str) -> Given:
    """A value as it was given: a text of the command line, or a Python value."""
    if isinstance(given, str):
        if given.startswith("@"):
            return _from_file(given[1:], limits, folder), False
        try:
            return _array(_parsed(given)), True
        except ValueError as error:
            raise Fault(UNREADABLE, name, str(error)) from None
    if isinstance(given, np.ndarray | np.generic):
        return _widened(name, np.asarray(given)), False
    try:
        return _array(given), True
    except (ValueError, TypeError, OverflowError) as error:
        raise Fault(UNREADABLE, name, str(error)) from None


def fit(name: str, type: Type, given: Given, dims: dict[Size, tuple[int, str]]) -> Any:
    """The value in the dtype and shape of `type`; `dims` are the named sizes that are bound so far."""
    array, weak = given
    dtype = DType.of(array)
    written_empty = weak and not array.size  # no item says a dtype
    if not written_empty and not converts_freely(Type(dtype, weak=weak and dtype in (I64, F64)), type.dtype):
        hint = f"what is fed is not rounded or cut: feed it as {type.dtype.value}"
        raise Fault(OTHER_DTYPE, name, str(type), type_text(dtype, array.shape), hint)
    _check_shape(name, type, array.shape, dims)
    if weak and type.dtype is I32 and array.size and not -(2**31) <= int(array.min()) <= int(array.max()) < 2**31:
        raise Fault(RANGE, name, str(type), int(array.min() if array.min() < -(2**31) else array.max()))
    with np.errstate(over="ignore"):
        made = np.ascontiguousarray(array, type.dtype.numpy).reshape(array.shape)
    if made.ndim:
        return made
    return made[()] if type.dtype is F32 else made.item()


def _check_shape(name: str, type: Type, shape: tuple[int, ...], dims: dict[Size, tuple[int, str]]) -> None:
    if len(shape) != type.rank:
        raise Fault(OTHER_RANK, name, str(type), f"the shape {list(shape)}" if shape else "no axes")
    for axis, (want, size) in enumerate(zip(type.shape, shape, strict=True)):
        if isinstance(want, Size):
            bound, by = dims.setdefault(want, (size, name))
            if bound != size:
                raise Fault(OTHER_DIM, name, str(type), axis, size, str(want), bound, by)
        elif want != size:
            raise Fault(OTHER_SIZE, name, str(type), axis, size)


def _from_file(text: str, limits: Limits, folder: str) -> np.ndarray[Any, Any]:
    from graphdsl.runtime.files import read as read_file

    head, colon, tail = text.rpartition(":")
    if colon and "." in head:  # not the drive of `C:\x.npy`
        columns = [c.strip() for c in tail.split("+")]
        return read_file(folder, head, tail if len(columns) == 1 else columns, limits)
    return read_file(folder, text, None, limits)


def _parsed(text: str) -> Any:
    """Numbers and nested lists, as a program writes them."""
    stack: list[list[Any]] = [[]]
    after_item = False
    at = 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None
        token, at = match[1], match.end()
        if token == "[" and not after_item:
            stack.append([])
        elif token == "]" and len(stack) > 1 and (after_item or not stack[-1]):
            done = stack.pop()
            stack[-1].append(done)
            after_item = True
        elif token == "," and after_item and len(stack) > 1:
            after_item = False
        elif token not in "[]," and not after_item:
            stack[-1].append(_number(token))
            after_item = True
        else:
            raise ValueError(f"`{token}` is not expected there")
    if len(stack) > 1 or len(stack[0]) != 1:
        raise ValueError("a bracket is not closed" if len(stack) > 1 else "there is none")
    return stack[0][0]


def _number(token: str) -> float | int | bool:
    if token in _WORDS:
        return _WORDS[token]
    if _INT.fullmatch(token):
        if len(token) > _LONGEST_INT:
            raise ValueError(_NO_I64)
        return int(token)
    if _FLOAT.fullmatch(token):
        return float(token)
    shown = token if len(token) <= 30 else token[:29] + "…"
    raise ValueError(f"`{shown}` is not a number")


def _array(value: Any) -> np.ndarray[Any, Any]:
    """Python numbers and nested lists of them as an array of bool, i64 or f64."""
    kinds, depth_first = set(), [value]
    while depth_first:
        part = depth_first.pop()
        if isinstance(part, list | tuple):
            depth_first.extend(part)
        else:
            kinds.add(type(part))
    if not kinds <= {bool} and not kinds <= {int, float}:
        raise ValueError("numbers and bools do not mix" if bool in kinds else "it holds what is no number")
    try:
        return np.array(value, np.bool_ if bool in kinds else np.int64 if kinds == {int} else np.float64)
    except OverflowError:
        raise ValueError(_NO_I64) from None
    except ValueError:
        raise ValueError("the rows of a list differ in length, or it is nested too deep") from None


def _widened(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    from graphdsl.runtime.npy import DTYPES

    dtype = DTYPES.get(f"{array.dtype.kind}{array.dtype.itemsize}")
    if dtype is None:
        raise Fault(UNREADABLE, name, f"its elements are {array.dtype.name}")
    return array.astype(dtype.numpy, copy=False)
