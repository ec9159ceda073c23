"""The demo: its table agrees with its flights, and its recordings can be read."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("tyro")
pytest.importorskip("PIL")
pytest.importorskip("matplotlib")

import palaestra
from palaestra.evaluation.ratings import wilson_interval
from palaestra.ucav.acmi import read_acmi
from palaestra_baselines import demo

QUICK = ("--matches", "2", "--inner-loop", "pid", "--cone-half-angle-deg", "30", "--quiet")


@pytest.fixture(scope="module", autouse=True)
def interpreted() -> Iterator[None]:
    """The matches as plain Python: the kernel of the macros would be compiled for these few alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo.palaestra, "make_batch", functools.partial(palaestra.make_batch, compiled=False))
        yield


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder and output of one demo."""
    folder = tmp_path_factory.mktemp("demo")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        demo.main([*QUICK, "--out", str(folder)])
    return folder, said.getvalue()


def test_every_target_has_a_row_with_its_interval(shown: tuple[Path, str]):
    _, text = shown
    assert "the pid inner loop flies; gun cone of 30 deg half-angle" in text
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


def test_a_match_is_recorded_from_its_start_to_its_end():
    args = demo.Args(matches=2, inner_loop="pid", cone_half_angle_deg=30.0, quiet=True)
    result = demo.hunt(args, "level_turn")
    for records, shot in zip(result.records, result.kills, strict=True):
        assert records["steps"].tolist() == list(range(len(records)))
        end = result.game.end_reason(int(records[-1]["info"]["end_reason"]))
        assert shot == (end == "kill" and records[-1]["info"]["winner"] == 0)
    assert any(demo.best_match(result) is records for records in result.records)


def test_the_hunter_banks_towards_the_target_and_climbs_to_its_height():
    sim = palaestra.make_batch(demo.ENV_ID, 40, commands="macro", opponents={"blue": "straight"}, autoreset_mode="off")
    sim.reset(seed=0)
    seen = sim.observations[:, :1]
    hunter = demo.Hunter(sim.game)
    bank, path, _ = hunter.act(seen, None, None, None, None, None)[:, 0].T
    x, y, z = seen[:, 0, hunter.columns["relative_position"]].T  # wings are level at the start
    ahead = x > 2.0 * np.abs(y)
    assert ahead.sum() > 10
    aside = ahead & (np.abs(y) > 0.1 * x)
    assert (np.sign(bank[aside]) == np.sign(y[aside])).all()
    above = ahead & (np.abs(z) > 0.1 * x)
    assert (np.sign(path[above]) == -np.sign(z[above])).all()


def test_vectors_are_turned_into_the_level_frame_by_roll_and_then_pitch():
    roll, pitch = 0.7, -0.3
    seen = {"roll": np.array([[np.sin(roll), np.cos(roll)]]), "pitch": np.array([[np.sin(pitch), np.cos(pitch)]])}
    nose = [part.item() for part in demo.level(seen, np.array([[1.0, 0.0, 0.0]]))]
    right_wing = [part.item() for part in demo.level(seen, np.array([[0.0, 1.0, 0.0]]))]
    np.testing.assert_allclose(nose, [np.cos(pitch), 0.0, -np.sin(pitch)], atol=1e-12)
    np.testing.assert_allclose(right_wing, [np.sin(pitch) * np.sin(roll), np.cos(roll), np.cos(pitch) * np.sin(roll)])
