"""The LALR machine: drives the tables that lark made (`tables.json`) over tokens, and calls a builder.

It keeps three stacks, so depth costs no recursion, and passes over rules that only hand one child on
(the fifteen levels of precedence) without a call. lark itself is not imported as a program runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Any

from graphdsl.syntax.lexer import END, NEWLINE, Token, Vocabulary


class Spliced(list[Any]):
    """The children of a rule that is spliced into its parent."""


class Unexpected(Exception):
    """A token that cannot stand where it is. `states` is the machine's stack there."""

    def __init__(self, token: Token, states: list[int]) -> None:
        super().__init__(token.kind)
        self.token = token
        self.states = states


class Rule:
    """One production, as the machine needs it."""

    __slots__ = ("call", "children", "origin", "passes", "plain", "size", "spliced")

    def __init__(self, origin: str, symbols: list[str], children: list[int], call: str) -> None:
        self.origin = origin
        self.size = len(symbols)
        self.children = children
        self.call = call
        self.passes = call == "-" and self.size == 1
        self.spliced = [i for i in children if i >= 0 and symbols[i].startswith("_")]
        self.plain = not self.spliced


class States(dict[int, dict[str, int]]):
    """The rows of the states, each unfolded when it is first reached: a small program reaches a third."""

    def __init__(self, folded: list[Any], lookaheads: list[list[str]]) -> None:
        super().__init__()
        self.folded = folded
        self.lookaheads = lookaheads

    def __missing__(self, state: int) -> dict[str, int]:
        row, reduces = self.folded[state]
        for rule, lookahead in reduces:
            row.update(dict.fromkeys(self.lookaheads[lookahead], ~rule))
        self[state] = row
        return row  # type: ignore[no-any-return]


class Tables:
    """The tables of the grammar: for each state, what each symbol leads to: a state (≥ 0) or a rule (~number)."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.rules = [Rule(*row) for row in data["rules"]]
        self.starts: dict[str, tuple[int, int]] = data["starts"]
        self.states = States(data["states"], data["lookaheads"])
        self.vocabulary = Vocabulary(data["words"], data["patterns"])

    def accepts(self, states: list[int], kind: str) -> bool:
        """Whether a token of this kind could come next, where the machine's stack is `states`."""
        stack = list(states)
        while (step := self.states[stack[-1]].get(kind)) is not None:
            if step >= 0:
                return True
            rule = self.rules[~step]
            if rule.size:
                del stack[-rule.size :]
            goto = self.states[stack[-1]].get(rule.origin)
            if goto is None:
                return True
            stack.append(goto)
            if kind == END and goto in (end for _, end in self.starts.values()):
                return True
        return False

    @cached_property
    def only_in_statements(self) -> frozenset[str]:
        """Tokens that start a statement, or go on with one behind the names it starts with, and stand in no
        expression.
        """
        start = self.states[self.starts["module"][0]]
        found = {*_shifts(start), *_shifts(self.states[start["exprs"]])}
        found -= {NEWLINE, *(rule.origin for rule in self.rules)}
        states = [self.starts["expression"][0]]
        seen = set(states)
        for state in states:  # grows as it runs
            shifts = _shifts(self.states[state])
            found.difference_update(shifts)
            states.extend(dict.fromkeys(step for step in shifts.values() if step not in seen))
            seen.update(shifts.values())
        return frozenset(found)


def _shifts(row: dict[str, int]) -> dict[str, int]:
    """The symbols that a state takes, and where they lead."""
    return {symbol: step for symbol, step in row.items() if step >= 0}


class Machine:
    """One run of the tables: the stacks of states, of values, and of the offsets where these begin.

    The builder's methods are named as the rules' callbacks, and get `start`, `end` (offsets) and the children.
    """

    def __init__(self, tables: Tables, start: str, builder: Any) -> None:
        first, self.last = tables.starts[start]
        self.tables = tables
        self.builder = builder
        self.states = [first]
        self.values: list[Any] = []
        self.begins: list[int] = []

    def run(self, tokens: Iterable[Token]) -> Any:
        """Parse to the end; what the builder made of the start. After an error `states` is as it was there."""
        states, rules, builder, last = self.tables.states, self.tables.rules, self.builder, self.last
        stack, values, begins = self.states, self.values, self.begins
        end = 0  # of the last token shifted
        for token in tokens:
            kind = token.kind
            while True:
                step = states[stack[-1]].get(kind)
                if step is None:
                    raise Unexpected(token, stack)
                if step >= 0:
                    stack.append(step)
                    values.append(token)
                    begins.append(token.start)
                    end = token.end
                    break
                rule = rules[~step]
                if rule.passes:
                    stack[-1] = states[stack[-2]][rule.origin]
                elif size := rule.size:
                    value = _reduce(rule, values[-size:], begins[-size], end, builder)
                    del stack[-size:]
                    del values[-size:]
                    if size > 1:
                        del begins[1 - size :]
                    stack.append(states[stack[-1]][rule.origin])
                    values.append(value)
                else:
                    values.append(_reduce(rule, [], token.start, token.start, builder))
                    begins.append(token.start)
                    stack.append(states[stack[-1]][rule.origin])
                if stack[-1] == last and kind == END:
                    return values[-1]
        raise AssertionError("the tokens had no end")

    def drop_statement(self, blocks: int) -> tuple[int, int]:
        """Takes the statement back that is being read, as if it had been read whole (its value is None).

        At most `blocks` blocks are open: one that has been closed is part of the statement. Gives the offset where it
        began (-1: it had not) and how many blocks are open around it.
        """
        states = self.tables.states
        opened = [i for i, value in enumerate(self.values) if isinstance(value, Token) and value.kind == "{"]
        highest = opened[blocks] if len(opened) > blocks else len(self.states) - 1
        keep = next(i for i in range(highest, -1, -1) if "statement" in states[self.states[i]])
        begin = self.begins[keep] if keep < len(self.begins) else -1
        del self.states[keep + 1 :]
        del self.values[keep:]
        del self.begins[keep:]
        self.states.append(states[self.states[-1]]["statement"])
        self.values.append(None)
        self.begins.append(begin)
        return begin, sum(isinstance(v, Token) and v.kind == "{" for v in self.values)


def _reduce(rule: Rule, values: list[Any], start: int, end: int, builder: Any) -> Any:
    """The value of a rule from those of its symbols."""
    if rule.plain:
        children = [values[i] if i >= 0 else None for i in rule.children]
    elif rule.call == "" and rule.children[0] in rule.spliced and isinstance(values[rule.children[0]], Spliced):
        children = values[rule.children[0]]  # a growing list: only its end is new
        for i in rule.children[1:]:
            _add(children, values[i])
        return children
    else:
        children = []
        for i in rule.children:
            _add(children, values[i] if i >= 0 else None)
    if rule.call == "":
        return Spliced(children)
    if rule.call == "-":
        return children[0]
    return getattr(builder, rule.call)(start, end, *children)


def _add(children: list[Any], value: Any) -> None:
    if isinstance(value, Spliced):
        children.extend(value)
    else:
        children.append(value)


@cache
def tables() -> Tables:
    """The tables shipped with the package."""
    with open(os.path.join(os.path.dirname(__file__), "tables.json"), encoding="utf-8") as file:
        return Tables(json.load(file))
