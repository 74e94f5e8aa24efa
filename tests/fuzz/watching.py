"""How a program is run: what is watched, what is fetched, and how many threads it has."""

from __future__ import annotations

import re
import shlex

from tests.fuzz.writer import Kind, Scope, Writer

CONDITIONS = (
    "sum({x}) > {.}",
    "sum({x}) == sum({x})",
    "{i} % 2 == 0",
    "{i} > 1 or sum({x}) < {.}",
    "not (sum({x}) < {y})",
)
_SET = re.compile(r"^ *(\w+)(?:\[.*\])? [-+*:]?= ")
_TEXTS = re.compile(r'^ *(\w+) = (?:"|(?:\w+|\(\w+(?:, \w+)*\)) ->)')  # texts and functions cannot be watched
_FOR = re.compile(r"^ *for (\w+)")


def watch(w: Writer, lines: list[str], scope: Scope) -> None:
    """Probes of some names of a program, wherever they are set."""
    places = [(found[1], at) for at, line in enumerate(lines) if (found := _SET.match(line)) and not _TEXTS.match(line)]
    places += [(found[1], at + 1) for at, line in enumerate(lines) if (found := _FOR.match(line))]
    for _ in range(w.number(1, 4) if places else 0):
        name, at = w.recent(places)
        stats = ":stats" if w.chance(25) else ""
        test = (
            f" if {condition(w, name, around(lines, at), scope)}" if w.chance(40) and name not in scope.tuples else ""
        )
        w.arguments.append(f"--probe {shlex.quote(name + stats + test)}")


def around(lines: list[str], at: int) -> list[str]:
    """The variables of the loops around a line."""
    found, depth = [], indent(lines[at])
    for line in reversed(lines[:at]):
        if indent(line) < depth:
            depth = indent(line)
            found += [match[1] for match in [_FOR.match(line)] if match]
    return found


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def condition(w: Writer, name: str, counters: list[str], scope: Scope) -> str:
    """A condition on what is watched, the loops around it, and what was set before."""
    earlier = list(scope.names)[: list(scope.names).index(name)] if name in scope.names else []
    scalars = [n for n in earlier if scope.names[n].shape == () and scope.names[n].dtype != "bool" and len(n) > 1]
    text = w.pick(CONDITIONS).replace("{x}", name).replace("{y}", w.pick(scalars or ["0.5"]))
    return text.replace("{i}", w.pick(counters or ["1"])).replace("{.}", w.literal(Kind("f64")))


def fetch(w: Writer, scope: Scope) -> None:
    """Some names of the top level."""
    names = [*scope.names, *scope.growing]
    if names:
        w.arguments.append(f"--fetch {','.join(sorted({w.recent(names) for _ in range(w.number(1, 3))}))}")
