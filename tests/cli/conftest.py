"""The command line, called in this process."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from palaestra.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def run(*words: object) -> SimpleNamespace:
        code = main([str(word) for word in words])
        printed = capsys.readouterr()
        return SimpleNamespace(code=code, out=printed.out, err=printed.err, json=lambda: json.loads(printed.out))

    return run


@pytest.fixture
def refused():
    """What a refusal says: one line on stderr, nothing on stdout."""

    def refused(result: SimpleNamespace, code: int = 1) -> str:
        assert (result.code, result.out) == (code, "")
        assert result.err.count("\n") == 1
        assert result.err.startswith("palaestra")
        return result.err

    return refused
