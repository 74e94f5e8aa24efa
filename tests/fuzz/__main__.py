"""`python -m tests.fuzz --programs N --seed S`: random programs in both modes, and each difference between them.

What is compared is all that a program says: warnings, prints, errors, to the last bit. A seed is a program: the ones
run are S, S + 1, and so on. `--shrink` makes each program found as small as it gets.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from collections.abc import Iterable, Iterator

from tests.fuzz.compare import Outcome, Runner
from tests.fuzz.constructs import constructs
from tests.fuzz.generator import program
from tests.fuzz.shrink import shrink


def main() -> None:
    """Write, count or run programs; exits with status 3 if there was a difference."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--programs", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--shrink", action="store_true")
    options.add_argument("--write", action="store_true", help="write the programs, and do not run them")
    options.add_argument("--count", action="store_true", help="count what they are made of, and do not run them")
    options.add_argument("--having", metavar="CONSTRUCT", help="only those that have it, as --count names it")
    chosen = options.parse_args()
    texts = written(chosen.seed, chosen.programs, chosen.having)
    if chosen.write:
        print("\n".join(f"# seed {seed}\n{text}" for seed, text in texts))
    elif chosen.count:
        table(collections.Counter(name for _, text in texts for name in constructs(text)))
    elif not agree(texts, chosen.shrink):
        sys.exit(3)


def written(seed: int, count: int, having: str | None) -> Iterator[tuple[int, str]]:
    """So many programs from a seed on, with their seeds."""
    while count > 0:
        text = program(seed)
        if having is None or having in constructs(text):
            count -= 1
            yield seed, text
        seed += 1


def agree(texts: Iterable[tuple[int, str]], smaller: bool) -> bool:
    """Whether both modes say the same of all of them; tells what does not, and at the end what became of them."""
    run = Runner()
    seen: collections.Counter[str] = collections.Counter()
    faults: collections.Counter[str] = collections.Counter()
    begin = time.perf_counter()
    for number, (seed, text) in enumerate(texts, 1):
        found = run(text)
        seen[found.kind] += 1
        if found.fault:
            faults[found.fault] += 1
            tell(seed, text, found, smaller)
        if number % 50 == 0:
            print(
                f"{number} programs in {time.perf_counter() - begin:.0f} s, {faults.total()} with a fault", flush=True
            )
    run.close()
    print(f"{seen.total()} programs in {time.perf_counter() - begin:.0f} s, {faults.total()} with a fault")
    table(seen)
    table(faults)
    return not faults


def table(counts: collections.Counter[str]) -> None:
    """The counts of names, the largest first."""
    for name, count in counts.most_common():
        print(f"  {count:5} {name}")


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
