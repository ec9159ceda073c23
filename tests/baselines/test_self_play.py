"""What FM3Q, VDN and IQL share: lanes, replay, networks, the loop with its checkpoints, and players from files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from games import body_game, depot, duel, size_game

import palaestra
from palaestra import registry
from palaestra.core.fields import Choice
from palaestra.core.game import Game
from palaestra.core.kernel import KernelSimulation
from palaestra.evaluation import evaluate
from palaestra_baselines import fm3q, iql, vdn
from palaestra_baselines.common.curves import read_rows
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.self_play import Collector, Replay, Roster, keywords, make_lanes
from palaestra_baselines.common.td_learning import Learner, td_loss
from palaestra_baselines.common.utilities import Utilities, UtilityPlayer

METHODS = {"fm3q": fm3q, "vdn": vdn, "iql": iql}
PONG, SOCCER, TAG = "palaestra/TeamPong-v0", "palaestra/GridSoccer-v0", "palaestra/TeamTag-2v2-v0"
SMALL: dict[str, Any] = {
    "env_id": SOCCER,
    "options": ("order=alternating",),
    "total_steps": 1200,
    "lanes": 16,
    "warmup_steps": 200,
    "updates": 1,
    "batch_size": 32,
    "replay_size": 800,
    "hidden": (16, 16),
    "evaluations": 2,
    "quiet": True,
}


def roster_of(id: str, **options: Any) -> Roster:
    return Roster(registry.make_game(id, **options)[0])


def collected(id: str, decisions: int, lanes: int = 8, random_starts: bool = False, **options: Any):
    """A replay after some decisions at random, and who collected it."""
    roster = roster_of(id, **options)
    sim = make_lanes(id, tuple(f"{name}={value!r}" for name, value in options.items()), lanes)
    replay = Replay(roster, decisions + 1, lanes)
    collector = Collector(sim, replay, roster, 3, random_starts)
    for _ in range(decisions):
        collector.play(None, 1.0)
    return collector, replay, roster


# -- who plays ---------------------------------------------------------------------------------------------------------


def test_both_teams_share_a_network_where_they_are_alike_and_have_their_own_where_not():
    assert list(roster_of(PONG).crews) == ["paddle"]
    crews = roster_of(TAG).crews
    assert list(crews) == ["player_red", "player_blue"]
    assert crews["player_blue"].slots == (2, 3)
    assert crews["player_blue"].places.tolist() == [0, 1]


def test_a_game_that_is_no_contest_of_two_teams_is_refused():
    with pytest.raises(ValueError, match="no zero-sum game of two teams"):
        roster_of("palaestra/CartPole-v0")


def test_an_agent_has_exactly_one_discrete_choice():
    with pytest.raises(ValueError, match="not exactly one discrete choice"):
        roster_of("palaestra/TeamTag-v0", actions="continuous")


def test_who_is_not_asked_may_only_do_nothing():
    collector, _, roster = collected(SOCCER, 1, order="alternating")
    idle = ~collector.sim.acting
    assert idle.any()
    assert (collector.legal[idle].sum(1) == 1).all()
    assert collector.legal[idle][:, roster.noops[0]].all()
    assert collector.legal[~idle].all()


def test_options_are_python_values_or_words():
    assert keywords(("players=1", "order=alternating")) == {"players": 1, "order": "alternating"}
    with pytest.raises(ValueError, match="name=value, got 'players'"):
        keywords(("players",))


# -- replay ------------------------------------------------------------------------------------------------------------


def test_the_replay_holds_what_the_lanes_did():
    collector, replay, _ = collected(SOCCER, 40, order="alternating")
    lanes = palaestra.make_batch(SOCCER, 8, autoreset_mode="next_step", order="alternating")
    lanes.reset(seed=3 << 32)
    for row in range(40):
        np.testing.assert_array_equal(replay.arrays["see.player"][row], lanes.observations)
        counts = lanes.states["pending"] == 0
        lanes.step(replay.arrays["actions"][row].astype(np.int64))
        np.testing.assert_array_equal(replay.arrays["counts"][row], counts)
        np.testing.assert_array_equal(replay.arrays["rewards"][row], lanes.team_rewards("red"))
        np.testing.assert_array_equal(replay.arrays["goes_on"][row] == 0, lanes.terminated & counts)
    assert collector.steps == int(replay.arrays["counts"][:40].sum())


def test_a_match_that_is_cut_off_is_worth_what_its_last_position_is():
    _, replay, _ = collected(PONG, 12, horizon=5)
    cut = np.flatnonzero(replay.arrays["counts"][:12, 0] == 0) - 1
    assert cut.tolist() == [4, 10]  # then a row in which the lane starts anew, which counts for nothing
    assert replay.arrays["goes_on"][cut, 0].all()


def test_a_full_replay_gives_the_last_decisions_only():
    roster = roster_of(SOCCER)
    replay = Replay(roster, 5, 1)
    for k in range(12):
        seen = {"player": np.full((1, 2, roster.sizes["player"]), k, np.float32)}
        replay.write_position(seen, np.ones((1, 2, 5), bool), np.ones((1, 2)))
        replay.write_decision(np.zeros((1, 2)), np.array([float(k)]), np.array([False]), np.array([True]))
    seen = {"player": np.full((1, 2, roster.sizes["player"]), 12, np.float32)}
    replay.write_position(seen, np.ones((1, 2, 5), bool), np.ones((1, 2)))
    batch = replay.sample(np.random.default_rng(0), 200)
    assert set(batch.rewards.tolist()) == {8.0, 9.0, 10.0, 11.0}
    np.testing.assert_array_equal(batch.observations["player"][:, 0, 0], batch.rewards)
    np.testing.assert_array_equal(batch.next_observations["player"][:, 0, 0], batch.rewards + 1)


def test_random_starts_are_spread_over_all_positions():
    collector, _, roster = collected(SOCCER, 0, lanes=400, random_starts=True)
    assert roster.game.enumeration is not None
    numbers = roster.game.enumeration.number(collector.sim.states)
    assert len(set(numbers.tolist())) > 200
    with pytest.raises(ValueError, match="positions that can be counted"):
        collected(PONG, 0, random_starts=True)


# -- learning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_loss_is_the_squared_error_of_every_total(method: str):
    _, replay, roster = collected(SOCCER, 60, order="alternating")
    torch.manual_seed(0)
    mixer = {"fm3q": fm3q.Difference, "vdn": vdn.TeamSums, "iql": iql.Apart}[method](roster)
    learner = Learner(Utilities(roster, (8,)), mixer)
    batch = replay.sample(np.random.default_rng(0), 64)
    q = learner.utilities(batch.observations).gather(2, batch.actions[:, :, None])[:, :, 0].detach().numpy()
    best = learner.utilities(batch.next_observations).masked_fill(~batch.next_legal, -np.inf).amax(2).detach().numpy()
    reward, goes_on, weights = (x.numpy() for x in (batch.rewards, batch.goes_on, batch.weights))
    if method == "fm3q":
        errors = reward + 0.9 * goes_on * (best[:, 0] - best[:, 1]) - (q[:, 0] - q[:, 1])
        squares = errors**2
    else:  # one against one, a team is its only agent
        signed = np.stack([reward, -reward], 1)
        squares = ((signed + 0.9 * goes_on[:, None] * best - q) ** 2).mean(1)
    loss = td_loss(learner, learner, batch, 0.9, double=True)
    assert float(loss.detach()) == pytest.approx((squares * weights).sum() / weights.sum(), rel=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_stopped_run_goes_on_to_the_bit(method: str, tmp_path: Path):
    module = METHODS[method]
    whole = module.train(module.Args(**SMALL, directory=tmp_path / "whole"))
    halves = module.Args(**SMALL, directory=tmp_path / "halves")
    interrupt_after(module, halves, 600)
    resumed = module.train(dataclasses.replace(halves, resume=True))
    assert resumed.steps == whole.steps
    for name, array in read_policy(whole.weights)[0].items():
        np.testing.assert_array_equal(array, read_policy(resumed.weights)[0][name])
    columns = [
        [(row["steps"], row["loss"]) for row in read_rows(r.weights.parent / "log.csv")] for r in (whole, resumed)
    ]
    assert columns[0] == columns[1]


class Stop(Exception):
    """Somebody pulled the plug."""


def interrupt_after(module: Any, args: Any, steps: int) -> None:
    """Trains until an evaluation after so many steps has been written, and no further."""
    seen = []

    def judge(player_of: Any) -> dict[str, float]:
        seen.append(1)
        if len(seen) == 3:
            raise Stop
        return {}

    with pytest.raises(Stop):
        module.train(args, judge)
    assert read_rows(args.folder / "log.csv")[-1]["steps"] >= steps


def test_a_seed_decides_everything(tmp_path: Path):
    arrays = []
    for k, seed in enumerate((5, 5, 6)):
        report = fm3q.train(fm3q.Args(**SMALL, seed=seed, directory=tmp_path / str(k)))
        arrays.append(read_policy(report.weights)[0]["player.layer_0.weight"])
    np.testing.assert_array_equal(arrays[0], arrays[1])
    assert (arrays[0] != arrays[2]).any()


# -- players -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [PONG, TAG])
def test_a_player_does_what_the_networks_say_whichever_team_it_plays(id: str):
    roster = roster_of(id)
    torch.manual_seed(1)
    utilities = Utilities(roster, (16, 16))
    sim = palaestra.make_batch(id, 20)
    sim.reset(seed=0)
    utilities.standardise({name: rows.copy() for name, rows in roster.see(sim).items()})
    values = utilities({name: torch.from_numpy(rows.copy()) for name, rows in roster.see(sim).items()})
    greedy = values.argmax(2).numpy()
    for team, slots in roster.game.teams.items():
        player = UtilityPlayer(utilities.arrays(), roster.game, team)
        seen = sim.team_view(team, "observations")
        np.testing.assert_array_equal(player.act(seen, None, None, None, None, None), greedy[:, list(slots)])


def test_a_saved_policy_plays_where_the_name_of_a_script_could_stand(tmp_path: Path):
    report = vdn.train(
        vdn.Args(**{**SMALL, "env_id": PONG, "options": ()}, opponent="tracker:0.8", matches=8, directory=tmp_path)
    )
    assert 0.0 <= report.log[-1]["win_rate"] <= 1.0
    table = evaluate(PONG, str(report.weights), "tracker", matches=4)
    assert table.wins + table.losses + table.draws == 4


def test_a_policy_of_another_game_is_refused():
    arrays = Utilities(roster_of(PONG), (8,)).arrays()
    with pytest.raises(ValueError, match="trained for another game"):
        UtilityPlayer(arrays, roster_of(TAG).game, "red")
    renamed = {name.replace("paddle", "player_red"): array for name, array in arrays.items()}
    with pytest.raises(ValueError, match="red of TeamTag sees"):
        UtilityPlayer(renamed, roster_of(TAG).game, "red")


# -- games of the second contract --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "lacks"),
    [
        (lambda: duel.game(listed=True), "the legal alternatives of 'move' are a list of candidates, .* not support"),
        (lambda: size_game.game(), "shows things to a whole team or match"),
        (lambda: body_game.game(), "is no zero-sum game of two teams"),
        (lambda: depot.game(), "is no zero-sum game of two teams"),
        (lambda: spelled(), "have not exactly one discrete choice"),
    ],
)
def test_games_that_these_methods_cannot_play_say_why(game, lacks: str):
    with pytest.raises(ValueError, match=lacks):
        Roster(game())


def spelled() -> Game:
    """A duel in which a move is two words."""
    (role,) = duel.game(legal=None).roles
    words = dataclasses.replace(role, action=(Choice("move", 3, shape=(2,)),))
    return duel.game(roles=(words,), legal=None)


def test_a_game_of_larger_capacity_is_collected_like_its_own_size():
    batches = []
    for capacity in (None, 6):
        sim = KernelSimulation(duel.game(players=2, capacity=capacity, reward_dtype="f8"), 4)
        roster = Roster(sim.game)
        replay = Replay(roster, 21, 4)
        collector = Collector(sim, replay, roster, 3, False)
        for _ in range(20):
            collector.play(None, 1.0)
        batches.append(replay.sample(np.random.default_rng(0), 32))
    assert batches[0].rewards.abs().sum() > 0
    for ours, theirs in zip(vars(batches[0]).values(), vars(batches[1]).values(), strict=True):
        pairs = zip(ours.values(), theirs.values(), strict=True) if isinstance(ours, dict) else [(ours, theirs)]
        assert all(torch.equal(a, b) for a, b in pairs)


def test_choices_of_hundreds_of_alternatives_are_remembered_whole():
    (role,) = duel.game(legal=None).roles
    many = dataclasses.replace(role, action=(Choice("move", 300),))
    replay = Replay(Roster(duel.game(roles=(many,), legal=None)), 3, 2)
    actions = np.array([[299, 0], [256, 255]])
    replay.write_decision(actions, np.zeros(2), np.zeros(2, np.bool_), np.ones(2, np.bool_))
    assert replay.arrays["actions"][0].tolist() == actions.tolist()
