"""`python -m tests.fuzz --programs N`: random programs in both modes; the first difference is shown.

What is compared is all that a program says: warnings, prints, errors, to the last bit. `--shrink` makes the program
found as small as it gets (which takes minutes); nothing is taken from the cache of compiled programs.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from itertools import zip_longest

from hypothesis import HealthCheck, Phase, given, seed, settings

from graphdsl.source.span import Source
from tests.fuzz.generator import programs
from tests.running import MODES, events, said


def main() -> None:
    """Run the programs; exits with status 3 at a difference."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--programs", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--shrink", action="store_true")
    chosen = options.parse_args()
    seen: collections.Counter[str] = collections.Counter()
    begin = time.perf_counter()

    @seed(chosen.seed)
    @settings(
        max_examples=chosen.programs,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if chosen.shrink else [Phase.generate],
        print_blob=False,
    )
    @given(programs())
    def alike(text: str) -> None:
        eager, graph = (said(Source("random.gdl", text), mode, cache=False) for mode in MODES)
        seen.update(kind(eager))
        total = seen["programs"]
        if total % 500 == 0:
            print(f"{total} programs in {time.perf_counter() - begin:.0f} s: {dict(seen)}", flush=True)
        first = next((pair for pair in zip_longest(eager, graph) if pair[0] != pair[1]), None)
        if first:
            raise AssertionError(f"{text}\neager: {first[0]}\ngraph: {first[1]}")

    try:
        alike()
    except AssertionError as error:
        print(f"after {seen['programs']} programs, {dict(seen)}:\n{error}", file=sys.stderr)
        sys.exit(3)
    print(f"{seen['programs']} programs without a difference: {dict(seen)}")


def kind(lines: list[str]) -> list[str]:
    """What became of a program, for the counts."""
    found = events(lines)
    errors = [e for e in found if e["event"] == "error"]
    if not errors:
        return ["programs", "ran"]
    return ["programs", "failed as they ran" if errors[0]["code"].startswith("E07") else "rejected"]


if __name__ == "__main__":
    main()
