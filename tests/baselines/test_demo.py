"""The demo: its table agrees with its flights, and its recordings can be read."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("tyro")
pytest.importorskip("PIL")
pytest.importorskip("matplotlib")

from replay.test_page import read
from ucav.acmi_reader import read_acmi

from palaestra import registry
from palaestra.evaluation.ratings import wilson_interval
from palaestra.game import Family
from palaestra.replay.headline import name_of
from palaestra_baselines import demo

pytestmark = pytest.mark.check

QUICK = ("--matches", "2", "--red", "lead_pursuit", "--cone-half-angle-deg", "30", "--quiet")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder and output of one demo."""
    folder = tmp_path_factory.mktemp("demo")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        demo.main([*QUICK, "--out", str(folder)])
    return folder, said.getvalue()


def test_every_opponent_has_a_row_with_its_interval(shown: tuple[Path, str]):
    _, text = shown
    assert "gun cone of 30 deg half-angle" in text
    for target in demo.BOUTS:
        row = re.search(rf"^lead_pursuit +{target} +(\d+) +(\d+) +([\d.]+) +([\d.]+) to ([\d.]+)", text, re.MULTILINE)
        assert row is not None
        matches, kills = int(row[1]), int(row[2])
        assert matches == 2
        low, high = wilson_interval(kills, matches)
        assert (float(row[4]), float(row[5])) == (round(low, 2), round(high, 2))


def test_every_opponent_leaves_a_recording_a_page_and_a_film(shown: tuple[Path, str]):
    folder, text = shown
    for target, bout in demo.BOUTS.items():
        assert len(read_acmi(folder / f"{target}.acmi").objects) >= 2
        assert (folder / f"{target}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{target}.gif").read_bytes().startswith(b"GIF89a")
        page = (folder / f"{target}.html").read_text(encoding="utf-8")
        assert f"<title>{name_of(bout.env_id)}: " in page
        for suffix in ("html", "acmi", "png", "gif"):
            assert str(folder / f"{target}.{suffix}") in text


def test_a_match_is_recorded_from_its_start_to_its_end():
    args = demo.Args(matches=2, red="lead_pursuit", cone_half_angle_deg=30.0, quiet=True)
    result = demo.hunt(args, "level_turn")
    for records, shot in zip(result.records, result.kills, strict=True):
        assert records["steps"].tolist() == list(range(len(records)))
        end = result.game.end_reason(int(records[-1]["info"]["end_reason"]))
        assert shot == (end == "kill" and records[-1]["info"]["winner"] == 0)
    assert 0 <= demo.best_match(result) < 2


def test_the_page_shows_the_match_that_was_chosen(tmp_path: Path):
    args = demo.Args(matches=2, red="lead_pursuit", cone_half_angle_deg=30.0, quiet=True, out=tmp_path, seed=3)
    result = demo.hunt(args, "weave")
    page, *_ = demo.record(args, "weave", result)
    header, _ = read(page.read_text(encoding="utf-8"))
    assert header["frames"] == len(result.records[demo.best_match(result)])
    assert dict(header["about"])["seed"] == str((3 << 32) + demo.best_match(result))


@pytest.mark.parametrize("game", ["teams", "GraphPursuit-Petersen"])
def test_a_game_of_another_family_is_played_and_shown(game: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    demo.main(["--game", game, "--matches", "3", "--quiet", "--out", str(tmp_path)])
    text = capsys.readouterr().out
    (page,) = tmp_path.glob("*.html")
    assert str(page) in text
    assert "3 matches" in text
    header, _ = read(page.read_text(encoding="utf-8"))
    assert header["marks"][-1]["kind"] == "end"


@pytest.mark.check
@pytest.mark.parametrize("family", registry.FAMILIES.values(), ids=lambda family: family.name)
def test_every_family_s_demo_and_players_are_its_own(family: Family):
    id, *players = family.demo
    if "mujoco" in family.needs:
        pytest.importorskip("mujoco")
    assert {registry.row(id).family, registry.row(family.example).family} == {family.name}
    assert set(players) <= set(registry.make_game(id)[0].scripts)
    assert set(family.players) <= {script for row in family.rows for script in registry.make_game(row.id)[0].scripts}


def test_the_families_that_the_readme_promises_have_a_demo():
    shown = [registry.FAMILIES[name] for name in ("teams", "pursuit", "robots", "search")]
    assert all(registry.make_game(family.demo[0])[0].scripts for family in shown)


def test_a_game_without_scripts_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="no scripts"):
        demo.main(["--game", "CartPole", "--quiet", "--out", str(tmp_path)])


@pytest.mark.parametrize(
    ("target", "weights"),
    [("weave", "ucav_pursuit"), ("expert", "ucav_hierarchy")],
)
def test_the_pilots_that_ship_fly_red_unless_another_is_named(target: str, weights: str):
    assert demo.pilot(demo.Args(), target).endswith(f"{weights}.safetensors")
    assert demo.pilot(demo.Args(red="expert"), target) == "expert"
