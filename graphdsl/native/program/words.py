"""The memory that native code and Python share in a run: the words of its context, and of values handed over.

Everything is an i64 word. A scalar is one word (its bits), a tensor `data, owner, sizes…`; `owner` is the header of
the buffer that `data` lies in.
"""

from __future__ import annotations

from enum import IntEnum


class Word(IntEnum):
    """Words of the context that every native function gets."""

    STOP = 0  # not 0: give up at the next loop edge
    SITE = 1  # what failed (see sites.py)
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
    NOTHING = 24  # the header of an empty buffer that nobody owns
    FREE = 32  # first words of the lists of free buffers, one for each size class


FREE_LISTS = 256
CONTEXT_WORDS = Word.FREE + FREE_LISTS


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
PADDING = 64


class Status(IntEnum):
    """What a native function returns."""

    DONE = 0
    FAULT = 1
    STOPPED = 2
    RAISED = 3  # a callback kept an exception
    MEMORY = 4
    DEPTH = 5
