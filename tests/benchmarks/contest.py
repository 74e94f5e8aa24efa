"""Two command lines against each other: run in turn, so that what slows the machine for a while slows both."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from dataclasses import dataclass

# makes NumPy's BLAS choose an old kernel: https://github.com/OpenMathLib/OpenBLAS (dynamic architecture)
_SLOWS_NUMPY = ("OPENBLAS_CORETYPE", "NVPL_BLAS_DEBUG_CPU_TYPE")
_SLOWS_IMPORTS = ("PYTHONDONTWRITEBYTECODE",)  # what is installed is compiled to bytecode, so what is timed is too


@dataclass(frozen=True)
class Side:
    """One of two that are timed: a function of `sides`, with its arguments, on so many threads."""

    name: str
    arguments: tuple[str, ...] = ()
    threads: int = 1
    peer: bool = False  # needs the packages of others

    def seconds(self, peers: str) -> float:
        """What one process measures, in seconds; `peers` is the interpreter that has the packages of others.

        Raises `RuntimeError` if it fails, for want of a package for instance.
        """
        environment = {k: v for k, v in os.environ.items() if k not in _SLOWS_NUMPY + _SLOWS_IMPORTS}
        for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "GRAPHDSL_BENCHMARK_THREADS"):
            environment[variable] = str(self.threads)
        command = [peers if self.peer else sys.executable, "-m", "tests.benchmarks.sides", self.name, *self.arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().rsplit("\n", 1)[-1])
        return float(done.stdout)


@dataclass(frozen=True)
class Contest:
    """A pair, and what is wanted: at most so many times the other's time, or so many seconds more."""

    name: str
    ours: Side
    theirs: Side
    most_ratio: float | None = None
    most_seconds: float | None = None

    def play(self, rounds: int, peers: str) -> Outcome:
        """Time both sides in turn; `peers` is the interpreter that has the packages of others."""
        pairs = [(self.ours.seconds(peers), self.theirs.seconds(peers)) for _ in range(rounds)]
        return Outcome(self, tuple(pairs))


@dataclass(frozen=True)
class Outcome:
    """What was measured: (ours, theirs) of each round, in seconds."""

    contest: Contest
    pairs: tuple[tuple[float, float], ...]

    def row(self) -> list[str]:
        """The cells of a table: name, both medians, ratio with its range, difference, what is wanted."""
        ours, theirs = (statistics.median(side) for side in zip(*self.pairs, strict=True))
        ratios = sorted(a / b for a, b in self.pairs)
        more = statistics.median(a - b for a, b in self.pairs)
        contest = self.contest
        wanted = f"{contest.most_ratio:g}" if contest.most_ratio is not None else f"+{contest.most_seconds or 0:g} s"
        return [
            contest.name,
            f"{ours:.3g} s",
            f"{theirs:.3g} s",
            f"{statistics.median(ratios):.3g} ({ratios[0]:.3g} to {ratios[-1]:.3g})",
            f"{more:+.3g} s",
            wanted,
        ]
