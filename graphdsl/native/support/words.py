"""The memory that native code and Python share in a run: the words of its context, and of values handed over.

Everything is an i64 word. A scalar is one word (its bits), a tensor `data, owner, sizes…`; `owner` is the header of
the buffer that `data` lies in.
"""

from __future__ import annotations

from enum import IntEnum

from graphdsl.ops.types import Type
from graphdsl.source.diagnostic import MOST_TRAIL

ENTRY = "run.main"  # the function of a program that Python calls


class Word(IntEnum):
    """Words of the context that every native function gets."""

    STOP = 0  # not 0: give up at the next loop edge or call
    SITE = 1  # what failed (see native/program/sites.py)
    COUNT = 2  # how many numbers of the fault follow
    NUMBERS = 3
    CALLBACK = 11  # `i32 f(i64 site, i64 *words)`: a Python function; not 0: give up
    KEY = 12  # of the random stream
    COUNTER = 13
    FEEDS = 14  # address of the words of fed values
    RESULTS = 15  # address of the words of results
    USED = 16  # bytes of live buffers
    LIMIT = 17
    PEAK = 18
    MALLOC = 19  # address of a function `ptr f(i64)`
    BLOCKS = 20  # all buffers ever made: a list by their NEXT_BLOCK word
    TEAM = 21  # address of the team of threads; 0: none
    TRAIL = 22  # how many calls and trips a fault has left
    NOTHING = 24  # the header of an empty buffer that nobody owns
    TOTAL = 32  # bytes of all buffers, also of those that are free
    FREE_FUNCTION = 33  # address of a function `f(ptr)` that takes back what MALLOC gave
    OPS = 34  # how many ops have run, in code that counts them
    FREE = 40  # first words of the lists of free buffers, one for each size class


FREE_LISTS = 256
LEFT = Word.FREE + FREE_LISTS  # site and number of trip of what a fault left, innermost first
CONTEXT_WORDS = LEFT + 2 * MOST_TRAIL


class Header(IntEnum):
    """Words of a buffer's header; its data begins `HEADER_BYTES` after it, aligned to that."""

    COUNT = 0  # references; a huge number where the buffer is not ours
    CAPACITY = 1
    CLASS = 2
    NEXT_FREE = 3
    NEXT_BLOCK = 4
    RAW = 5  # what the system's allocator gave


HEADER_BYTES = 64
FOREIGN = 1 << 60  # the count of references of a buffer that is not ours: never the only one, never freed

# Vector loops may read (and where a buffer has one owner, write) this many bytes beyond an array's end.
PADDING = 128


MOST_THREADS = 64


class Team(IntEnum):
    """Words of the record; those that several threads write are on cache lines of their own."""

    JOBS = 0  # number of the latest job
    NEXT = 8  # where the next part begins
    INSIDE = 16  # threads that may be looking at the job
    OPEN = 24
    BUSY = 32  # a program has the team
    CODE = 40
    CONTEXT = 41
    ARGUMENTS = 42
    TOTAL = 43
    PART = 44
    STATUS = 45
    HELPERS = 46  # threads beside the one that runs the program
    ACQUIRE = 47  # addresses of functions on locks
    RELEASE = 48
    ASLEEP = 64  # a word for each helper
    LOCKS = 64 + MOST_THREADS


TEAM_WORDS = Team.LOCKS + MOST_THREADS


class Station(IntEnum):
    """Words of the place where the thread that runs programs gets its work, see station.py."""

    JOBS = 0  # number of the latest
    DONE = 8  # number of the latest that ended
    STATUS = 9
    ENTRY = 16
    CONTEXT = 17
    ACQUIRE = 18  # addresses of functions on locks
    ACQUIRE_TIMED = 19
    RELEASE = 20
    SERVER_ASLEEP = 24
    SERVER_LOCK = 25
    CALLER_ASLEEP = 32
    CALLER_LOCK = 33


STATION_WORDS = 40


class Status(IntEnum):
    """What a native function returns."""

    DONE = 0
    FAULT = 1
    STOPPED = 2
    RAISED = 3  # a callback kept an exception
    MEMORY = 4
    DEPTH = 5


def words(type: Type) -> int:
    """How many words a value takes where it is handed over."""
    return 2 + type.rank if type.shape else 1


# What `support` and `team` define.
SUPPORT = (
    "run.new",
    "run.new.1",
    "run.new.2",
    "run.new.3",
    "run.own",
    "run.release",
    "run.tape.grow",
    "run.tape.keep",
    "run.tape.free",
    "run.shadow.find",
    "run.shadow.entry",
    "run.shadow.free",
    "run.copy",
    "run.zero",
    "run.any.4",
    "run.any.8",
    "run.team.run",
    "run.team.help",
    "run.left",
    "run.rows",
    "run.product",
    "run.serve",
    "run.post",
    "run.await",
)
