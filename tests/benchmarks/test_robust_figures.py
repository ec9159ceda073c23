"""The figures of unknown teammates, held-out policies and adversaries, with runs of a second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

from baselines.short_runs import OF_MAPPO

import palaestra_assets
from learning import robust_figures, skirmish_figures
from learning.drawing import read_table
from learning.figures import FigureArgs
from learning.robust_figures import HELD_OUT_STUDY, MATES_STUDY, Attack, Seat
from learning.study import Entry, Made, Place
from palaestra import registry
from palaestra_baselines import mappo
from palaestra_baselines.common.agents import keywords

pytestmark = pytest.mark.check

TAG, WEIGHTS = "palaestra/TeamTag-2v2-v0", palaestra_assets.path("weights")
PLACE = Place("tag", TAG, (), "red", "random")
SMALL = {name: value for name, value in OF_MAPPO.items() if name not in ("total_steps", "quiet")}


@pytest.mark.parametrize("entry", robust_figures.MATES, ids=lambda entry: f"{entry.place} {entry.method}")
def test_every_seat_is_a_run_and_its_held_out_players_are_none_of_its_mixture(entry: Entry, tmp_path: Path):
    run: Any = MATES_STUDY.run_of(entry, 0, tmp_path)
    run.check()
    seat = robust_figures.SEATS[entry.place]
    assert keywords(run.options) == ({"mates": seat.mix} if entry.method == "mix" else {})
    assert run.total_steps == next(other.steps for other in robust_figures.MATES if other.place == entry.place)
    game, _ = registry.make_game(run.env_id)
    assert next(iter(game.teams)) == run.team
    assert set(seat.held_out).isdisjoint(seat.mix) or (seat.mix, seat.held_out) == ("mix", "held_out")


def test_learners_random_choices_and_scripts_sit_beside_all_players_and_nothing_is_trained_twice(
    figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(robust_figures, "SEATS", {"tag": Seat(PLACE, "random", ["default"])})
    given = {"mix": {"options": ("mates=random",), **SMALL}, "team": SMALL}
    entries = tuple(Entry("tag", arm, 320, arguments=given[arm]) for arm in robust_figures.ARMS)
    study = replace(MATES_STUDY, entries=entries, places={"tag": PLACE})
    played: list[Any] = []

    def share(id: str, a: str, b: str, **words: Any) -> dict[str, float]:
        played.append((a, words["mates"]))
        return {"won": 0.5}

    monkeypatch.setattr(robust_figures, "share", share)
    args = replace(figure_args, seeds=1)
    study.make(args)
    rows = read_table(args.figures / "mates_results.csv")
    scripts = ("random", *registry.make_game(TAG)[0].scripts)
    assert [(row["learner"], row["beside"]) for row in rows] == [
        *(("mix", "mix"), ("mix", "held_out")),
        *((who, beside) for who in ("team", *scripts) for beside in ("mix", "held_out", "copies")),
    ]
    assert [beside for _, beside in played[:5]] == ["random", ["default"], "random", ["default"], None]
    assert "mates_random" not in rows[0]
    monkeypatch.setattr(mappo, "train", lambda *_: pytest.fail("it trained again"))
    study.make(args)
    assert read_table(args.figures / "mates_results.csv") == rows


def test_an_adversary_plays_with_each_share_and_one_without_a_policy_is_named(
    figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    attack = Attack("palaestra/TeamPong-v0", "fm3q_team_pong", "chaser", "fm3q_team_pong", "itself")
    attacks = (("pong", attack), ("elsewhere", replace(attack, adverse="nobody")))
    monkeypatch.setattr(robust_figures, "ATTACKS", attacks)
    given: list[Any] = []
    monkeypatch.setattr(robust_figures, "share", lambda id, a, b, **_: given.append(b) or {"won": 0.5})
    robust_figures.adversary(replace(figure_args, assets=WEIGHTS.parent))
    rows = read_table(figure_args.figures / "adversary_results.csv")
    assert [float(row["share"]) for row in rows] == [0.0, 0.1, 0.2, 0.5, 1.0] == [each.share for each in given]
    assert {(each.player, Path(each.policy).name) for each in given} == {("chaser", "fm3q_team_pong.safetensors")}
    assert "elsewhere: no nobody.safetensors yet: python benchmarks/learn.py held_out_policy" in capsys.readouterr().out


@pytest.mark.parametrize("entry", robust_figures.HELD_OUT, ids=lambda entry: entry.place)
def test_every_held_out_policy_is_blues_on_a_battle_of_the_package_where_red_sees_the_same(
    entry: Entry, tmp_path: Path
):
    run: Any = HELD_OUT_STUDY.run_of(entry, 0, tmp_path)
    run.check()
    assert (run.team, run.opponent) == ("blue", "mix")
    (shipped,) = (other for other in skirmish_figures.MIX if other.place == entry.place)
    assert entry.weights == f"{shipped.weights}_held_out"
    game, _ = registry.make_game(run.env_id, **keywords(run.options))
    battle, _ = registry.make_game(skirmish_figures.BATTLES[entry.place]["env_id"])
    assert (game.world.openings == battle.world.openings).all()


def test_held_out_policies_are_installed_and_every_script_meets_them(
    figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch
):
    entry = Entry("tag", "mappo", 320, weights="blue", seeds=1, arguments={**SMALL, "network": "flat"})
    blue = {"mappo": replace(robust_figures.BLUE["mappo"], arguments={"team": "blue", "opponent": "random"})}
    study = replace(HELD_OUT_STUDY, entries=(entry,), methods=blue, places={"tag": Place("tag", TAG)})
    monkeypatch.setattr(robust_figures, "share", lambda *_, **__: {"won": 0.5})
    study.make(figure_args)
    rows = read_table(figure_args.figures / "held_out_policy_results.csv")
    assert [row["red"] for row in rows] == ["random", *registry.make_game(TAG)[0].scripts]
    assert (figure_args.assets / "weights" / "blue.safetensors").exists()


def test_the_held_out_policy_is_one_more_opponent_of_what_comes_with_the_package(
    figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch
):
    study = replace(skirmish_figures.MIXED, entries=(skirmish_figures.MIX[1],))
    (key, (run, *_)), *_ = study.runs_of(figure_args).items()
    made = Made({key: [run]}, {key: [[{"steps": 1.0, "cpu_s": 1.0}]]}, figure_args)
    played: list[Any] = []
    monkeypatch.setattr(skirmish_figures, "share_won", lambda *words: played.append(words) or {"won": 0.5})
    assert "held-out policy" not in {row["opponent"] for row in skirmish_figures.mix_results(study, made)}
    held_out = figure_args.assets / "weights" / "skirmish_5m_vs_6m_held_out.safetensors"
    held_out.parent.mkdir(parents=True)
    held_out.touch()
    assert skirmish_figures.mix_results(study, made)[-1]["opponent"] == "held-out policy"
    path, place = played[-1][2:]
    assert path == str(held_out)
    assert (place.env_id, place.options) == ("palaestra/SkirmishDuel-v0", ("map=5m_vs_6m", "blue_order=map"))
