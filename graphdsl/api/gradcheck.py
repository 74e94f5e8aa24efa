"""Derivatives checked against central differences, as `graphdsl grad --check` does: here and at a displaced point, element
by element, and derivatives of derivatives along a direction.

What a name holds is displaced where the program sets it (`check.displaced`); the program then runs as it would, in the same
mode, with the same random numbers. Whether a derivative is right by the differences is for `api.differences` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import nan, sqrt
from typing import Any

import numpy as np

from graphdsl.api.differences import Verdict, judge, precision
from graphdsl.api.program import Prepared, Program, Result
from graphdsl.check.displaced import Hidden
from graphdsl.check.program import Checked
from graphdsl.check.reads import statements
from graphdsl.core.dependence import all_sources, backwards
from graphdsl.core.ir import Apply, Feed
from graphdsl.core.links import Links
from graphdsl.ops.types import F32, F64, DType, Type
from graphdsl.runtime.events import Recorded
from graphdsl.source.diagnostic import ProgramError
from graphdsl.source.record import dataclass, field
from graphdsl.source.span import Span
from graphdsl.syntax import ast
from graphdsl.syntax.walk import walk

MOST_ELEMENTS = 12  # of one tensor that are checked one by one; larger ones also along a direction
_MOST_TIMES = 64  # that are tried to find where a param was set to the value that counts
_GOLDEN = 0.6180339887498949  # multiples of it spread evenly, and are the same each time
_MOVES = (0.1, -0.1, 0.001, -0.001)  # of the displaced point, beside what is held there

Array = np.ndarray[Any, Any]

HERE, DISPLACED = "here", "displaced"
_SHARED = (
    "another name holds the same value, and it is displaced for one of them only; `{0} * 1` would be a value of its own"
)
_CUT = "it changes `{0}` too, from whose history `:=` cuts it off: differences do not see that"
_STOPPED = "`stop_gradient` at line {0} cuts it off: differences do not see that"
_NOT_FOUND = "it is set too often to find where it was given the value that counts"
_FAILS = "the program fails, or has no finite value, beside it"


@dataclass(frozen=True)
class Row:
    """One derivative that was checked: by one name, or by two; of one element (None: of a scalar, or along a direction)."""

    wrt: tuple[str, ...]
    point: str
    derivative: float | None  # None: it was not looked at
    verdict: Verdict
    element: tuple[int, ...] | None = None
    along: bool = False
    dtype: DType = F64  # of the derivative


@dataclass(frozen=True)
class Sample:
    """How many elements of a tensor were checked one by one."""

    wrt: str
    checked: int
    elements: int


@dataclass
class Report:
    """All that was checked. `second`: why there are no second derivatives (None: there are)."""

    rows: list[Row] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    second: str | None = None

    def count(self, word: str) -> int:
        """How many derivatives have this verdict."""
        return sum(row.verdict.word == word for row in self.rows)


@dataclass
class Place:
    """What is displaced: a name, the time it is set, what it is given then (as f64), and a direction."""

    name: str
    dtype: DType
    at: int
    held: Array
    why: str | None = None  # it cannot be displaced

    @property
    def size(self) -> float:
        """About how large its elements are."""
        finite = self.held[np.isfinite(self.held)]
        return float(sqrt(np.mean(finite * finite))) if finite.size else 0.0

    @property
    def shift(self) -> Array:
        """About as large as its elements, or larger, and of either sign."""
        shift: Array = _spread(self.held.shape) * np.maximum(np.abs(self.held), self.size or 1.0)
        return shift

    @property
    def direction(self) -> Array:
        """The line along which it is displaced as a whole; of a scalar, by how much it is."""
        return self.shift if self.held.ndim else np.ones(())

    @property
    def step(self) -> float:
        """About how far along that line it may be displaced."""
        return 1.0 if self.held.ndim else self.size


@dataclass
class Displacement:
    """Where a run is: how much each element of a name is displaced, and how much along its direction."""

    by: Mapping[str, Array] = field(default_factory=dict)
    along: Mapping[str, float] = field(default_factory=dict)


HELD = Displacement()


def gradcheck(program: Program, prepared: Prepared, result: Result) -> Report:
    """Check the derivatives that a run of `prepared` gave."""
    return _Check(program, prepared, result).report


class _Check:
    """One check: the programs that it runs, and what it found."""

    def __init__(self, program: Program, prepared: Prepared, result: Result) -> None:
        self.program, self.mode, self.given, checked = program, prepared.mode, prepared.given, prepared.checked
        mode, given = self.mode, self.given
        assert checked.of is not None
        self.of = checked.of
        self.targets = tuple(result.gradients)
        updated = self._updated()
        if not updated <= {*self.targets}:
            checked = program.check(given.values, (), self.of, tuple(dict.fromkeys((*self.targets, *sorted(updated)))))
            result = program.prepare(mode, given, checked).run(Recorded())
        self.gradients = {name: _floats(shown.value) for name, shown in result.gradients.items()}
        types = {name: checked.program.exports[name][0].type for name in self.gradients}
        default = checked.program.default_float
        self.types = {n: Type(default if t.weak else t.dtype, t.shape) for n, t in types.items()}
        self.shapes = {name: np.shape(shown.value) for name, shown in result.gradients.items()}
        self.of_dtype = result.values[self.of].dtype
        self.centre = float(result.values[self.of].value)
        self.report = Report()
        if not self.targets:
            return
        self.values = self._prepared(())
        self.first = self._prepared(tuple(n for name in self.types for n in (Hidden(name).by, Hidden(name).along)))
        self.places: dict[str, Place] = {}
        self._find_places()
        self._find_cuts(updated)
        self.stopped = _stopped(self.values.checked, self.of, self._stops())
        self._first_derivatives()
        self._second_derivatives()

    def _updated(self) -> set[str]:
        """The params of floats that `:=` sets."""
        names = {s.name.id for s in statements(self.program.module.body) if isinstance(s, ast.Update)}
        exports = self.program.check(self.given.values, names).program.exports if names else {}
        return {name for name in names if exports[name][0].type.dtype.is_float}

    def _stops(self) -> set[Span]:
        """The calls of `stop_gradient` in the program's text."""
        found = set()
        for node in walk(self.program.module.body):
            if isinstance(node, ast.CallExpr):
                name = node.func.name if isinstance(node.func, ast.Attribute) else node.func
                if isinstance(name, ast.Name) and name.id == "stop_gradient":
                    found.add(node.span)
        return found

    # ---- running ----

    def _prepared(self, wrt: tuple[str, ...], order: int = 1) -> Prepared:
        """The program with names that can be displaced, and the derivatives by these hidden ones."""
        hidden = [Hidden(name) for name in self.types]
        fed = {*self.given.values, *(n for h in hidden for n in (h.at, h.by, h.along, h.direction))}
        wanted = (self.of, *(n for h in hidden for n in (h.count, h.held)))
        types = tuple(self.types.items())
        checked = self.program.check(fed, wanted, self.of, wrt or None, order=order, displaced=types)
        return Prepared(self.program, self.mode, self.given, checked, wanted=wanted)

    def _run(self, prepared: Prepared, to: Displacement = HELD, at: Mapping[str, int] | None = None) -> Result:
        """A run, with names displaced at their places (or the times `at`). Raises `ProgramError` where it fails."""
        feeds: dict[str, Any] = {}
        for name, type in self.types.items():
            hidden, shape, numpy = Hidden(name), self.shapes[name], type.dtype.numpy
            place = self.places.get(name)
            time = 0 if place is None else place.at
            feeds[hidden.at] = time if at is None else at.get(name, 0)
            feeds[hidden.by] = np.asarray(to.by.get(name, np.zeros(shape)), numpy)
            feeds[hidden.along] = np.asarray(to.along.get(name, 0.0), numpy)
            feeds[hidden.direction] = np.zeros(shape, numpy) if place is None else np.asarray(place.direction, numpy)
        prepared.given = replace(self.given, feeds={**self.given.feeds, **feeds})
        return prepared.run(Recorded())

    def _value(self, to: Displacement) -> float:
        """What is differentiated, nan where the program fails."""
        try:
            return float(self._run(self.values, to).values[self.of].value)
        except (ProgramError, KeyError):
            return nan

    # ---- where names get the values that count ----

    def _find_places(self) -> None:
        once = self._run(self.values)
        for name in self.types:
            times = int(once.values[Hidden(name).count].value)
            if self.program.declared.get(name) == "param":
                self.places[name] = self._last_used(name, times)
            else:
                self.places[name] = self._place(name, times)
        moved = self._run(self.first)
        for name, place in self.places.items():
            if place.why is None and not self._same(name, moved):
                place.why = _SHARED.format(name)

    def _find_cuts(self, updated: set[str]) -> None:
        """Where a name is displaced, a param that was computed from it changes too, though nothing leads there."""
        for name in self.targets:
            place = self.places[name]
            others = {n for n in updated - {name} if self.places[n].why is None}
            if place.why is not None or not others:
                continue
            try:
                found = self._run(self.values, Displacement({}, {name: 0.01 * place.step})).values
            except ProgramError:
                continue
            changed = [n for n in sorted(others) if np.any(_floats(found[Hidden(n).held].value) != self.places[n].held)]
            if changed:
                place.why = _CUT.format(changed[0])

    def _place(self, name: str, at: int) -> Place:
        """With what the name holds just then."""
        found = self._run(self.values, at={name: at}).values
        return Place(name, self.types[name].dtype, at, _floats(found[Hidden(name).held].value))

    def _same(self, name: str, result: Result) -> bool:
        """Whether the derivative by a displacement is the one that is checked."""
        found, wanted = _floats(result.gradients[Hidden(name).by].value), self.gradients[name]
        near = 1e-3 if F32 in (self.types[name].dtype, self.of_dtype) else 1e-9
        return bool(np.allclose(found, wanted, near, near * _largest(wanted), equal_nan=True))

    def _last_used(self, name: str, times: int) -> Place:
        """The last time that a param was set to a value on which the result depends."""
        last = self._place(name, times)
        if times == 1:
            return last
        for at in range(times, max(0, times - _MOST_TIMES), -1):
            if not self._same(name, self._run(self.first, at={name: at})):
                continue
            place = self._place(name, at)
            if np.any(self.gradients[name]) or self._changes(place):
                return place
        return last if not np.any(self.gradients[name]) else replace(last, why=_NOT_FOUND)

    def _changes(self, place: Place) -> bool:
        """Whether the result changes where a name is displaced there."""
        step = 0.01 * place.shift
        try:
            found = self._run(self.values, Displacement({place.name: step}), {place.name: place.at})
        except ProgramError:
            return True
        return float(found.values[self.of].value) != self.centre

    # ---- first derivatives ----

    def _first_derivatives(self) -> None:
        point, moved = self._displaced_point()
        for name in self.targets:
            place = self.places[name]
            elements = _sample(place.held.size)
            if place.why is None and len(elements) < place.held.size:
                self.report.samples.append(Sample(name, len(elements), place.held.size))
            self._check_elements(place, elements, HERE, HELD, self.gradients[name], self.centre)
            if moved is None or place.why is not None:
                continue
            there = _floats(moved.gradients[Hidden(name).by].value)
            self._check_elements(place, elements, DISPLACED, point, there, float(moved.values[self.of].value))
        if moved is None:
            verdict = Verdict("cannot judge", why=_FAILS)
            self.report.rows += [Row((name,), DISPLACED, None, verdict) for name in self.targets]

    def _displaced_point(self) -> tuple[Displacement, Result | None]:
        """A point beside this one where the program has a value; None for the result: none was found."""
        for part in _MOVES:
            point = Displacement({n: part * self.places[n].shift for n in self.targets if self.places[n].why is None})
            try:
                result = self._run(self.first, point)
                if np.isfinite(result.values[self.of].value):
                    return point, result
            except (ProgramError, KeyError):
                continue
        return HELD, None

    def _check_elements(
        self, place: Place, elements: list[int], point: str, base: Displacement, gradient: Any, centre: float
    ) -> None:
        wrt, exact = (place.name,), precision(place.dtype, self.of_dtype)
        if place.why is not None:
            self.report.rows.append(Row(wrt, point, None, Verdict("cannot judge", why=place.why)))
            return
        start = base.by.get(place.name, np.zeros(place.held.shape))
        for k in elements:
            index = tuple(int(i) for i in np.unravel_index(k, place.held.shape))

            def along(step: float, index: tuple[int, ...] = index) -> float:
                by = np.array(start)
                by[index] += step
                return self._value(Displacement({**base.by, place.name: by}))

            held = float((place.held + start)[index])
            size = abs(held) if abs(held) > 1e-3 * place.size else place.size
            verdict = judge(float(gradient[index]), along, centre, size, exact)
            self._say(Row(wrt, point, float(gradient[index]), verdict, index or None, dtype=place.dtype))
        if len(elements) < place.held.size:
            slope = float(np.sum(gradient * place.direction))
            verdict = judge(slope, self._along(place.name, base), centre, 1.0, exact)
            self._say(Row(wrt, point, slope, verdict, along=True))

    def _say(self, row: Row) -> None:
        """Add what was found; what looks wrong may only be cut off."""
        cuts = [line for name in row.wrt for line in self.stopped.get(name, ())]
        if row.verdict.word == "differs" and cuts:
            verdict = replace(row.verdict, word="cannot judge", why=_STOPPED.format(min(cuts)))
            row = replace(row, verdict=verdict)
        self.report.rows.append(row)

    def _along(self, name: str, base: Displacement) -> Any:
        return lambda step: self._value(replace(base, along={name: step}))

    # ---- second derivatives ----

    def _second_derivatives(self) -> None:
        names = [name for name in self.targets if self.places[name].why is None]
        if not names:
            return
        try:
            prepared = self._prepared(tuple(Hidden(name).along for name in names), order=2)
            found = self._run(prepared).gradients
        except ProgramError as error:
            self.report.second = error.diagnostics[0].message
            return
        slopes = self._slopes(names, HELD)
        assert slopes is not None
        for b in names:
            known: dict[float, dict[str, float] | None] = {}
            for a in names[: names.index(b) + 1]:

                def along(step: float, a: str = a, b: str = b, known: Any = known) -> float:
                    if step not in known:
                        known[step] = self._slopes(names, Displacement({}, {b: step}))
                    return nan if known[step] is None else float(known[step][a])

                second = float(found[f"{Hidden(a).along},{Hidden(b).along}"].value)
                exact = precision(self.places[a].dtype, self.places[b].dtype, self.of_dtype)
                verdict = judge(second, along, slopes[a], self.places[b].step, exact)
                self._say(Row((a, b), HERE, second, verdict, along=any(self.places[n].held.ndim for n in (a, b))))

    def _slopes(self, names: list[str], to: Displacement) -> dict[str, float] | None:
        """The first derivatives along the directions; None where the program fails."""
        try:
            found = self._run(self.first, to).gradients
        except ProgramError:
            return None
        return {name: float(found[Hidden(name).along].value) for name in names}


