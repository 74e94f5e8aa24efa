"""The command line as tests call it: in this process, or in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ARTICLE = str(ROOT / "samples" / "article.gdl")


class Said:
    """What a command line said, and its exit status."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out + self.err).splitlines()]


def process(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "graphdsl", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False, **options)
