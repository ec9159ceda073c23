"""The figures of data sets: each can fail, and all of them hold in the small."""

from __future__ import annotations

from pathlib import Path

import pytest

import data_claims as claims
from palaestra.data import make_data

pytest.importorskip("minari", reason='needs the extra "palaestra[data]"')


@pytest.mark.slow
def test_all_figures_of_few_episodes_hold(capsys: pytest.CaptureFixture[str]):
    """Takes a minute: ten processes record."""
    assert claims.main(["--quick"]) == 0
    assert "3 kills" in capsys.readouterr().out


def test_other_arrays_than_those_of_minari_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    make_data(claims.ID, "random", tmp_path / "spread-v0", episodes=2, compiled=False, horizon=3)
    assert claims.minari_agrees(tmp_path / "spread-v0")
    read = claims.read_data
    monkeypatch.setattr(claims, "read_data", lambda path: [e._replace(rewards=e.rewards + 1) for e in read(path)])
    assert not claims.minari_agrees(tmp_path / "spread-v0")