def _stopped(checked: Checked, of: str, stops: set[Span]) -> dict[str, list[int]]:
    """For each name that is displaced the lines where `stop_gradient` cuts it off from what is differentiated."""
    links = Links(checked.program.main)
    cuts = [
        d.instr
        for d in links.defs.values()
        if isinstance(d.instr, Apply) and d.instr.op.name == "stop_gradient" and d.instr.span in stops
    ]
    if not cuts:
        return {}
    sources = all_sources(links)
    behind = backwards(sources, [checked.program.exports[of][0]])
    lead = {cut: backwards(sources, cut.args) for cut in cuts if cut.outs[0] in behind}
    feeds = {d.instr.name: d.instr.out for d in links.defs.values() if isinstance(d.instr, Feed)}
    names = {n.removeprefix(Hidden("").by): out for n, out in feeds.items() if n.startswith(Hidden("").by)}
    return {n: [cut.span.line for cut, before in lead.items() if out in before] for n, out in names.items()}


def _floats(value: Any) -> Array:
    return np.asarray(value, np.float64)


def _largest(array: Array) -> float:
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max()) if finite.size else 0.0


def _spread(shape: tuple[int, ...]) -> Array:
    """Numbers from 0.5 to 1 of either sign, the same for the same shape."""
    number = np.arange(1, int(np.prod(shape)) + 1)
    part = number * _GOLDEN % 1
    spread: Array = np.where(number * (_GOLDEN / 2) % 1 < 0.5, 0.5 + part / 2, -0.5 - part / 2)
    return spread.reshape(shape)


def _sample(size: int) -> list[int]:
    """The elements that are checked one by one."""
    if size <= MOST_ELEMENTS:
        return list(range(size))
    return sorted({int(k * _GOLDEN % 1 * size) for k in range(MOST_ELEMENTS)})
