"""Every example of the language reference is true in both modes, and its tables hold what the program holds.

A block ```gdl is run; what it prints, warns of and fails with stands in its comments (`tests.expectations`), or in the
block ```text behind it, which is what a terminal shows. A block with a name (```gdl lib/falling.gdl, ```csv prices.csv) is a
file for what follows in its section. `python -m tests.test_reference` writes the generated parts anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphdsl.check.context import MOST_DIMS
from graphdsl.check.functions import MOST_DEEP
from graphdsl.check.modules import STANDARD, standard
from graphdsl.check.values import MOST_LEAVES, MOST_LEVELS
from graphdsl.cli import reference
from graphdsl.ops.table import OPS
from graphdsl.runtime.faults import MOST_ACTIVE_CALLS
from graphdsl.runtime.modes import MODES
from graphdsl.source.files import read_source
from graphdsl.syntax.lalr import tables
from graphdsl.syntax.limits import MAX_BLOCKS, MAX_LOOPS
from tests import expectations
from tests.command_line import Said
from tests.running import events, said
from tests.test_programs import given

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "grammars" / "README.md"
TEXT = REFERENCE.read_text("utf-8")

# ---- examples ------------------------------------------------------------------------------------------


@dataclass
class Block:
    """A fenced block: what stands behind its fence, its text, its line, and what a terminal shows of it (None: not said)."""

    kind: str
    name: str
    text: str
    line: int
    shown: str | None = None


def sections() -> dict[str, list[Block]]:
    """The blocks under each heading of the second level."""
    found: dict[str, list[Block]] = {}
    for part in re.finditer(r"^## (.*?)\n(.*?)(?=^## |\Z)", "## Beginning\n" + TEXT, re.M | re.S):
        blocks: list[Block] = []
        for b in re.finditer(r"^```(\w*) ?(\S*)\n(.*?)^```$", part[2], re.M | re.S):
            if b[1] == "text":
                blocks[-1].shown = b[3]
            else:
                blocks.append(Block(b[1], b[2], b[3], TEXT.count("\n", 0, TEXT.index(b[0])) + 1))
        found[part[1]] = blocks
    return {title: blocks for title, blocks in found.items() if blocks}


SECTIONS = sections()


@pytest.mark.parametrize("title", SECTIONS)
def test_the_examples_of_a_section(title: str, tmp_path: Path, graphdsl: Any) -> None:
    found = []
    for block in SECTIONS[title]:
        path = tmp_path / (block.name or f"line_{block.line}.gdl")
        path.parent.mkdir(exist_ok=True)
        path.write_text(block.text, "utf-8")
        wrong = differences(path) if block.kind == "gdl" and block.shown is None else []
        if block.shown is not None:
            wrong = [f"{mode}:\n{text}" for mode in MODES if (text := shown(graphdsl, path, mode)) != block.shown]
        found += [f"in the block at line {block.line}: {difference}" for difference in wrong]
    assert not found, "\n".join(found)


def differences(path: Path) -> list[str]:
    """In what a program does otherwise than is written beside it."""
    expected = expectations.read(path)
    eager, graph = (said(read_source(str(path)), mode, **given(expected.arguments)) for mode in MODES)
    found = expectations.differences(expected, events(eager)) + expectations.unstated(expected, events(eager))
    return found if eager == graph else [*found, "the modes differ"]


def shown(graphdsl: Callable[..., Said], path: Path, mode: str) -> str:
    """What a terminal shows of a run, where the program is in the current folder."""
    done = graphdsl("run", str(path), "--mode", mode)
    return (done.out + done.err).replace(str(path), path.name).rstrip("\n") + "\n"


def test_a_print_without_an_expectation_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.gdl"
    path.write_text("print 1\nprint 2  #> 2\n")
    assert differences(path) == ["line 1: a print, and no expectation"]


# ---- what is written by hand, and must be whole --------------------------------------------------------


def table(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading of any level."""
    (part,) = re.findall(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", TEXT, re.M | re.S)
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return [row for row in rows if row != [""] and set(row[0]) != {"-"}]


def listed(heading: str) -> list[str]:
    """What the first cells of a table hold between backticks."""
    return [name for row in table(heading) for name in re.findall(r"`(.*?)`", row[0])]


def code() -> str:
    """All of graphdsl's Python."""
    return "".join(path.read_text("utf-8") for path in (ROOT / "graphdsl").rglob("*.py"))


def test_the_reserved_words_are_those_of_the_lexer() -> None:
    words = tables().vocabulary.words
    names = re.search(r"^name: (.*)$", (ROOT / "grammars" / "gdl.lark").read_text("utf-8"), re.M)
    assert names is not None
    free = {word for word, kind in words.items() if kind in names[1].split(" | ")}
    assert sorted(listed("Reserved words")) == sorted(words.keys() - free)
    assert sorted(listed("Words that are names elsewhere")) == sorted(free)


def test_the_limits_are_those_of_the_program() -> None:
    stated = [int(row[1].replace(",", "")) for row in table("Limits")]
    assert stated == [MAX_BLOCKS, MAX_LOOPS, MOST_DIMS, MOST_ACTIVE_CALLS, MOST_DEEP, MOST_LEAVES, MOST_LEVELS]


def test_each_group_of_codes_is_explained() -> None:
    assert listed("Errors and warnings") == sorted(set(re.findall(r'"([EW]\d\d)\d\d"', code())))


def test_each_section_that_code_cites_is_there() -> None:
    titles = re.findall(r"^#+ (.*)|^\*\*(.*?)\.?\*\*", TEXT, re.M)
    cited = set(re.findall(r'grammars/README\.md,\s+"([^"]+)"', code()))
    assert cited
    assert cited <= {title for pair in titles for title in pair}


def test_the_contents_are_the_headings() -> None:
    contents = re.findall(r"\[(.*?)\]\(#(.*?)\)", TEXT[TEXT.index("Contents:") : TEXT.index("## Text")])
    assert [title for title, _ in contents] == re.findall(r"^## (.*)", TEXT, re.M)
    assert all(anchor == title.lower().replace(" ", "-") for title, anchor in contents)


# ---- what is generated ---------------------------------------------------------------------------------


def functions() -> Iterator[str]:
    """A table of the built-in functions and operators for each of their groups."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for op in OPS.values():
        groups.setdefault(reference.heading(op), []).append((reference.signature(op), op.doc))
    groups.pop(reference.INNER)
    groups["flow and derivatives"] = [(f.signature, f.doc) for f in reference.forms()] + groups.pop("derivatives")
    for group, entries in groups.items():
        yield from ("", f"### {group.capitalize()}", "", "| | |", "| --- | --- |")
        for signature, doc in entries:
            yield f"| `{_cell(signature)}` | {_cell(doc)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def modules() -> Iterator[str]:
    """What each standard module holds."""
    for name in standard():
        text = Path(STANDARD, f"{name}.gdl").read_text("utf-8")
        (about,) = re.findall(r"^# (.*?\.) ", text)
        yield from ("", f"### {name}", "", about, "")
        yield ", ".join(f"`{found}`" for found in re.findall(r"^fn ([^_\W]\w*\(.*?\))(?: =| \{)", text, re.M))


GENERATED: list[Callable[[], Iterator[str]]] = [modules, functions]


def part_of(make: Callable[[], Iterator[str]]) -> re.Pattern[str]:
    """Where what this function makes stands: between two comments."""
    name = make.__name__
    return re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", re.S)


def made_by(make: Callable[[], Iterator[str]]) -> str:
    return "\n".join([*make(), "", ""])


@pytest.mark.parametrize("make", GENERATED)
def test_a_generated_part_is_what_is_generated(make: Callable[[], Iterator[str]]) -> None:
    assert part_of(make).findall(TEXT) == [made_by(make)]


def main() -> None:
    """Write the generated parts anew."""
    text = TEXT
    for make in GENERATED:
        made = made_by(make)
        text = part_of(make).sub(lambda _, made=made: made, text)
    REFERENCE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
