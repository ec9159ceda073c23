"""Real-valued actions: their scaling, the normal policy of MAPPO, its files, and what other methods say of them."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import OF_MAPPO, assert_same_run, whole_and_resumed
from games import aim
from torch.distributions import Normal

import palaestra
from palaestra.evaluation import evaluate
from palaestra.game import Choice, Continuous, Field, Role
from palaestra_baselines import mappo, vdn
from palaestra_baselines.common.agents import JointNumbers, Roster
from palaestra_baselines.common.flat_networks import DEVIATION
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.rollout import Collector, Replay, draw_numbers, random_actions
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.mappo import log_chosen, log_densities, mean_normal_entropy, policy_loss

pytestmark = pytest.mark.check

AIM = "tests/Aim-v0"
BOTH: dict[str, Any] = {"env_id": AIM, "team": "team", "opponent": ""}
ARCHER: dict[str, Any] = {
    "env_id": AIM,
    "options": ("archer=red_0", "gunner=blue_0"),
    "team": "red",
    "opponent": "random",
}
KINDS = {"two roles": BOTH, "recurrent": {**ARCHER, "recurrent": True}}


# -- scaling -----------------------------------------------------------------------------------------------------------


def numbers_of(*action: Any, dtype: str = "f4") -> JointNumbers:
    """The numbers of agents of a role, of a game that has a name alone."""
    game: Any = SimpleNamespace(name="Fair")
    fields = (Field("turn", (), 0, 1), Field("size", (), 0, 1, dtype=dtype))
    return JointNumbers(game, Role("walker", ("one",), fields, action))


def test_numbers_of_all_fields_stand_side_by_side_and_their_ranges_are_scaled_to_one():
    joint = numbers_of(Continuous("push", (2,), (0.0, -10.0), (4.0, -6.0)), Continuous("turn", (), -3.0, 1.0))
    assert joint.n == 3
    given = np.array([[-1.0, -1.0, -1.0, 9.0], [1.0, 1.0, 1.0, 9.0], [0.5, 0.0, -0.5, 9.0], [7.0, -7.0, 1.5, 9.0]])
    expected = [[0.0, -10.0, -3.0], [4.0, -6.0, 1.0], [3.0, -8.0, -2.0], [4.0, -10.0, 1.0]]
    np.testing.assert_allclose(joint.split(given), expected, rtol=1e-15)


def test_composite_actions_and_observations_of_several_kinds_are_refused_by_name():
    composite = (Choice("aim", 3), Continuous("push"), Continuous("turn"))
    with pytest.raises(ValueError, match="role 'walker' make choices, 'aim', and give numbers, 'push', 'turn':"):
        numbers_of(*composite)
    with pytest.raises(ValueError, match="agents of role 'walker' see numbers of several kinds"):
        numbers_of(Continuous("push"), dtype="i4")


def test_a_team_whose_roles_act_in_different_kinds_is_refused_by_name():
    game = aim.game()
    archer, gunner = game.roles
    mixed = dataclasses.replace(game, roles=(archer, dataclasses.replace(gunner, action=(Choice("height", 3),))))
    with pytest.raises(ValueError, match="role archer give numbers and those of gunner make choices"):
        Roster(mixed, numbers=True)


def test_a_role_with_fewer_numbers_has_no_others_and_each_gets_its_own(rules: Any):
    sim = rules(aim.game())
    sim.reset(seed=0)
    roster = Roster(sim.game, numbers=True)
    assert (roster.gives_numbers, roster.actions, roster.choices) == (True, 2, {"archer": 2, "gunner": 1})
    assert roster.read_legal(sim).tolist() == [[[True, True], [True, False]]]
    roster.write_actions(sim, np.array([[[0.5, -0.5], [1.0, 7.0]]], np.float32))
    assert (sim.actions["archer"].tolist(), sim.actions["gunner"].tolist()) == ([[[3.0, -9.0]]], [[[21.0]]])
    sim.states["acting"][0, 1] = 0
    assert roster.read_legal(sim).tolist() == [[[True, True], [False, False]]]


# -- the policy --------------------------------------------------------------------------------------------------------


def test_the_density_of_an_action_is_the_product_over_the_numbers_that_an_agent_has():
    draw = torch.Generator().manual_seed(0)
    means, numbers = (torch.randn(4, 2, 3, generator=draw) for _ in range(2))
    logs = torch.tensor([[-1.0, 0.5, 0.0], [0.3, -0.7, 2.0]])
    counts = torch.tensor([[True, True, True], [True, True, False]]).expand(4, 2, 3)
    expected = Normal(means, logs.exp()).log_prob(numbers)
    found = log_chosen(log_densities(means, logs, numbers, counts), numbers)
    torch.testing.assert_close(found[:, 0], expected[:, 0].sum(-1))
    torch.testing.assert_close(found[:, 1], expected[:, 1, :2].sum(-1))


def test_the_entropy_is_that_of_the_numbers_of_agents_that_acted():
    logs = torch.tensor([[-1.0, 0.5], [0.3, 9.0]], requires_grad=True)
    counts = torch.tensor([[True, True], [True, False]]).expand(2, 2, 2)
    acts = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    each = Normal(torch.zeros(2, 2), logs.exp()).entropy()
    found = mean_normal_entropy(logs, counts, acts)
    torch.testing.assert_close(found, (each[0].sum() + 2 * each[1, 0]) / 3)
    found.backward()
    assert logs.grad is not None
    assert logs.grad[0, 0] > 0.0 == logs.grad[1, 1]


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_the_mean_moves_towards_numbers_of_positive_advantage_and_away_from_others(advantage: float):
    means, logs = torch.zeros(1, 1, 1, requires_grad=True), torch.zeros(1, 1)
    numbers, counts = torch.full((1, 1, 1), 0.7), torch.ones(1, 1, 1, dtype=torch.bool)
    new = log_chosen(log_densities(means, logs, numbers, counts), numbers)
    policy_loss(new, new.detach(), torch.full((1, 1), advantage), torch.ones(1, 1), 0.2).backward()
    assert means.grad is not None
    assert -means.grad.item() == pytest.approx(0.7 * advantage)


def test_drawn_numbers_have_the_means_and_deviations_of_the_policy_and_are_not_clipped():
    means = np.broadcast_to(np.array([[0.5, -2.0], [1.0, 0.0]], np.float32), (20_000, 2, 2))
    legal = np.broadcast_to(np.array([[True, True], [True, False]]), means.shape)
    found = draw_numbers(np.random.default_rng(0), legal, means, np.array([[0.1, 2.0], [0.5, 1.0]], np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.mean(0), [[0.5, -2.0], [1.0, 0.0]], atol=0.05)
    np.testing.assert_allclose(found.std(0), [[0.1, 2.0], [0.5, 0.0]], atol=0.03)


# -- the rollout -------------------------------------------------------------------------------------------------------


def test_what_is_drawn_is_kept_and_what_is_played_is_clipped(rules: Any):
    sim = rules(aim.game(), 3, autoreset_mode="next_step")
    roster, store = Roster(sim.game, numbers=True), Replay(3, 3)
    collector = Collector(sim, roster, store, 0)
    goal = sim.states["goal"].copy()
    drawn = np.array([[[1.5, -0.25], [-3.0, 0.0]]] * 3, np.float32)
    decision = collector.play(drawn)
    played = np.array([1.0, -0.25, -1.0])
    missed = (played - goal) ** 2
    np.testing.assert_allclose(decision.rewards[:, 0], -missed.sum(1), rtol=1e-5)
    kept = store.last(1).actions
    assert kept.dtype == torch.float32
    np.testing.assert_array_equal(kept[0], drawn)


def test_random_numbers_fill_the_ranges(rules: Any):
    sim = rules(aim.game(), 400, autoreset_mode="next_step")
    collector = Collector(sim, Roster(sim.game, numbers=True), Replay(3, 400), 0)
    found = random_actions(collector)
    assert (found.dtype, found.shape) == (np.float32, (400, 2, 2))
    counted = found.reshape(400, 4)[:, :3]
    assert (np.abs(counted).max(0) < 1.0).all()
    assert (counted.min(0) < -0.95).all()
    assert (counted.max(0) > 0.95).all()
    assert not found[:, 1, 1].any()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_old_density_is_that_of_the_policy_that_drew(kind: dict[str, Any], tmp_path: Path):
    args = mappo.Args(**{**OF_MAPPO, **kind}, directory=tmp_path)
    with RunFolder(args, "mappo") as folder:
        memory = args.hidden[-1] if args.recurrent else 0
        training = mappo.RolloutTraining(args, folder, None, args.rollout, with_state=True, memory_size=memory)
    actor, critic = mappo.make_networks(args, training)
    for _ in range(args.rollout):
        training.collector.play(*mappo.decide(training, actor))
    rollout, team = training.replay.last(args.rollout), int(training.roster.team_of[0])
    samples = mappo.read_rollout(rollout, actor, critic, mappo.ValueScale(0.9), args, team)
    with torch.no_grad():
        means, _ = actor.evaluate(samples.observations, samples.memory if args.recurrent else None)
    each = Normal(means, DEVIATION).log_prob(samples.actions) * samples.legal
    torch.testing.assert_close(samples.old * samples.acts, each.sum(-1) * samples.acts)
    spread = ((samples.actions - means) * samples.legal)[samples.acts > 0.0]
    assert spread.abs().max() > DEVIATION
    assert spread.std() == pytest.approx(DEVIATION * (samples.legal.float().mean() ** 0.5).item(), rel=0.3)


# -- the loop ----------------------------------------------------------------------------------------------------------


def test_mappo_learns_to_hit_by_numbers(tmp_path: Path):
    args = mappo.Args(
        **{**OF_MAPPO, **BOTH, "total_steps": 6_400, "lanes": 32, "matches": 64, "hidden": (16, 16)},
        learning_rate=(1e-2, 1e-3),
        gamma=0.1,
        directory=tmp_path,
    )
    report = mappo.train(args)
    returns = [row["return"] for row in report.log]
    assert returns[0] < -2.5
    assert returns[-1] > -0.5
    assert report.log[-1]["entropy"] < Normal(0.0, DEVIATION).entropy() * 1.5  # the deviations fell


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_interrupted_run_resumes_bitwise_equal_and_its_file_plays_the_means(kind: dict[str, Any], tmp_path: Path):
    settings = {**OF_MAPPO, **kind}
    whole, resumed = whole_and_resumed(mappo, mappo.Args(**settings), tmp_path)
    assert_same_run(whole, resumed)
    names = {"archer": "red_0", "gunner": "blue_0"} if kind is not BOTH else {}
    sim = palaestra.make_batch(AIM, 4, opponents={settings["team"]: str(whole.weights)}, **names)
    player: Any = mappo.load_policy(whole.weights, sim.game, settings["team"])
    sim.reset(seed=0)
    seen = {role: np.array(rows) for role, rows in sim.observations.items()}  # type: ignore[union-attr]
    memory = np.zeros((4, player.memory_size))
    means = player.act(seen if kind is BOTH else seen["archer"], None, None, None, None, memory)
    sim.step()
    archer = means["archer"] if kind is BOTH else means
    np.testing.assert_allclose(sim.actions["archer"], archer, rtol=1e-6)
    assert (np.abs(archer - [[2.0, -8.0]]) <= 2.0).all()
    assert player.policy_outputs == {}


def test_a_file_of_numbers_is_evaluated_by_its_path(tmp_path: Path):
    report = mappo.train(mappo.Args(**{**OF_MAPPO, **ARCHER, "total_steps": 64}, directory=tmp_path))
    keywords: dict[str, Any] = {"archer": "red_0", "gunner": "blue_0"}
    seed = 1 << 30  # of the run's own evaluations
    table = evaluate(AIM, str(report.weights), "random", matches=4, seed=seed, swap=False, **keywords)
    assert table.results["return_a"].mean() == pytest.approx(report.log[-1]["return"])


def test_the_only_team_of_a_game_is_trained_and_evaluated_without_an_opponent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["--env-id", AIM, "--team", "team", "--opponent", "", "--lanes", "4", "--rollout", "8", "--quiet"]
    mappo.main([*words, "--total-steps", "32", "--evaluations", "1", "--matches", "4", "--directory", str(tmp_path)])
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.endswith(f"palaestra eval {AIM} --a {tmp_path / 'seed_0' / 'last.safetensors'}")
    alone: dict[str, Any] = {"env_id": "palaestra/Spread-v0", "team": "agent", "opponent": "", "total_steps": 24}
    report = vdn.train(
        vdn.Args(**{**VALUES, **alone, "evaluations": 1, "matches": 2, "quiet": True}, directory=tmp_path / "vdn")
    )
    assert report.log[-1]["return"] < 0.0
    assert "win_rate" not in report.log[-1]


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["qmix", "vdn", "iql", "unmas"])
def test_methods_that_value_choices_refuse_numbers_and_name_role_and_field(method: str, tmp_path: Path):
    module = importlib.import_module(f"palaestra_baselines.{method}")
    args = module.Args(**ARCHER, lanes=4, quiet=True, directory=tmp_path)
    with pytest.raises(ValueError, match=r"Aim: agents of role 'archer' .* 'place', which this method does not learn"):
        module.train(args)


def test_fm3q_refuses_numbers_and_names_role_and_field(tmp_path: Path):
    from palaestra_baselines import fm3q

    args = fm3q.Args(env_id="palaestra/TeamTag-2v2-v0", options=("actions=continuous",), quiet=True, directory=tmp_path)
    with pytest.raises(ValueError, match=r"TeamTag: agents of role 'player' .* 'force', which this method does not"):
        fm3q.train(args)


def test_networks_that_read_units_refuse_numbers(tmp_path: Path):
    with pytest.raises(ValueError, match="Aim: agents give numbers, not choices of units: use --network flat"):
        mappo.train(mappo.Args(**{**OF_MAPPO, **BOTH}, network="entity", directory=tmp_path))


# -- choices are learnt as before --------------------------------------------------------------------------------------

BATTLE, TAG, SOCCER = "palaestra/Skirmish-3m-v0", "palaestra/TeamTag-2v2-v0", "palaestra/GridSoccer-v0"
VALUES: dict[str, Any] = {
    "total_steps": 24,
    "lanes": 8,
    "warmup_steps": 16,
    "updates": 2,
    "batch_size": 16,
    "replay_size": 240,
    "hidden": (8, 8),
    "opponent": "",
    "tau": 0.5,
    "learning_rate": (1e-2, 1e-2),
}
RED: dict[str, Any] = {"env_id": BATTLE, "team": "red", "opponent": "builtin", "matches": 2}
FACTORED: dict[str, Any] = {
    **VALUES,
    **RED,
    "length": 2,
    "embedding": 4,
    "mixer_hidden": 8,
    "average": 0.5,
    "total_steps": 40,
}
ROLLOUTS: dict[str, Any] = {
    **{k: v for k, v in OF_MAPPO.items() if k != "quiet"},
    **{"epochs": 1, "minibatches": 2, "total_steps": 128, "matches": 2},
}
TAGGED: dict[str, Any] = {**ROLLOUTS, "env_id": TAG, "team": "blue", "opponent": "default:0.5"}
GRAPH: dict[str, Any] = {
    "learning_rate": (1e-2, 1e-2),
    "average": 0.5,
    "env_id": "palaestra/GraphPursuit-Grid10-v0",
    "total_steps": 64,
    "lanes": 4,
    "warmup_steps": 32,
    "updates": 1,
    "batch_size": 4,
    "replay_size": 64,
    "width": 8,
    "heads": 2,
    "matches": 2,
    "beta": "fixed",
}
BEFORE: dict[str, tuple[str, dict[str, Any], float]] = {
    "mappo": ("mappo", TAGGED, 2.385747),
    "mappo recurrent": ("mappo", {**TAGGED, "recurrent": True}, 22.711502),
    "mappo entity": ("mappo", {**ROLLOUTS, **RED, "network": "entity"}, 47.623741),
    "mappo entity recurrent": ("mappo", {**ROLLOUTS, **RED, "network": "entity", "recurrent": True}, -141.181203),
    "qmix": ("qmix", {**FACTORED, "network": "entity", "recurrent": True}, -105.834644),
    "unmas": ("unmas", FACTORED, -161.768798),
    "vdn": ("vdn", {**VALUES, "env_id": TAG}, -5.647010),
    "iql": ("iql", {**VALUES, "env_id": SOCCER}, -13.547238),
    "fm3q": ("fm3q", {**VALUES, "env_id": TAG}, -5.949455),
    "arac": ("arac", GRAPH, -4.607573),
}
"""Method, arguments, and `fingerprint` of what it learnt at the commit before numbers were added.

Those of the battle were recorded again when blue got red's order: the methods of before learn the same there.

The weights were compared bitwise then. Other processors and builds of torch differ in last bits, which the fingerprint
allows for; Adam would make whole steps of them where a gradient is as small, so that it learns with a large epsilon.
"""


def fingerprint(arrays: dict[str, np.ndarray]) -> float:
    """A number that depends on each weight."""
    flat = np.concatenate([arrays[name].ravel().astype(np.float64) for name in sorted(arrays)])
    return float(np.cos(np.arange(len(flat)) ** 2.0) @ flat)


@pytest.mark.parametrize("name", BEFORE)
def test_methods_learn_of_choices_what_they_learnt_before_numbers_came(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.optim, "Adam", functools.partial(torch.optim.Adam, eps=1e-2))
    method, given, expected = BEFORE[name]
    module = importlib.import_module(f"palaestra_baselines.{method}")
    report = module.train(module.Args(**{**given, "evaluations": 1, "quiet": True}, directory=tmp_path), lambda _: {})
    assert report.updates >= 2
    assert fingerprint(read_policy(report.weights)[0]) == pytest.approx(expected, rel=1e-6, abs=1e-5)
