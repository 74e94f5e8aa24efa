"""Functions that save: what a reverse walk may need of a call is saved on the caller's tape.

The saving form of a function has a tape as its last param, and as its last result the place of what its body saved. It
is made once, for all derivatives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from graphdsl.core.clone import clone_block
from graphdsl.core.ir import Block, Call, Derive, Func, Value
from graphdsl.graph.between import GraphBetween
from graphdsl.graph.ir import Push, Put, Read, Record, Take
from graphdsl.graph.saving import PLACE, Entry, Saving, Tape


def prepare(before: GraphBetween, saving: Saving, tape: Tape) -> GraphBetween:
    """Give every call that a walk comes through a function that saves; the walk, then. `before` is what it was when
    nothing was built."""
    derive, between = before.derive, before
    if not saving.unlinked.isdisjoint(before.through):
        saving.link()
    if saving.links is not before.links:
        between = GraphBetween(saving.links, derive, saving.instances)
    while fresh := _unprepared(derive, saving, between):
        links = saving.links
        inner = _by_function(between)
        for call, block in fresh:
            given = saving.params.get(links.owner[block].func.body, tape)
            if given is tape:
                around = set(saving.around(block))
                saving.reach(tape, next(block for block, _ in links.path(derive) if block in around))
            _let_save(call, given, inner, saving)
        saving.link()
        between = GraphBetween(saving.links, derive, saving.instances)
    return between


def _by_function(between: GraphBetween) -> dict[Func, list[Call]]:
    """The calls that a walk comes through, by the function in which they stand."""
    found: dict[Func, list[Call]] = defaultdict(list)
    links = between.links
    for call in between.calls:
        found[links.owner[links.calls[call]].func].append(call)
    return found


def _let_save(call: Call, given: Tape, inner: Mapping[Func, list[Call]], saving: Saving) -> None:
    """Let a call save on the tape given, and, in the form that it calls then, the copies of `inner` calls likewise: so
    that a walk is not made anew for every level of calls.
    """
    todo = [(call, given)]
    while todo:
        call, given = todo.pop()
        if call.func.body in saving.params:
            continue
        func, form = call.func, saving_form(call.func, saving)
        call.func = form
        call.args = (*call.args, given.value)
        call.outs = (*call.outs, Value(PLACE))
        copies = saving.copies[form]
        todo += [(copies[c], saving.params[form.body]) for c in inner.get(func, ()) if c in copies]


def _unprepared(derive: Derive, saving: Saving, between: GraphBetween) -> list[tuple[Call, Block]]:
    """The calls that the walk comes through, and that save nothing yet, with the block in which they stand."""
    links = saving.links
    own = links.func_of(derive)
    return [
        (call, block)
        for call in between.calls
        if call.func.body not in saving.params and (block := links.calls[call])
        if links.owner[block].func is own or links.owner[block].func.body in saving.params
    ]


def saving_form(func: Func, saving: Saving) -> Func:
    """The function that also saves what a reverse walk may need."""
    if func in saving.forms:
        return saving.forms[func]
    form = saving.forms[func] = Func(f"{func.name}'", Block(), func.span, func.derived)
    tape = Tape(func.span, param=True)
    values = {t.value: tape.value for t in saving.tapes if _within(t, func, saving)}
    copies = saving.copies[form] = {}
    form.body = clone_block(func.body, values, copied=copies.__setitem__)
    form.body.params.append(tape.value)
    saving.params[form.body] = tape
    _copy_entries(copies, tape, saving)
    push = _push_of(form.body)
    if push is None:
        push = Push(func.span, tape.value, Record(), (), Value(PLACE))
        body: list[Any] = form.body.body
        body.append(push)
        saving.entries[form.body] = Entry(tape, push)
    form.body.yields.append(push.out)
    return form


def _within(tape: Tape, func: Func, saving: Saving) -> bool:
    block = tape.root().block
    return block is not None and block in saving.links.owner and saving.links.owner[block].func is func


def _push_of(block: Block) -> Push | None:
    body: list[Any] = block.body
    return next((i for i in body if isinstance(i, Push)), None)


def _copy_entries(copies: dict[Any, Any], tape: Tape, saving: Saving) -> None:
    """The copies' entries have forms of their own, as more may be saved in them."""
    records = {old.record: Record(list(old.record.types)) for old in copies if isinstance(old, Push)}
    for old, new in copies.items():
        if isinstance(new, Push | Read | Take | Put):
            new.record = records.get(new.record, new.record)
        if isinstance(old, Block) and old in saving.entries:
            push = copies[saving.entries[old].push]
            saving.entries[new] = Entry(tape, push)
        elif old in saving.places:
            saving.places[new] = new.outs[old.outs.index(saving.places[old])]
        if old in saving.counts:
            out, in_cond, in_body = saving.counts[old]
            saving.counts[new] = (
                new.outs[old.outs.index(out)],
                new.cond.params[old.cond.params.index(in_cond)],
                new.body.params[old.body.params.index(in_body)],
            )
