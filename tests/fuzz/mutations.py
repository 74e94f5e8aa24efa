"""`python -m tests.fuzz.mutations --mutants N --seed S`: mangled programs in both modes, and each that is not refused or
run as it should be.

A mutant is a program of `samples` and `tests`, with a few of its tokens, lines or characters changed. Whatever it has
become, both modes say the same of it, in bounded time and memory, and nothing crashes: neither the checker, nor the
advice, nor what shows an error to a person. Only where a limit strikes may differ. A seed is a mutant.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

from graphdsl.api.agreement import LIMITS
from graphdsl.api.program import Prepared, Program
from graphdsl.check.names import FORMS
from graphdsl.ops.table import OPS
from graphdsl.render import json as lines
from graphdsl.render.diagnostics import render
from graphdsl.runtime.limits import Limits
from graphdsl.runtime.modes import MODES
from graphdsl.source.diagnostic import Diagnostic, ProgramError
from graphdsl.source.span import Source
from tests.fuzz.compare import Outcome, Runner, crash, outcome, sort
from tests.running import Lines

ROOT = Path(__file__).parents[2]
FOLDERS = {"samples": 10, "tests/programs": 10, "tests/diagnostics": 1}  # how often; what is right already goes further
SLOW = re.compile("_order|growing|recursion|custom_rules|stacks")  # to compile
SECONDS = 1.0
BYTES = 100_000_000
MOST_BYTES = 6 << 30  # of the process: what takes more has no bound
PATIENCE = 150.0


@dataclass(frozen=True)
class Mutant:
    """A mangled program, and the folder where its files are looked up."""

    text: str
    folder: str


# ---- making them --------------------------------------------------------------------------------------

Tokens = list[str]
Change = Callable[[random.Random, Tokens, Tokens], Tokens]  # of a program, beside the tokens of another one

_TOKEN = re.compile(
    r'\d[\w.]*(?:e[-+]\d+)?|\w+|"(?:\\.|[^"\\\n])*"|\r?\n|[ \t]+|\*\*=|//=|[-+*/%@:=<>!]=|\*\*|//|->|\.\.|.', re.DOTALL
)
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|[ \t]*#[^\n]*')
_EXTREMES = (
    "0", "1", "-1", "2", "33", "255", "256", "257", "1025", "4097", "65536", "2147483648", "4611686018427387904",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1_000_000_000_000", "0.0", "-0.0", "1e308",
    "1e-320", "1e400", "inf", "nan", "0x7fffffffffffffff", "1" * 400, "0." + "3" * 400,
)  # fmt: skip
_ODD = (
    "\0\a\r\t\x1b\x85\xa0\u0301\u200b\u202e\u2028\u2081\ufeff\uff08\U0001f600'\"`\\{}[]();:,.#$^&|~!?=<>-+*/%@0eE_ 损"
)
_WORDS = """if else while for break continue return fn param input const use print assert save seed checkpoint vjp"""
_FUNCTIONS = "|".join(sorted({*OPS, *FORMS, "range"}))
_CLASSES = [
    (name, re.compile(rf"(?:{pattern})$", re.DOTALL))
    for name, pattern in (
        ("number", r"\d.*"),
        ("string", r'".*'),
        ("blank", r"\s+"),
        ("statement", "|".join(_WORDS.split())),
        ("type", "f64|f32|i64|i32|bool"),
        ("function", _FUNCTIONS),
        ("name", r"\w+"),
        ("comparison", "[<>]|[=!<>]=|and|or"),
        ("arithmetic", r"\*\*|//|[-+*/%@]"),
        ("assignment", "=|:=|(?:[-+*/%@]|//|[*][*])="),
        ("bracket", r"[][(){}]"),
        ("other", ".*"),
    )
]


def mutant(seed: int, paths: Sequence[Path] | None = None) -> Mutant:
    """The mutant of a seed."""
    draw = random.Random(seed)
    known = paths or corpus()
    path, other = draw.choice(known), draw.choice(known)
    tokens, others = _tokens(path), _tokens(other)
    for _ in range(draw.choice((1, 1, 1, 1, 1, 1, 2, 3, 5))):
        change = draw.choices(list(CHANGES), list(CHANGES.values()))[0]
        if len(tokens) > 1:
            tokens = change(draw, tokens, others)
    return Mutant("".join(tokens), str(path.parent))


@cache
def corpus() -> tuple[Path, ...]:
    """The programs that mutants are made from."""
    found = ((p, often) for folder, often in FOLDERS.items() for p in sorted((ROOT / folder).glob("*.gdl")))
    return tuple(p for p, often in found if not SLOW.search(p.stem) for _ in range(often))


@cache
def _read(path: Path) -> tuple[str, ...]:
    text = path.read_text("utf-8", "replace")
    return tuple(_TOKEN.findall(_COMMENT.sub(r"\1", text)))


def _tokens(path: Path) -> Tokens:
    return list(_read(path))


def _class(token: str) -> str:
    return next(name for name, pattern in _CLASSES if pattern.match(token))


def _place(draw: random.Random, tokens: Tokens) -> int:
    """The place of a token that is no blank."""
    return draw.choice([i for i, t in enumerate(tokens) if not t.isspace()] or [0])


def delete(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    at = _place(draw, tokens)
    return tokens[:at] + tokens[at + draw.choice((1, 1, 1, 2, 5)) :]


def duplicate(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    at = _place(draw, tokens)
    again = tokens[at : at + draw.choice((1, 1, 2, 5, 20))] * draw.choice((1, 1, 1, 2, 30))
    return tokens[:at] + again + tokens[at:]


def swap(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    made = list(tokens)
    a, b = _place(draw, tokens), _place(draw, tokens)
    made[a], made[b] = made[b], made[a]
    return made


def swap_alike(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    """Two tokens of one class."""
    made = list(tokens)
    a = _place(draw, tokens)
    b = draw.choice([i for i, t in enumerate(tokens) if _class(t) == _class(tokens[a])])
    made[a], made[b] = made[b], made[a]
    return made


def replace_alike(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    """A token by another one of its class, of this program or of another."""
    at = _place(draw, tokens)
    source = draw.choice((tokens, tokens, others))
    alike = [t for t in source if _class(t) == _class(tokens[at]) and t != tokens[at]]
    return [*tokens[:at], draw.choice(alike or tokens), *tokens[at + 1 :]]


def replace_any(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    at = _place(draw, tokens)
    return [*tokens[:at], draw.choice(others or tokens), *tokens[at + 1 :]]


def extreme(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    """A number that is as large, small or odd as they come."""
    numbers = [i for i, t in enumerate(tokens) if _class(t) == "number"]
    if not numbers:
        return delete(draw, tokens, others)
    at = draw.choice(numbers)
    return [*tokens[:at], draw.choice(_EXTREMES), *tokens[at + 1 :]]


def _lines(tokens: Tokens) -> list[str]:
    return "".join(tokens).splitlines(keepends=True)


def splice(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    """The head of this program, and the tail of another."""
    mine, theirs = _lines(tokens), _lines(others)
    text = mine[: draw.randint(0, len(mine))] + theirs[draw.randint(0, len(theirs)) :]
    return _TOKEN.findall("".join(text))


def lines_of_another(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    mine, theirs = _lines(tokens), _lines(others)
    at, start = draw.randint(0, len(mine)), draw.randint(0, len(theirs))
    text = mine[:at] + theirs[start : start + draw.choice((1, 1, 2, 4))] + mine[at:]
    return _TOKEN.findall("".join(text))


def move_line(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    mine = _lines(tokens)
    line = mine.pop(draw.randrange(len(mine)))
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        mine.insert(draw.randint(0, len(mine)), line)
    return _TOKEN.findall("".join(mine))


def truncate(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    text = "".join(tokens)
    return _TOKEN.findall(text[: draw.randrange(len(text))])


def characters(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    """A character taken out, put in, or changed."""
    text = "".join(tokens)
    at = draw.randrange(len(text))
    return _TOKEN.findall(text[:at] + draw.choice(("", draw.choice(_ODD))) + text[at + draw.choice((0, 1)) :])


def blanks(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    """A newline or a blank where there was none, or another one, or none."""
    spaces = [i for i, t in enumerate(tokens) if t.isspace()]
    at = draw.choice(spaces or [0])
    made = draw.choice(("", "\n", "\r\n", "\r", ";", "\t", "\n\n", " " * 200, "{", "}", " } ", " { ", "\n}\n"))
    return [*tokens[:at], made, *tokens[at + 1 :]]


def nest(draw: random.Random, tokens: Tokens, others: Tokens) -> Tokens:
    """A token in many brackets, or with many signs."""
    at = _place(draw, tokens)
    depth = draw.choice((1, 2, 40, 300, 3000))
    left, right = draw.choice(
        (("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("f64(", ")"), ("{ ", " }"), ("(", ",)"))
    )
    return [*tokens[:at], left * depth, tokens[at], right * depth, *tokens[at + 1 :]]


CHANGES: dict[Change, int] = {
    replace_alike: 14, swap_alike: 10, extreme: 8, delete: 3, duplicate: 3, swap: 1, replace_any: 2, splice: 4,
    lines_of_another: 5, move_line: 8, truncate: 1, characters: 2, blanks: 2, nest: 2,
}  # fmt: skip


# ---- running them -------------------------------------------------------------------------------------


def judge(given: Mutant) -> Outcome:
    """What becomes of a mutant in both modes, and whether that is as it should be."""
    _bound_memory()
    source = Source("mutant.gdl", given.text, given.folder)
    eager, graph = (_run(source, mode) for mode in MODES)
    kind = outcome(eager)
    for line in (*eager, *graph):
        if line.startswith("crash") or '"code":"E0732"' in line:  # no memory, although little is allowed
            return Outcome(kind, line, str(eager[-1:]), str(graph[-1:]))
    for a, b in zip_longest(eager, graph):
        if any(line is not None and _limited(line) for line in (a, b)):
            return Outcome("reached a limit")
        if a != b:
            return Outcome(kind, f"{sort(a)} in eager mode, {sort(b)} in graph mode", str(a), str(b))
    return Outcome(kind)


def _bound_memory() -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _limited(line: str) -> bool:
    return any(f'"code":"{code}"' in line for code in LIMITS)


class _NoSaves:
    """Files that are read, and not written."""

    def begin(self) -> None: ...

    def __init__(self) -> None:
        from graphdsl.runtime import files

        self.load = files.load

    def save(self, *given: object) -> None: ...


def _run(source: Source, mode: str) -> list[str]:
    """What a program says, shown to a person too."""
    sink = Lines()
    try:
        try:
            program = Program(source)
            given = program.given({}, {})
            given.limits = Limits(BYTES, SECONDS, counted=True)
            given.files = _NoSaves()
            if mode == "eager":
                _shown(program.warnings())
            prepared = Prepared(program, mode, given, program.check(), use_cache=False)
            sink.said += [lines.problem(d) for d in prepared.warnings]
            prepared.run(sink)
        except ProgramError as error:
            _shown(error.diagnostics)
            sink.said += [lines.problem(d) for d in error.diagnostics]
    except Exception as error:
        sink.said.append(crash(error))
    return sink.said


def _shown(found: Sequence[Diagnostic]) -> None:
    """Each as a person sees it, with a place in its text."""
    for diagnostic in found:
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(diagnostic.span.source.text), diagnostic
        assert len(diagnostic.message) < 2000, f"{diagnostic.code}: {len(diagnostic.message)} characters"
        render(diagnostic, 80)


# ---- the command --------------------------------------------------------------------------------------


def main() -> None:
    """Run the mutants; exits with status 3 if there was a fault."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--mutants", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--more", type=Path, action="append", default=[], help="a folder with more programs")
    options.add_argument("--write", action="store_true", help="write the mutants, and do not run them")
    chosen = options.parse_args()
    paths = [*corpus(), *(p for folder in chosen.more for p in sorted(folder.glob("*.gdl")) * 10)]
    seeds = range(chosen.seed, chosen.seed + chosen.mutants)
    if chosen.write:
        print("\n".join(mutant(s, paths).text for s in seeds))
        return
    run = Runner(judge, PATIENCE)
    seen: collections.Counter[str] = collections.Counter()
    faults = 0
    begin = time.perf_counter()
    for number, seed in enumerate(seeds, 1):
        made = mutant(seed, paths)
        start = time.perf_counter()
        found = run(made)
        took = time.perf_counter() - start
        seen[found.kind] += 1
        if found.fault or took > 15:
            faults += bool(found.fault)
            print(f"---- seed {seed}, {took:.0f} s: {found.fault}\n{made.text}", flush=True)
            print(f"eager: {found.eager}\ngraph: {found.graph}", flush=True)
        if number % 100 == 0:
            print(f"{number} mutants in {time.perf_counter() - begin:.0f} s: {dict(seen)}", flush=True)
    run.close()
    print(f"{chosen.mutants} mutants: {dict(seen)}, {faults} with a fault")
    sys.exit(3 if faults else 0)


if __name__ == "__main__":
    main()
