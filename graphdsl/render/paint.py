"""Colours for a terminal, by what a piece of text is; nothing where colour is off."""

from __future__ import annotations

_STYLES = {
    "error": "1;31",
    "warning": "1;33",
    "label": "34",
    "frame": "36",
    "strong": "1",
    "good": "32",
    "faint": "2",
}


class Paint:
    """Paints texts, if `on`."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.on and text else text
