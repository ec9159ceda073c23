"""The league: who meets whom, what counts as won, who is accepted, and a league that is killed and goes on."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")

from baselines.short_runs import assert_same_run, whole_and_resumed

import palaestra
from palaestra.evaluation import evaluate
from palaestra_baselines import ucav_hierarchy
from palaestra_baselines.common import league as league_module
from palaestra_baselines.common.league import League, Opponents, Record, name_of
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.ucav_hierarchy import Args

pytestmark = pytest.mark.check

DUEL = "palaestra/SkirmishDuel-v0"
SMALL = Args(
    env_id=DUEL,
    options=("map=arena",),
    anchor_options=(),
    training_options=("horizon=20",),
    anchors=("nearest", "random"),
    seen=(),
    action_scales=(1.0,),
    pairs=2,
    trials=4,
    total_steps=600,
    evaluations=3,
    matches=4,
    quiet=True,
)
"""The evolution strategy on battles of three marines against three: the league knows no aircraft."""


class Pools:
    """Stands for the pools of a league."""

    draw = "uniform"


# -- records -----------------------------------------------------------------------------------------------------------


def test_an_undecided_match_is_half_a_point():
    assert Record(8, 4, 2).score == 0.625
    assert Record(8, 4, 2).won_share == 0.5
    assert Record(8, 0, 0).score == 0.5


def test_only_ends_by_rule_are_won_or_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    results = np.zeros(5, [("outcome", "i8"), ("end_reason", "i8")])
    results["outcome"], results["end_reason"] = [1, 1, -1, -1, 0], [2, 1, 1, 3, 2]
    monkeypatch.setattr(league_module, "evaluate", lambda *_, **__: type("Table", (), {"results": results}))
    league = League(dataclasses.replace(SMALL, directory=tmp_path), "league")
    league.play_pair(("a", "b"), ("a", "b"), {}, lambda _: None)
    assert league.records == {("a", "b"): Record(5, 1, 1)}


# -- who meets whom ----------------------------------------------------------------------------------------------------


def test_scripts_have_their_share_of_the_places_and_move_on():
    sim = palaestra.make_batch(DUEL, 8, map="arena", compiled=False)
    places = np.arange(8) % 4
    names = np.array([*sim.game.scripts, "?"])
    first, second = sim.game.scripts[:2]

    def blue() -> list[str]:
        numbers = sim.states["assigned_player"][:, len(sim.game.teams["red"])]
        return ["other" if n < 0 or n >= len(sim.game.scripts) else str(names[n]) for n in numbers.tolist()]

    pool: Any = lambda observations: np.zeros(observations.shape[:2], np.int64)  # noqa: E731
    pool.draw = "uniform"
    opponents = Opponents((first, second), 0.5, {"blue": pool})
    opponents.assign(sim, "blue", places, 4)
    assert blue() == [first, second, "other", "other"] * 2
    opponents.assign(sim, "blue", places, 4, 1)
    assert blue() == [second, first, "other", "other"] * 2
    opponents.scripts_alone.assign(sim, "blue", places, 4)
    assert blue() == [first, second] * 4
    opponents.generations_alone.assign(sim, "blue", places, 4)
    assert blue() == ["other"] * 8
    Opponents((first, second), 0.25, {}).assign(sim, "blue", places, 4)
    assert blue() == [first, second] * 4
    sim.close()


# -- acceptance --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("won", "refused"), [(50, False), (45, False), (44, True), (60, False)])
def test_a_generation_that_loses_too_much_on_an_anchor_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, won: int, refused: bool
):
    league = League(dataclasses.replace(SMALL, directory=tmp_path, anchor_share=0.5), "league")
    added: list[Path] = []
    for pool in league.pools.values():
        monkeypatch.setattr(pool, "add", added.append)
    shares = {0: 90, 1: 50, 2: won}

    def played(names: tuple[str, str], *_: Any) -> None:
        generation = int(names[0].removeprefix("generation_"))
        league.records[names] = Record(100, shares[generation] if names[1] == "nearest" else 50, 0)

    monkeypatch.setattr(league, "play_pair", played)
    league.judge(0)
    assert league.opponents() == Opponents(SMALL.anchors, 0.5, {})
    league.judge(1)
    assert not league.refused, "generation 0 has not learnt: nothing is held against its records"
    assert league.opponents() == Opponents(SMALL.anchors, 0.5, league.pools)
    league.judge(2)
    assert league.refused == refused
    assert league.accepted == ([0, 1] if refused else [0, 1, 2])
    assert added == [league.file(k) for k in league.accepted[1:] for _ in league.pools]
    assert league.opponents().share == (0.75 if refused else 0.5)
    assert league.figures(2)["accepted"] == (not refused)


def test_without_self_play_there_is_no_pool(tmp_path: Path):
    league = League(dataclasses.replace(SMALL, directory=tmp_path, anchor_share=1.0), "league")
    league.accepted = [0, 1]
    assert league.opponents().pools == {}


def test_the_ratings_put_the_winner_above_the_anchor(tmp_path: Path):
    league = League(dataclasses.replace(SMALL, directory=tmp_path), "league")
    league.records = {(name_of(1), "nearest"): Record(100, 70, 10), (name_of(1), "random"): Record(100, 100, 0)}
    ratings = league.ratings()
    assert ratings["nearest"].elo == 0.0
    assert ratings["random"].elo < 0.0 < ratings[name_of(1)].elo


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"anchors": ("nobody",)}, "has no script 'nobody'"),
        ({"anchors": ("random", "random")}, "names a player twice"),
        ({"env_id": "palaestra/UcavTrack-v3", "options": ()}, "two teams"),
        ({"action_scales": (1.0, 2.0)}, "one number, or one for each"),
        ({"lanes": 3, "rollout": 3, "minibatches": 2}, "--minibatches must divide"),
    ],
)
def test_arguments_that_cannot_be_are_refused(tmp_path: Path, options: dict[str, Any], said: str):
    with pytest.raises(ValueError, match=said):
        ucav_hierarchy.train(dataclasses.replace(SMALL, directory=tmp_path, **options))


# -- a whole league ----------------------------------------------------------------------------------------------------


@pytest.mark.check
@pytest.mark.parametrize("more", [{}, {"draw": "pfsp", "total_steps": 300}])
def test_a_league_of_battles_learns_resumes_to_the_same_bytes_and_its_policy_plays(
    tmp_path: Path, more: dict[str, Any]
):
    """Also one whose generations are shorter than an update."""
    whole, halves = whole_and_resumed(ucav_hierarchy, dataclasses.replace(SMALL, **more), tmp_path, stop_at=4)
    assert len(whole.log) == 4
    assert_same_run(whole, halves)
    folders = [tmp_path / half / "seed_0" for half in ("whole", "halves")]
    assert len({(folder / "league.csv").read_bytes() for folder in folders}) == 1
    for generation in range(4):
        (one, notes), (other, others) = (read_policy(f / f"generation_{generation}.safetensors") for f in folders)
        assert notes == others
        assert all(np.array_equal(one[name], other[name]) for name in {**one, **other}), generation
    table = evaluate(DUEL, whole.weights, "random", matches=4, num_envs=2, map="arena")
    assert table.matches == 4
