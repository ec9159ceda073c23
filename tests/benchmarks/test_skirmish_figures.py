"""The figures of methods on battles, with runs of a second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

import learn
import palaestra
from learning import skirmish_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.skirmish_figures import GROUPS, MIXED, PLACES, STUDIES
from learning.study import Entry, Made, Place
from palaestra import registry
from palaestra_baselines import vdn
from palaestra_baselines.common.agents import Roster, keywords

pytestmark = pytest.mark.check

BATTLE = "test/Skirmish-3m-v0"
palaestra.register(BATTLE, "palaestra.games.skirmish.games:battle", family="test", map="3m")
SMALL = {"evaluations": 2, "lanes": 16, "warmup_steps": 100, "batch_size": 16, "replay_size": 400, "matches": 8}
ENTRY = Entry("3m", "vdn", 320, bar=0.9, weights="learnt", arguments=SMALL)
SOLVED = STUDIES["skirmish_solved"]
NONE = Made({}, {}, FigureArgs())


@pytest.fixture
def args(figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch) -> FigureArgs:
    """Two seeds on a battle of three against three, and eight matches in the end."""
    monkeypatch.setitem(PLACES, "3m", Place("Skirmish 3m", BATTLE))
    monkeypatch.setitem(STUDIES, "skirmish_solved", replace(SOLVED, entries=(ENTRY,)))
    monkeypatch.setattr(skirmish_figures, "TEST_MATCHES", 8)
    return figure_args


def test_a_figure_has_curves_a_table_and_weights_and_is_made_again_without_training(
    args: FigureArgs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    STUDIES["skirmish_solved"].make(args)
    first = capsys.readouterr().out
    head, *lines = first.splitlines()
    assert head.split()[:3] == ["battle", "method", "seed"]
    assert [line.split()[:3] for line in lines[:2]] == [["3m", "VDN", "0"], ["3m", "VDN", "1"]]
    assert "at least 0.90: MISSED" in lines[-1]
    folder = args.figures
    assert (folder / "skirmish_solved.png").read_bytes().startswith(b"\x89PNG")
    assert [row["seed"] for row in read_table(folder / "skirmish_solved.csv")] == ["0"] * 3 + ["1"] * 3
    assert list(read_table(folder / "skirmish_solved_results.csv")[0]) == [
        *("battle", "method", "seed", "decisions_wanted", "decisions", "cpu_s", "won", "low", "high")
    ]
    assert (args.assets / "weights" / "learnt.safetensors").exists()
    monkeypatch.setattr(vdn, "train", lambda *_: pytest.fail("it trained again"))
    STUDIES["skirmish_solved"].make(args)
    assert capsys.readouterr().out == first


def test_a_policy_plays_a_battle_on_which_it_did_not_learn(args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PLACES, "elsewhere", Place("", "palaestra/SkirmishUnshaped-Maps-v0", ("maps=['3m']",)))
    replace(SOLVED, entries=(replace(ENTRY, unseen="elsewhere"),)).make(replace(args, seeds=1))
    learnt, unseen = read_table(args.figures / "skirmish_solved_results.csv")
    assert (learnt["battle"], learnt["learnt_on"]) == ("3m", "")
    assert (unseen["battle"], unseen["learnt_on"]) == ("elsewhere", "3m")


def test_scripts_and_random_orders_play_every_battle_without_learning(
    args: FigureArgs, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(skirmish_figures, "PLACES", {"3m": PLACES["3m"]})
    skirmish_figures.skirmish_scripts(args)
    rows = read_table(args.figures / "skirmish_scripts.csv")
    assert [row["script"] for row in rows] == ["random", *registry.make_game(BATTLE)[0].scripts]
    assert all(0.0 <= float(row["low"]) <= float(row["won"]) <= float(row["high"]) <= 1.0 for row in rows)
    assert not args.runs.exists()


def test_what_comes_with_the_package_is_played_against_every_script(args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    entry = replace(ENTRY, weights="own", arguments={"opponent": "mix"})
    replace(MIXED, entries=(entry,)).make(replace(args, seeds=1))
    rows = read_table(args.figures / "skirmish_mix_results.csv")
    assert [row["opponent"] for row in rows] == ["mix", *registry.make_game(BATTLE)[0].scripts, "random"]
    assert all(0.0 <= float(row["won"]) <= 1.0 for row in rows)
    assert (args.assets / "weights" / "own.safetensors").exists()


def test_the_final_share_counts_wins_of_red_and_no_draws(args: FigureArgs, monkeypatch: pytest.MonkeyPatch):
    class Table:
        wins, matches, score, win_interval = 3, 8, 0.6, (0.1, 0.7)

    asked: list[Any] = []
    monkeypatch.setattr(skirmish_figures, "evaluate", lambda *words, **options: asked.append((words, options)) or Table)
    run = SOLVED.run_of(ENTRY, 1, args.runs)
    row = skirmish_figures.final_row("3m", "vdn", run, [{"steps": 320.0, "cpu_s": 2.5}])
    assert (row["seed"], row["decisions"], row["cpu_s"]) == (1, 320, 2.5)
    assert (row["won"], row["low"], row["high"]) == (0.375, 0.1, 0.7)
    ((id, red, blue), options) = asked[0]
    assert (id, red, blue) == (BATTLE, str(run.folder / "last.safetensors"), "builtin")
    assert (options["matches"], options["swap"]) == (8, False)


def test_medians_stand_beside_what_the_entries_ask():
    entry = Entry("3m", "vdn", 1, bar=0.7, minutes=2.0, ahead={"qmix": 0.1})
    shown = {"battle": "3m", "seed": 0, "decisions": 1, "low": 0.0, "high": 1.0}
    rows = [
        {**shown, "method": method, "won": share - lead, "cpu_s": cpu_s}
        for method, lead in (("vdn", 0.0), ("qmix", 0.2))
        for share, cpu_s in ((0.3, 120.0), (0.7, 60.0), (0.9, 600.0))
    ]
    *_, line = skirmish_figures.result_lines(replace(SOLVED, entries=(entry,)), rows, NONE)
    assert "won 0.700  2.0 min" in line
    assert "at least 0.70: holds  at most 2 min: holds  +0.10 over QMIX (+0.20): holds" in line


def test_the_speed_is_that_of_whole_runs_of_the_figure_of_solved_maps(
    args: FigureArgs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(skirmish_figures, "SPEED_BATTLE", "3m")
    skirmish_figures.skirmish_speed(args)
    assert capsys.readouterr().out.splitlines()[0].split()[-2:] == ["over", "PyMARL"]
    row = read_table(args.figures / "skirmish_speed.csv")[0]
    decisions, seconds, rate = (float(row[name]) for name in ("decisions", "cpu_s", "decisions_per_s"))
    assert rate == pytest.approx(decisions / seconds, rel=1e-3)
    assert float(row["over_pymarl"]) == pytest.approx(rate * 7.5 * 3600 / 2e6, rel=1e-3)
    monkeypatch.setattr(vdn, "train", lambda *_: pytest.fail("it trained again"))
    STUDIES["skirmish_solved"].make(args)


@pytest.mark.parametrize(
    "entry", [entry for group in GROUPS.values() for entry in group], ids=lambda e: " ".join(e.key)
)
def test_observations_in_a_replay_fit_into_a_gigabyte(entry: Entry, tmp_path: Path):
    run = SOLVED.run_of(entry, 0, tmp_path)
    game, _ = registry.make_game(run.env_id, **keywords(run.options))
    team = Roster(game, ["red"])
    numbers = sum(
        team.sizes[name] * len(group.agents) for name, group in zip(team.sizes, team.groups.values(), strict=True)
    )
    assert 4 * numbers * getattr(run, "replay_size", 0) < 1e9


def test_a_figure_is_named_alone_or_by_the_first_part_of_its_name():
    battles = [f"skirmish_{name}" for name in (*GROUPS, "mix", "scripts", "speed", "duel", "methods")]
    assert learn.chosen(["skirmish"]) == battles
    assert learn.chosen(["skirmish_speed", "skirmish"]) == [
        "skirmish_speed",
        *[b for b in battles if b != "skirmish_speed"],
    ]
    assert learn.chosen([]) == list(learn.FIGURES)
    with pytest.raises(SystemExit, match=r"no figure 'skir': choose from tracking, .*skirmish_solved"):
        learn.chosen(["skir"])
