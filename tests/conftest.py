"""What all tests may ask for."""

from __future__ import annotations

from typing import Any

import pytest

from graphdsl.cli.main import run
from tests.command_line import Said


@pytest.fixture
def graphdsl(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*args: str) -> Said:
        code = run(list(args))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Said(code, out, err)

    return call
