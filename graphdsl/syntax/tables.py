"""Makes `tables.json`, the LALR tables of grammars/gdl.lark: `python -m graphdsl.syntax.tables`.

Needs lark and the source tree. What runs a program needs only the JSON, so that starting up does not
import lark (50 ms); a test holds the file against the grammar.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GRAMMAR = Path(__file__).parents[2] / "grammars" / "gdl.lark"
TABLES = Path(__file__).with_name("tables.json")
STARTS = ("module", "expression")


def generate(grammar: str) -> str:
    """The tables of a grammar, as JSON text; the same for the same grammar."""
    from lark import Lark

    lark = Lark(grammar, parser="lalr", start=list(STARTS), maybe_placeholders=True)
    table = lark.parser.parser._parse_table
    texts = {t.name: str(t.pattern.value) for t in lark.terminals if t.pattern.type == "str"}
    kinds = {name: name if text.isalpha() else text for name, text in texts.items()}
    number = _numbering(table)
    rules = {rule: i for i, rule in enumerate(sorted(_rules(table), key=lambda rule: _rule(rule, kinds)))}
    lookaheads: dict[tuple[str, ...], int] = {}
    states = [_state(_named(table.states[old], kinds), number, rules, lookaheads) for old in number]
    data = {
        "starts": {start: [number[table.start_states[start]], number[table.end_states[start]]] for start in STARTS},
        "rules": [_rule(rule, kinds) for rule in rules],
        "lookaheads": list(lookaheads),
        "states": states,
        "words": {text: kinds[name] for name, text in texts.items()},
        "patterns": {t.name: t.pattern.value for t in lark.terminals if t.pattern.type == "re"},
    }
    parts = (f"{json.dumps(key)}:{_lines(value)}" for key, value in data.items())
    return "{" + ",\n".join(parts) + "}\n"


def _numbering(table: Any) -> dict[int, int]:
    """New numbers for lark's states, which come in no order: as they are reached from the starts."""
    order = [table.start_states[start] for start in STARTS]
    seen = set(order)
    for state in order:
        for _, (action, argument) in sorted(table.states[state].items(), key=lambda item: item[0]):
            if action.name == "Shift" and argument not in seen:
                seen.add(argument)
                order.append(argument)
    return {old: new for new, old in enumerate(order)}


def _named(row: Any, kinds: dict[str, str]) -> dict[str, Any]:
    """A row of the table in which operators are called by their text, and reserved words in capitals."""
    return {kinds.get(symbol, symbol): step for symbol, step in row.items()}


def _rules(table: Any) -> set[Any]:
    return {argument for row in table.states.values() for action, argument in row.values() if action.name != "Shift"}


def _state(row: Any, number: dict[int, int], rules: dict[Any, int], lookaheads: dict[tuple[str, ...], int]) -> Any:
    """`[shifts and gotos, [[rule, number of its set of lookaheads], …]]`"""
    shifts = {symbol: number[argument] for symbol, (action, argument) in sorted(row.items()) if action.name == "Shift"}
    reduces: dict[int, list[str]] = {}
    for symbol, (action, argument) in row.items():
        if action.name != "Shift":
            reduces.setdefault(rules[argument], []).append(symbol)
    sets = [[rule, lookaheads.setdefault(tuple(sorted(on)), len(lookaheads))] for rule, on in sorted(reduces.items())]
    return [shifts, sets]


def _rule(rule: Any, kinds: dict[str, str]) -> list[Any]:
    """`[origin, symbols, children, call]`: the children that the callback gets (-1: None for what is left out).

    The callback is "-" where the rule passes its one child on, and "" where it is spliced into its parent."""
    empty = rule.options.empty_indices or [False] * len(rule.expansion)
    children = []
    symbols = iter(enumerate(rule.expansion))
    for is_empty in empty:
        if is_empty:
            children.append(-1)
            continue
        at, symbol = next(symbols)
        if rule.options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
            children.append(at)
    origin = str(rule.origin.name)
    call = rule.alias or origin
    if origin.startswith("_"):
        call = ""
    elif rule.options.expand1 and not rule.alias and len(children) == 1:
        call = "-"
    return [origin, [kinds.get(s.name, str(s.name)) for s in rule.expansion], children, call]


def _lines(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",\n".join(json.dumps(v, separators=(",", ":"), ensure_ascii=False) for v in value) + "]"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    TABLES.write_text(generate(GRAMMAR.read_text("utf-8")), "utf-8")
