"""A derivative against central differences of what it is the derivative of: whether it agrees, or differs, or why that
cannot be judged. Knows nothing of programs.

The differences are taken with several steps, each a quarter of the one before, and extrapolated (Richardson). Of a smooth
function they then settle; how far they do is their error. Where they do not, there is a kink, a jump, or the noise of
rounded values, and nothing is said against the derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, inf, isfinite, isnan, log2
from typing import Literal

from graphdsl.ops.types import F32, DType
from graphdsl.source.record import dataclass

Along = Callable[[float], float]  # the value where something is displaced by so much; nan where there is none

_RATIO = 4.0
_HIDDEN = "the value hardly changes, if at all: rounded values hide it"
_ROUNDED = "too small beside the rounding of the value"
_UNSETTLED = "the differences do not settle: a kink or a jump"
_KINK = "there is a kink"
_SMALLER = 2.0**-10  # what else is tried where the steps of the first size tell nothing


@dataclass(frozen=True)
class Precision:
    """How exact a dtype lets the differences be: its rounding, the steps (beside the value displaced) that suit it, and how
    much the result may differ."""

    rounding: float
    first: float
    count: int
    tolerance: float


_F64 = Precision(2.0**-53, 2.0**-6, 6, 1e-6)
_F32 = Precision(2.0**-24, 2.0**-3, 4, 2e-3)


def precision(*dtypes: DType) -> Precision:
    """That of the coarsest of these."""
    return _F32 if F32 in dtypes else _F64


@dataclass(frozen=True)
class Verdict:
    """What came of it: by the differences the derivative is `value`, with this `error` (None: they do not say)."""

    word: Literal["agrees", "differs", "cannot judge"]
    value: float | None = None
    error: float | None = None
    why: str | None = None

    @property
    def judged(self) -> bool:
        return self.word != "cannot judge"


@dataclass(frozen=True)
class Level:
    """One step, to both sides."""

    step: float
    up: float
    down: float
    noise: float  # how much rounded values may change the slope

    @property
    def slope(self) -> float:
        return (self.up - self.down) / (2 * self.step)

    def moves(self, centre: float) -> bool:
        """Whether it changes anything."""
        return not self.up == self.down == centre

    def bend(self, centre: float) -> float:
        """By how much the slopes to both sides differ."""
        return abs(self.up - 2 * centre + self.down) / self.step


def judge(derivative: float, along: Along, centre: float, size: float, precision: Precision) -> Verdict:
    """`centre` is the value where nothing is displaced, `size` about how large is what is displaced."""
    if not isfinite(centre):
        return Verdict("cannot judge", why=f"the value is {_named(centre)}")
    whole = _power(size)
    tried: list[Verdict] = []
    largest = 0.0  # step, where nothing has changed the value
    for scale in dict.fromkeys((whole, whole * _SMALLER, max(whole, 1.0))):
        if scale > whole and not all(verdict.why in (_HIDDEN, _ROUNDED) for verdict in tried):
            break  # farther away there may be another slope: it is asked where it is too flat here
        levels: list[Level] = []
        for k in range(precision.count):
            step = scale * precision.first / _RATIO**k
            up, down = along(step), along(-step)
            if isfinite(up) and isfinite(down):
                levels.append(Level(step, up, down, 4 * precision.rounding * max(map(abs, (up, down, centre))) / step))
                if (early := _agrees(derivative, levels, precision)) is not None:
                    return early
        verdict = _verdict(derivative, centre, levels, precision)
        if verdict.judged:
            return verdict
        tried.append(verdict)
        if not levels or any(level.moves(centre) for level in levels):
            largest = inf
        largest = max(largest, *(level.step for level in levels), 0.0)
    if largest < inf and abs(derivative) * largest > 4 * precision.rounding * abs(centre):
        return Verdict("differs", 0.0, abs(derivative), "the value does not change")
    return tried[0]


def _power(size: float) -> float:
    """The power of two below: steps that are powers of two are exact."""
    return 2.0 ** floor(log2(size)) if 1e-150 < size < 1e150 else 1.0


def _named(value: float) -> str:
    return "nan" if isnan(value) else "inf" if value > 0 else "-inf"


def _settled(levels: Sequence[Level]) -> tuple[int, float, float]:
    """Which of the levels settles best, the slope extrapolated there, and its error."""
    best = (0, levels[0].slope, inf)
    before = levels[0].slope
    for k in range(1, len(levels)):
        slope = levels[k].slope + (levels[k].slope - levels[k - 1].slope) / (_RATIO**2 - 1)
        error = abs(slope - before) + levels[k].noise
        if error < best[2]:
            best = (k, slope, error)
        before = slope
    return best


def _agrees(derivative: float, levels: Sequence[Level], precision: Precision) -> Verdict | None:
    """The verdict where these levels are enough to say that it is right."""
    if len(levels) < 2 or not isfinite(derivative):
        return None
    _, slope, error = _settled(levels)
    apart, size = abs(derivative - slope), max(abs(derivative), abs(slope))
    if apart <= precision.tolerance * size and (error <= 0.1 * size or size == 0):
        return Verdict("agrees", slope, apart)
    return Verdict("agrees", slope, apart) if derivative == 0 and abs(slope) <= min(x.noise for x in levels) else None


def _verdict(derivative: float, centre: float, levels: list[Level], precision: Precision) -> Verdict:
    """That of all levels, none of which was enough to agree."""
    if not levels:
        return Verdict("cannot judge", why="the program has no finite value beside it")
    moving = [level for level in levels if level.moves(centre)]
    if len(moving) < 3:
        return Verdict("cannot judge", why=_HIDDEN)
    at, slope, error = _settled(moving)
    apart, size = abs(derivative - slope), max(abs(derivative), abs(slope))
    if error > 0.05 * abs(slope) and error > 2 * moving[at].noise:
        return Verdict("cannot judge", slope, apart, _UNSETTLED)
    if not isfinite(derivative):
        return Verdict("differs", slope, inf, f"the derivative is {_named(derivative)}")
    if error > 0.1 * size:
        return Verdict("cannot judge", slope, apart, _ROUNDED)
    if _kink(moving, at, centre, apart):
        return Verdict("cannot judge", slope, apart, _KINK)
    if apart <= precision.tolerance * size + 4 * error:
        return Verdict("agrees", slope, apart)
    return Verdict("differs", slope, apart)


def _kink(levels: Sequence[Level], at: int, centre: float, apart: float) -> bool:
    """Whether the slopes to both sides differ by enough, and do not come together as the step becomes smaller."""
    first, second = (levels[k].bend(centre) for k in (max(at, 1) - 1, max(at, 1)))
    return second >= max(apart, 4 * levels[at].noise) / 2 and second >= first / 2
