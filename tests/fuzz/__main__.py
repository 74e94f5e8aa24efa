"""`python -m tests.fuzz --programs N --seed S`: random programs in both modes, and each difference between them.

What is compared is all that a program says: warnings, prints, errors, to the last bit. A seed is a program: the ones
run are S, S + 1, and so on. `--shrink` makes each program found as small as it gets.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time

from tests.fuzz.compare import Outcome, Runner
from tests.fuzz.generator import program
from tests.fuzz.shrink import shrink


def main() -> None:
    """Run the programs; exits with status 3 if there was a difference."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--programs", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--shrink", action="store_true")
    options.add_argument("--write", action="store_true", help="write the programs, and do not run them")
    chosen = options.parse_args()
    if chosen.write:
        print("\n".join(f"# seed {s}\n{program(s)}" for s in range(chosen.seed, chosen.seed + chosen.programs)))
        return
    run = Runner()
    seen: collections.Counter[str] = collections.Counter()
    faults: collections.Counter[str] = collections.Counter()
    begin = time.perf_counter()
    for number, seed in enumerate(range(chosen.seed, chosen.seed + chosen.programs), 1):
        text = program(seed)
        found = run(text)
        seen[found.kind] += 1
        if found.fault:
            faults[found.fault] += 1
            tell(seed, text, found, chosen.shrink)
        if number % 500 == 0:
            print(f"{number} programs in {time.perf_counter() - begin:.0f} s: {dict(seen)}", flush=True)
    run.close()
    print(f"{chosen.programs} programs: {dict(seen)}, {faults.total()} with a fault")
    for fault, count in faults.most_common():
        print(f"  {count:5} {fault}")
    sys.exit(3 if faults else 0)


def tell(seed: int, text: str, found: Outcome, smaller: bool) -> None:
    """Shows a program that fails, made smaller if that is wanted."""
    if smaller and found.kind != "died":
        run = Runner(patience=4.0)  # a loop whose counter was taken out goes on for ever
        text = shrink(text, lambda less: run(less).fault == found.fault)
        found = run(text)
        run.close()
    print(f"---- seed {seed}: {found.fault}\n{text}eager: {found.eager}\ngraph: {found.graph}", flush=True)


if __name__ == "__main__":
    main()
