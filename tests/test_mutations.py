"""Mangled programs: a few of those that `python -m tests.fuzz.mutations` runs by the thousand."""

from __future__ import annotations

from tests.fuzz import mutations
from tests.fuzz.compare import Runner
from tests.fuzz.mutations import Mutant, corpus, judge, mutant

SEEDS = range(2000, 2400)
SMALL = 500  # characters: what is compiled in a moment


def test_a_seed_is_a_mutant() -> None:
    assert [mutant(seed) for seed in range(50)] == [mutant(seed) for seed in range(50)]


def test_mutants_are_not_what_they_are_made_from() -> None:
    programs = {"".join(mutations._tokens(path)) for path in corpus()}
    assert sum(mutant(seed).text in programs for seed in SEEDS) < len(SEEDS) // 8


def test_they_are_refused_or_run_as_they_should() -> None:
    run = Runner(judge)
    made = [made for made in map(mutant, SEEDS) if len(made.text) < SMALL][:120]
    found = [(run(m), m.text) for m in made]
    run.close()
    assert [(outcome, text) for outcome, text in found if outcome.fault] == []
    kinds = [outcome.kind.partition(":")[0] for outcome, _ in found]
    assert min(kinds.count("ran"), kinds.count("rejected")) > len(kinds) // 8


def test_what_would_never_end_is_no_fault() -> None:
    run = Runner(judge)
    for text in ("while true {}", "x = [1.0]\nwhile true { x = concat([x, x]) }", "x = zeros(10**12)\nprint x"):
        assert run(Mutant(text, ".")).fault == ""
    run.close()
