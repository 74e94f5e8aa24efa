"""Loading an object file (ELF, x86-64) without a linker: so code from the cache runs without LLVM being loaded.

Sections are laid out in one mapping, relocations applied, what is code or constant made so. Calls of functions
elsewhere go through stubs near the code. What is met that is not known here is `Unsupported`, and LLVM links the
object instead.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

_PAGE = 4096
_STUB = 16  # bytes: a jump through an address that stands behind it
_ALLOC, _WRITE = 0x2, 0x1
_SYMTAB, _RELA, _NOBITS = 2, 4, 8
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2


class Kind(IntEnum):
    """Relocations of the x86-64 ABI."""

    ABSOLUTE = 1
    NEAR = 2
    CALL = 4
    SLOT = 9
    RELATIVE = 24
    SLOT_SHORT = 41
    SLOT_LONG = 42


class Unsupported(Exception):
    """Something that this loader does not do."""


@dataclass
class _Section:
    name: int
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    place: int = -1  # in the mapping


def usable() -> bool:
    """Whether this process runs such code."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 2**32


class Object:
    """A loaded object: the addresses of the symbols asked for. Its code lives as long as this does."""

    def __init__(self, code: bytes, exports: Iterable[str], imports: Mapping[str, int]) -> None:
        if not usable() or code[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", code, 16) != (1, 62):
            raise Unsupported("not an x86-64 object")
        self._code = code
        self._sections = self._read_sections()
        self._symbols = self._read_symbols()
        self._imports = imports
        size = self._lay_out()
        self._far: dict[tuple[str, int], int] = {}  # stubs and slots made so far, by kind and address
        self._memory = mmap.mmap(-1, max(size, _PAGE))
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._copy()
        self._relocate()
        self._protect()
        defined = {name: self._base + place for name, place in self._defined()}
        missing = [name for name in exports if name not in defined]
        if missing:
            raise Unsupported(f"no symbol {missing[0]}")
        self.addresses = {name: defined[name] for name in exports}

    # ---- reading ----

    def _read_sections(self) -> list[_Section]:
        (table,) = struct.unpack_from("<Q", self._code, 40)
        size, count, _ = struct.unpack_from("<HHH", self._code, 58)
        found = []
        for i in range(count):
            name, type, flags, _, offset, length, link, info, align, _ = struct.unpack_from(
                "<IIQQQQIIQQ", self._code, table + i * size
            )
            found.append(_Section(name, type, flags, offset, length, link, info, max(align, 1)))
        return found

    def _read_symbols(self) -> list[tuple[str, int, int]]:
        """Name, section and value of each."""
        table = next((s for s in self._sections if s.type == _SYMTAB), None)
        if table is None:
            raise Unsupported("no symbols")
        strings = self._sections[table.link]
        text = self._code[strings.offset : strings.offset + strings.size]
        found = []
        for place in range(table.offset, table.offset + table.size, 24):
            name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", self._code, place)
            found.append((text[name : text.index(b"\0", name)].decode(), section, value))
        return found

    def _defined(self) -> Iterable[tuple[str, int]]:
        for name, section, value in self._symbols:
            if name and section not in (_UNDEFINED, _ABSOLUTE, _COMMON) and self._sections[section].place >= 0:
                yield name, self._sections[section].place + value

    # ---- placing ----

    def _lay_out(self) -> int:
        """Places for what is read only, then, on pages of its own, for what is written."""
        end = 0
        for writable in (False, True):
            end = -(-end // _PAGE) * _PAGE
            for section in self._sections:
                if section.flags & _ALLOC and bool(section.flags & _WRITE) is writable:
                    end = -(-end // section.align) * section.align
                    section.place = end
                    end += section.size
            if not writable:
                end += self._room_for_far()
                self._constant_end = -(-end // _PAGE) * _PAGE
        self._far_begin = self._constant_end - self._room_for_far()
        return end

    def _room_for_far(self) -> int:
        """Stubs and slots: at most both for each symbol that is not here, and slots for those that are."""
        return (_STUB + 8) * len(self._symbols) + 16

    def _copy(self) -> None:
        for section in self._sections:
            if section.place >= 0 and section.type != _NOBITS:
                content = self._code[section.offset : section.offset + section.size]
                self._memory[section.place : section.place + section.size] = content

    def _protect(self) -> None:
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        if protect(self._base, self._constant_end, mmap.PROT_READ | mmap.PROT_EXEC):
            raise Unsupported("the system allows no new code")

    # ---- relocating ----

    def _relocate(self) -> None:
        self._next_far = -(-self._far_begin // 16) * 16
        for table in self._sections:
            if table.type != _RELA or self._sections[table.info].place < 0:
                continue
            place = self._sections[table.info].place
            for offset, info, addend in struct.iter_unpack(
                "<QQq", self._code[table.offset : table.offset + table.size]
            ):
                self._apply(info & 0xFFFFFFFF, place + offset, self._symbols[info >> 32], addend)

    def _apply(self, kind: int, place: int, symbol: tuple[str, int, int], addend: int) -> None:
        name, section, value = symbol
        here = self._base + place
        away = section == _UNDEFINED
        if away and name not in self._imports:
            raise Unsupported(f"unknown symbol {name}")
        if section in (_ABSOLUTE, _COMMON) or (not away and self._sections[section].place < 0):
            raise Unsupported(f"symbol {name}")
        address = self._imports[name] if away else self._base + self._sections[section].place + value
        match kind:
            case Kind.ABSOLUTE:
                self._write(place, "<Q", (address + addend) % 2**64)
            case Kind.RELATIVE:
                self._write(place, "<q", address + addend - here)
            case Kind.NEAR | Kind.CALL:
                target = self._base + self._stub(address) if away else address
                self._write32(place, target + addend - here)
            case Kind.SLOT | Kind.SLOT_SHORT | Kind.SLOT_LONG:
                self._write32(place, self._base + self._slot(address) + addend - here)
            case _:
                raise Unsupported(f"relocation {kind}")

    def _write32(self, place: int, value: int) -> None:
        if not -(2**31) <= value < 2**31:
            raise Unsupported("too far away")
        self._write(place, "<i", value)

    def _write(self, place: int, form: str, value: int) -> None:
        struct.pack_into(form, self._memory, place, value)

    def _stub(self, address: int) -> int:
        """A jump to an address anywhere: `jmp *2(%rip)`, then the address."""
        if ("stub", address) not in self._far:
            place = self._take(_STUB)
            self._memory[place : place + _STUB] = b"\xff\x25\x02\x00\x00\x00\x0f\x0b" + struct.pack("<Q", address)
            self._far["stub", address] = place
        return self._far["stub", address]

    def _slot(self, address: int) -> int:
        """Where an address is kept for code to load."""
        if ("slot", address) not in self._far:
            place = self._take(8)
            self._write(place, "<Q", address)
            self._far["slot", address] = place
        return self._far["slot", address]

    def _take(self, size: int) -> int:
        place = self._next_far
        self._next_far += size
        return place
