"""The demo: what it prints is what was flown, and the recordings open."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("tyro")
pytest.importorskip("PIL")
pytest.importorskip("matplotlib")

from palaestra.core.ratings import wilson_interval
from palaestra.ucav.acmi import read_acmi
from palaestra_baselines import demo

QUICK = ("--matches", "2", "--inner-loop", "pid", "--cone-half-angle-deg", "30", "--quiet")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder and output of one demo."""
    folder = tmp_path_factory.mktemp("demo")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        demo.main([*QUICK, "--out", str(folder)])
    return folder, said.getvalue()


def test_every_target_has_a_row_with_its_interval(shown: tuple[Path, str]):
    _, text = shown
    assert "pid inner loop, gun cone of 30 deg half-angle" in text
    for target in demo.TARGETS:
        row = re.search(rf"^{target} +(\d+) +(\d+) +([\d.]+) +([\d.]+) to ([\d.]+)", text, re.MULTILINE)
        assert row is not None
        matches, kills = int(row[1]), int(row[2])
        assert matches == 2
        low, high = wilson_interval(kills, matches)
        assert (float(row[4]), float(row[5])) == (round(low, 2), round(high, 2))


def test_every_target_leaves_a_recording_a_page_and_a_film(shown: tuple[Path, str]):
    folder, text = shown
    for target in demo.TARGETS:
        assert len(read_acmi(folder / f"{target}.acmi").objects) >= 2
        assert (folder / f"{target}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{target}.gif").read_bytes().startswith(b"GIF89a")
        for suffix in ("acmi", "png", "gif"):
            assert str(folder / f"{target}.{suffix}") in text


def test_the_match_that_is_recorded_is_the_one_that_was_counted():
    args = demo.Args(matches=2, inner_loop="pid", cone_half_angle_deg=30.0, quiet=True)
    table = demo.hunt(args, "level_turn")
    seed = demo.best_seed(table)
    counted = table.results[table.results["seed"] == seed][0]
    records, game = demo.fly_again(args, "level_turn", seed)
    assert len(records) == counted["steps"] + 1
    assert records[-1]["info"]["end_reason"] == counted["end_reason"]
    assert np.array_equal(demo.kills(table), [game.end_reason(int(r)) == "kill" for r in table.results["end_reason"]])
