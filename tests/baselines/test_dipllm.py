"""DipLLM: networks of joint orders, what the student learns from, its steps, players, runs and files."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.concert_positions import DUEL, SHORT, Uniform, positions_of
from baselines.short_runs import assert_same_run

from palaestra import make_batch, registry
from palaestra.core.files import FileError
from palaestra.core.run.opponents import ForTeam
from palaestra.evaluation import evaluate
from palaestra.games.concert import concert_vector as vector
from palaestra.games.concert.concert_phases import MOVES
from palaestra.players.choosing import Chance
from palaestra_baselines import dipllm
from palaestra_baselines.common import joint_networks
from palaestra_baselines.common.joint_networks import (
    NEVER,
    FactorisedPolicy,
    PlanClassifier,
    ValueNetwork,
    class_loss,
    heaviest_plans,
    plan_loss,
)
from palaestra_baselines.common.joint_orders import Terrain, View, draw_plans, has_choice, join, log_probabilities
from palaestra_baselines.common.joint_players import Classified, OneByOne, PlanPlayer, one_against_others
from palaestra_baselines.common.pikl import payoffs, pikl_hedge, views_of
from palaestra_baselines.common.value_anchor import Anchor
from palaestra_baselines.dipllm import Args, Data, Learner, Samples, Teacher, anchor_player, load_policy

pytestmark = pytest.mark.check

TINY: dict[str, Any] = {
    **{
        "options": (f"last_year={SHORT['last_year']}",),
        "games": 4,
        "plans": 3,
        "rounds": 10,
        "hidden": (8, 8),
        "batch_size": 16,
    },
    **{"total_steps": 96, "evaluations": 3, "matches": 4, "quiet": True},
}
KINDS: dict[str, dict[str, Any]] = {
    "full": {},
    "reversed": {"unit_order": "reversed"},
    "clone": {"student": "clone"},
    "joint": {"student": "joint"},
}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules run as plain Python, in few lanes."""
    monkeypatch.setattr(registry, "make_batch", functools.partial(registry.make_batch, compiled=False))
    monkeypatch.setattr(dipllm, "TRIALS", 4)
    monkeypatch.setattr(dipllm, "LANES", 3)


@pytest.fixture(scope="module")
def terrain() -> Terrain:
    return positions_of(DUEL, **SHORT).terrain


@pytest.fixture(scope="module")
def view() -> View:
    """Positions of both powers in all phases."""
    return join(positions_of(DUEL, **SHORT).views)


def draw(policy: Any, view: View, count: int, seed: int = 0) -> np.ndarray:
    """Plans int64 ``[N, count, S]``."""
    return draw_plans(policy, view, np.random.default_rng(seed).random((len(view), count, view.units.shape[1])))


# -- networks ----------------------------------------------------------------------------------------------------------


def test_conditionals_are_distributions_over_the_lists_alone(terrain: Terrain, view: View):
    policy, plans = FactorisedPolicy(terrain, (8, 8)), draw(Uniform(), view, 1)[:, 0]
    for slot in range(terrain.slots):
        found = policy.probabilities(policy.prepare(view), np.arange(len(view)), slot, plans)
        np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-6)
        np.testing.assert_array_equal(found > 0, view.lists[:, slot] >= 0)


def test_a_conditional_depends_on_the_orders_before_and_on_none_behind(terrain: Terrain, view: View):
    policy, plans = FactorisedPolicy(terrain, (8, 8)), draw(Uniform(), view, 1)[:, 0]
    known, rows = policy.prepare(view), np.flatnonzero(has_choice(view.lists[:, 1]))
    expected = policy.probabilities(known, rows, 1, plans[rows])
    other = plans[rows].copy()
    other[:, 1:] = 1 + (other[:, 1:] + 7) % (terrain.orders - 1)
    np.testing.assert_array_equal(policy.probabilities(known, rows, 1, other), expected)
    other[:, 0] = 1 + (other[:, 0] + 7) % (terrain.orders - 1)
    assert np.abs(policy.probabilities(known, rows, 1, other) - expected).max() > 0.01


def test_scores_of_lists_alone_are_those_of_all_orders(terrain: Terrain, view: View, monkeypatch: pytest.MonkeyPatch):
    policy, plans = FactorisedPolicy(terrain, (8, 8)), draw(Uniform(), view, 1)
    expected = log_probabilities(policy, view, plans)
    monkeypatch.setattr(joint_networks, "FEW_ORDERS", 0)
    np.testing.assert_allclose(log_probabilities(policy, view, plans), expected, atol=1e-4)


def test_each_order_has_a_pair_of_rows_of_its_own(terrain: Terrain):
    out = FactorisedPolicy(terrain, (8,)).out
    assert len({*zip(out.first.tolist(), out.second.tolist(), strict=True)}) == terrain.orders
    assert len(out.one) + len(out.two) < terrain.orders


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_scores_are_divided_by_the_temperature(terrain: Terrain, view: View, temperature: float):
    policy, rows, plans = FactorisedPolicy(terrain, (8, 8)), np.arange(len(view)), draw(Uniform(), view, 1)[:, 0]
    plain = policy.probabilities(policy.prepare(view), rows, 0, plans)
    policy.temperature = temperature
    powers = plain ** (1 / temperature)
    found = policy.probabilities(policy.prepare(view), rows, 0, plans)
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-4, atol=1e-7)


def test_the_loss_is_the_mean_negative_logarithm_of_the_plans(terrain: Terrain, view: View):
    policy, plans = FactorisedPolicy(terrain, (8, 8)), draw(Uniform(), view, 1)
    expected = -log_probabilities(policy, view, plans).mean()
    policy.temperature = 0.3  # of play alone
    loss = plan_loss(policy, view, plans[:, 0])
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    assert expected > 1.0
    still = view.take(np.flatnonzero(~has_choice(view.lists).any(1)))
    assert len(still)
    assert plan_loss(policy, still, plans[: len(still), 0]).item() == 0.0


def known_plans(terrain: Terrain, view: View) -> PlanClassifier:
    """A classifier of plans of the first moves and of other positions."""
    plans = draw(Uniform(), view, 4)
    return PlanClassifier(terrain, heaviest_plans(plans, np.ones(plans.shape[:2]), 60)[0], (8,))


def test_a_classifier_gives_legal_plans_alone_and_leaves_the_rest_to_the_anchor(terrain: Terrain, view: View):
    network, anchor = known_plans(terrain, view), Anchor(terrain)
    allowed = (view.lists[:, None] == network.plans.numpy()[None, :, :, None]).any(-1).all(-1)
    np.testing.assert_array_equal(network.legal(view).numpy(), allowed)
    scores, _ = network(view)
    np.testing.assert_array_equal(scores.detach().numpy() == NEVER, ~allowed)
    some, none = np.flatnonzero(allowed.sum(1) > 1), np.flatnonzero(~allowed.any(1))
    assert min(len(some), len(none)) > 3
    uniforms = np.random.default_rng(0).random((len(view), terrain.slots))
    plans = network.draw(view, anchor, uniforms)
    listed = (plans[some, None] == network.plans.numpy()[None]).all(-1)
    assert (listed & allowed[some]).any(1).all()
    np.testing.assert_array_equal(plans[none], draw_plans(anchor, view.take(none), uniforms[none, None])[:, 0])
    network.temperature = 1e-4
    best = scores.detach().numpy().argmax(1)[some]
    np.testing.assert_array_equal(network.draw(view, anchor, uniforms)[some], network.plans.numpy()[best])


def test_the_heaviest_plans_are_those_of_the_greatest_sum_of_weights_without_that_of_holds():
    plans = np.array([[[1, 2], [0, 0], [3, 0]], [[3, 0], [1, 2], [4, 4]]])
    weights = np.array([[0.3, 0.6, 0.1], [0.5, 0.2, 0.3]])
    kept, classes = heaviest_plans(plans, weights, 2)
    assert kept.tolist() == [[3, 0], [1, 2]]
    assert classes.tolist() == [[1, -1, 0], [0, 1, -1]]


def test_the_loss_of_a_classifier_leaves_out_plans_that_are_none_of_its_classes(terrain: Terrain, view: View):
    network = known_plans(terrain, view)
    few = view.take(np.flatnonzero(network.legal(view).sum(1).numpy() > 1)[:3])
    classes = network.legal(few).float().argmax(1).numpy()
    logarithms = network(few)[0].log_softmax(-1).detach().numpy()[np.arange(3), classes]
    assert class_loss(network, few, classes).item() == pytest.approx(-logarithms.mean(), rel=1e-5)
    classes[1] = -1
    assert class_loss(network, few, classes).item() == pytest.approx(-(logarithms[0] + logarithms[2]) / 2, rel=1e-5)
    assert class_loss(network, few, np.full(3, -1)).item() == 0.0


# -- learning ----------------------------------------------------------------------------------------------------------


def taught(view: View, count: int) -> tuple[Samples, np.ndarray]:
    """A position with some different plans, and the weights of these."""
    few = view.take(np.flatnonzero((view.phase == MOVES) & (view.units >= 0).all(1))[:1])
    plans = np.unique(draw(Uniform(), few, 4 * count)[0], axis=0)[:: 4 * count // count // 2][:count]
    weights = np.random.default_rng(3).dirichlet(np.ones(len(plans)))
    return Samples(few, plans[None], weights.cumsum()[None]), weights


@pytest.mark.parametrize(
    ("kind", "count", "steps", "most"),
    [("full", 4, 250, 0.03), ("joint", 4, 250, 0.03), pytest.param("full", 8, 1500, 0.015, marks=pytest.mark.check)],
)
def test_a_student_learns_the_weights_of_the_plans(
    kind: str, count: int, steps: int, most: float, terrain: Terrain, view: View
):
    samples, weights = taught(view, count)
    args = Args(**{**TINY, **KINDS[kind], "batch_size": 128, "hidden": (16,), "learning_rate": (0.02, 0.0)})
    learner = Learner(args, terrain, samples)
    losses = [learner.step(step / steps) for step in range(steps)]
    assert np.mean(losses[-20:]) == pytest.approx(-(weights * np.log(weights)).sum(), abs=0.1)
    if kind == "full":
        found = np.exp(log_probabilities(learner.network, samples.view, samples.plans))[0]
    else:
        order = [(learner.network.plans.numpy() == plan).all(1).argmax() for plan in samples.plans[0]]
        found = learner.network(samples.view)[0].softmax(-1).detach().numpy()[0, order]
    np.testing.assert_allclose(found, weights, atol=most)


def test_the_learning_rate_falls_from_its_first_to_its_last_number(terrain: Terrain, view: View):
    learner = Learner(Args(**{**TINY, "learning_rate": (0.1, 0.0)}), terrain, taught(view, 6)[0])
    before = dipllm.arrays_of(learner.network)["position.bias"]
    changes = []
    for progress in (1.0, 0.5, 0.0):
        learner.step(progress)
        after = dipllm.arrays_of(learner.network)["position.bias"]
        changes.append(np.abs(after - before).max())
        before = after
    assert changes[0] == 0.0 < changes[1] < 0.051 < changes[2] < 0.101


def data_of(rows: np.ndarray) -> tuple[Data, list[View]]:
    """Some positions with plans and weights by chance, and what both powers see."""
    positions, rng = positions_of(DUEL, **SHORT), np.random.default_rng(4)
    views = [view.take(rows) for view in positions.views]
    plans = np.stack([draw(Uniform(), view, 3, seed=power) for power, view in enumerate(views)], 1).astype(np.int16)
    weights = rng.dirichlet(np.ones(3), plans.shape[:2]).astype(np.float32)
    return Data(ValueNetwork(positions.terrain.features), positions.records[rows], plans, weights), views


@pytest.mark.parametrize("kind", ["full", "clone", "reversed"])
def test_samples_are_the_choices_of_all_powers_with_the_weights_of_their_plans(kind: str, interpreted: None):
    rows = np.array([0, 8, 16, 24])
    data, views = data_of(rows)
    samples = dipllm.samples_of(Args(**{**TINY, **KINDS[kind]}), data)
    expected, plans = join(views), np.concatenate([data.plans[:, 0], data.plans[:, 1]])
    chooses = np.flatnonzero(has_choice(expected.lists).any(1))
    weights = np.concatenate([data.weights[:, 0], data.weights[:, 1]])[chooses]
    step = -1 if kind == "reversed" else 1
    np.testing.assert_array_equal(samples.view.features, expected.features[chooses])
    np.testing.assert_array_equal(samples.view.units, expected.units[chooses][:, ::step])
    np.testing.assert_array_equal(has_choice(samples.view.lists), has_choice(expected.lists)[chooses][:, ::step])
    np.testing.assert_array_equal(samples.plans, plans[chooses][..., ::step])
    shares = np.tile([1.0, 2.0, 3.0], (len(chooses), 1)) if kind == "clone" else weights.cumsum(1)
    np.testing.assert_allclose(samples.shares, shares, rtol=1e-6)
    assert (samples.view.lists == samples.plans[:, 0, :, None]).any(-1).all()


def test_a_value_learns_the_reward_that_follows(terrain: Terrain, view: View):
    flags = view.features[:, : -vector.CLOCK].reshape(len(view), terrain.locations, -1)
    rewards = np.tanh(flags[..., -2].sum(1) - flags[..., -1].sum(1)).astype(np.float32)
    network, rng = ValueNetwork(terrain.features), np.random.default_rng(0)
    features, targets = np.tile(view.features, (40, 1)), np.tile(rewards, 40)
    before = np.mean((network.values(view.features) - rewards) ** 2)
    dipllm.fit_value(network, features, targets, rng)
    assert np.mean((network.values(view.features) - rewards) ** 2) < 0.1 * before
    assert before > 0.1


def test_rewards_of_the_anchor_s_games_are_those_of_the_power_that_sees_the_position(
    interpreted: None, monkeypatch: pytest.MonkeyPatch
):
    calls = itertools.count()
    holds = lambda *given: draw_plans(*given) * (next(calls) % 2 == 0)  # noqa: E731 (red holds)
    monkeypatch.setattr(dipllm, "draw_plans", holds)
    args = Args(**{**TINY, "games": 2, "options": ("last_year=2",)})
    features, rewards = dipllm.play_anchor(args, 3, np.random.default_rng(3))
    assert features.shape == (len(rewards), len(features[0]))
    powers = rewards.reshape(-1, 2, 2)  # both matches have the same phases: phase, power, match
    assert (powers == powers[:1]).all()
    assert (powers[:, 0] > 0).all()
    np.testing.assert_array_equal(powers[:, 1], -powers[:, 0])


class Holding:
    """A teacher whose first plan, of all weight, holds; the others are drawn at random."""

    def __init__(self, terrain: Terrain) -> None:
        self.terrain, self.results = terrain, SimpleNamespace(value=None)

    def search(self, records: np.ndarray, views: list[View], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        plans = np.stack([draw(Uniform(), view, 3) for view in views], 1)
        plans[:, :, 0] = 0
        return plans, np.broadcast_to([1.0, 0.0, 0.0], plans.shape[:3])


def test_games_end_with_the_horizon_too(interpreted: None, monkeypatch: pytest.MonkeyPatch):
    looks = iter(range(10))  # a game that never ended would use them up
    monkeypatch.setattr(dipllm, "views_of", lambda *given: (next(looks), views_of(*given))[1])
    args = Args(**{**TINY, "options": ("horizon=2",), "games": 2})
    features, _ = dipllm.play_anchor(args, 0, np.random.default_rng(0))
    assert len(features) == 2 * 2 * 2
    data = dipllm.play_taught(args, Teacher(args, ValueNetwork(features.shape[1])), 0, np.random.default_rng(0))
    assert len(data.records) == 2 * 2


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_powers_play_by_the_teacher_or_by_the_anchor(
    share: float, terrain: Terrain, interpreted: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(dipllm, "TAUGHT", share)
    args, teacher = Args(**{**TINY, "games": 2, "options": ("last_year=1",)}), Holding(terrain)
    data = dipllm.play_taught(args, teacher, 1, np.random.default_rng(0))  # pyright: ignore[reportArgumentType]
    assert len(data.records) == len(data.plans) == len(data.weights) >= 4
    assert (data.records["unit"] == data.records["unit"][0]).all() == (share == 1.0)


def test_the_teacher_weighs_drawn_plans_by_what_the_rules_and_the_value_say(terrain: Terrain, interpreted: None):
    positions = positions_of(DUEL, **SHORT)
    rows = np.array([0, 16])
    teacher = Teacher(Args(**{**TINY, "plans": 2}), ValueNetwork(terrain.features))
    views = [view.take(rows) for view in positions.views]
    plans, weights = teacher.search(positions.records[rows], views, np.random.default_rng(0))
    assert plans.shape == (2, 2, 2, terrain.slots)
    values = payoffs(teacher.results, positions.records[rows], [plans[:, 0], plans[:, 1]])
    for power, expected in enumerate(pikl_hedge(values, teacher.args.search)):
        np.testing.assert_allclose(weights[:, power], expected)
        assert (views[power].lists[:, None] == plans[:, power, :, :, None]).any(-1).all()
    assert np.ptp(weights) > 0.01


# -- players -----------------------------------------------------------------------------------------------------------


def source_of(kind: str, terrain: Terrain, view: View) -> Any:
    if kind == "anchor":
        return OneByOne(Anchor(terrain))
    if kind == "joint":
        return Classified(known_plans(terrain, view), Anchor(terrain))
    return OneByOne(FactorisedPolicy(terrain, (8, 8)), backwards=kind == "reversed")


@pytest.mark.parametrize("kind", ["anchor", "full", "reversed", "joint"])
def test_players_draw_legal_plans_from_what_their_power_sees(kind: str, terrain: Terrain, view: View):
    sim = make_batch(DUEL, 1, autoreset_mode="off", compiled=False, last_year=2)
    source, game_terrain = source_of(kind, terrain, view), Terrain(sim.game)
    for team in sim.game.teams:
        sim.set_opponent(team, PlanPlayer(game_terrain, team, source))
    sim.reset(seed=5)
    decision = 0
    while not sim.terminated.all():
        views, decision = views_of(game_terrain, sim), decision + 1
        sim.step()
        for number, team in enumerate(sim.game.teams):
            chance = Chance(sim.lane_seeds, np.full(1, float(decision)), 1, number)
            plans = source.draw(views[number], chance.uniforms(terrain.slots))
            np.testing.assert_array_equal(sim.team_view(team, "actions")[:, 0], plans)
        assert not sim.info["illegal"].any()
    assert decision >= 4
    sim.close()


def test_a_player_reads_the_lists_of_its_power_from_the_last_to_the_first(terrain: Terrain, view: View):
    policy, uniforms = FactorisedPolicy(terrain, (8, 8)), np.random.default_rng(0).random((len(view), terrain.slots))
    found = OneByOne(policy, backwards=True).draw(view, uniforms)
    expected = draw_plans(policy, view.backwards(), uniforms[:, None])[:, 0]
    np.testing.assert_array_equal(found, expected[:, ::-1])
    assert (found != OneByOne(policy).draw(view, uniforms)).any()


def test_actions_do_not_depend_on_the_lanes_that_are_played_beside(terrain: Terrain):
    ends = []
    for seeds in ([5, 6], [6]):
        sim = make_batch(DUEL, len(seeds), autoreset_mode="off", compiled=False, last_year=1)
        for team in sim.game.teams:
            sim.set_opponent(team, anchor_player(sim.game, team))
        sim.reset(seed=seeds)
        while not sim.terminated.all():
            sim.step()
        ends.append(sim.states["order"][seeds.index(6)].tolist() + sim.states["unit"][seeds.index(6)].tolist())
        sim.close()
    assert ends[0] == ends[1]


@dataclasses.dataclass(frozen=True)
class Playing:
    """``(game, team)`` -> player, as a player of any team."""

    player: Any

    def for_team(self, game: Any, team: str) -> PlanPlayer:
        return self.player(game, team)


def test_the_anchor_plays_both_sides_of_an_evaluation(interpreted: None):
    player: ForTeam = Playing(anchor_player)
    table = evaluate(DUEL, player, "hold", matches=2, last_year=2)
    assert set(table.sides) == {"blue", "red"}
    assert table.score == 1.0


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"observation": "vector"}, 'ConcertDuel: policies of joint orders read observation="dict", the default'),
        ({"decisions": "unit"}, 'ConcertDuel: joint orders need decisions="phase", the default'),
    ],
)
def test_players_of_plans_refuse_other_observations_and_single_orders(keywords: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        anchor_player(registry.make_game(DUEL, **keywords)[0], "blue")


def test_points_of_one_power_are_what_the_others_lose(interpreted: None):
    value, hold = (dict.fromkeys(registry.make_game(DUEL)[0].teams, name) for name in ("province_value", "hold"))
    one = one_against_others(DUEL, {"last_year": 2}, value, hold, 2, 7)
    other = one_against_others(DUEL, {"last_year": 2}, hold, value, 2, 7)
    assert (one > 0.5).all()
    np.testing.assert_array_equal(one[:1], 1.0 - other[1:])
    np.testing.assert_array_equal(one[1:], 1.0 - other[:1])


@pytest.mark.check
def test_the_share_of_one_of_seven_powers_is_its_points(interpreted: None):
    teams = registry.make_game("palaestra/Concert-v0")[0].teams
    value, hold = (dict.fromkeys(teams, name) for name in ("province_value", "hold"))
    points = one_against_others("palaestra/Concert-v0", {"last_year": 1902}, value, hold, 7, 0)
    assert points.shape == (7,)
    assert points.mean() > 1 / 7


# -- arguments, runs, files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"student": "joint", "unit_order": "reversed"}, "--student joint writes whole plans"),
        ({"plans": 0}, "--plans"),
        ({"games": 0}, "--games"),
        ({"rounds": 0}, "--rounds"),
        ({"hedge_step": 0.0}, "--hedge-step"),
        ({"anchor_weight": -0.1}, "--anchor-weight"),
        ({"temperature": 0.0}, "--temperature"),
        ({"batch_size": 0}, "--batch-size"),
        ({"hidden": (8, 0)}, "--hidden"),
    ],
)
def test_arguments_that_cannot_be_are_refused(given: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        Args(**{**TINY, **given}).check()
    Args(**{**TINY, "anchor_weight": 0.0}).check()


def saved(args: Args, terrain: Terrain, network: Any) -> Path:
    """The policy file that an evaluation writes."""
    args.folder.mkdir(parents=True)
    folder: Any = SimpleNamespace(record=lambda row, state, **_: None, progress=SimpleNamespace(say=lambda text: None))
    learner: Any = SimpleNamespace(terrain=terrain, network=network, state=dict)
    data: Any = SimpleNamespace(value=ValueNetwork(terrain.features), state=dict)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dipllm, "one_against_others", lambda *given: np.zeros(1))
        dipllm.record(args, folder, learner, data, {"steps": 0, "updates": 0}, 0.0, 0.0)
    return args.folder / dipllm.WEIGHTS


@pytest.mark.parametrize("kind", ["full", "reversed", "joint"])
def test_a_policy_file_plays_as_the_policy_that_was_saved(kind: str, terrain: Terrain, view: View, tmp_path: Path):
    args = Args(**{**TINY, **KINDS[kind], "hidden": (8,) if kind == "joint" else (8, 8), "directory": tmp_path})
    source = source_of(kind, terrain, view)
    network = source.network if kind == "joint" else source.policy
    path = saved(args, terrain, network)
    network.temperature = args.temperature
    uniforms = np.random.default_rng(1).random((len(view), terrain.slots))
    for team in terrain.game.teams:
        player = load_policy(path, terrain.game, team)
        np.testing.assert_array_equal(player.source.draw(view, uniforms), source.draw(view, uniforms))


@pytest.mark.parametrize("kind", ["full", "joint"])
@pytest.mark.parametrize(
    ("id", "keywords"),
    [("palaestra/ConcertDuel-20-v0", {}), (DUEL, {"map": "france_austria"}), (DUEL, {"observation": "vector"})],
)
def test_a_policy_of_another_map_or_observation_is_refused(
    kind: str, id: str, keywords: dict[str, Any], terrain: Terrain, view: View, tmp_path: Path
):
    source = source_of(kind, terrain, view)
    network = source.network if kind == "joint" else source.policy
    hidden = (8,) if kind == "joint" else (8, 8)
    path = saved(Args(**{**TINY, **KINDS[kind], "hidden": hidden, "directory": tmp_path}), terrain, network)
    message = "policies of joint orders read" if keywords.get("observation") else "the weights do not fit"
    game = registry.make_game(id, **keywords)[0]
    with pytest.raises(FileError, match=message):
        load_policy(path, game, next(iter(game.teams)))


def resumed(args: Args, at: int) -> dipllm.Report:
    """A run that is interrupted before an evaluation and then resumed."""
    kept, number = dipllm.record, itertools.count(1)

    def stop_once(*given: Any) -> None:
        if next(number) == at:
            raise KeyboardInterrupt
        kept(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dipllm, "record", stop_once)
        with pytest.raises(KeyboardInterrupt):
            dipllm.train(args)
    return dipllm.train(dataclasses.replace(args, resume=True))


def test_a_resumed_run_is_the_same_to_the_bit(interpreted: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dipllm, "one_against_others", lambda *given: np.zeros(1))
    progress, kept = [], Learner.step
    monkeypatch.setattr(Learner, "step", lambda self, share: (progress.append(share), kept(self, share))[1])
    args = Args(**{**TINY, "options": ("last_year=1",), "games": 2, "plans": 2})
    whole = dipllm.train(dataclasses.replace(args, directory=tmp_path / "whole"))
    assert progress == [n / 6 for n in range(6)]
    assert_same_run(whole, resumed(dataclasses.replace(args, directory=tmp_path / "halves"), at=3))
    assert [row["steps"] for row in whole.log] == [0, 32, 64, 96]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_runs_of_all_students_are_resumed_to_the_bit_and_differ_by_seed(kind: str, tmp_path: Path):
    args = Args(**{**TINY, **KINDS[kind], "games": 8})
    whole = dipllm.train(dataclasses.replace(args, directory=tmp_path / "whole"))
    assert_same_run(whole, resumed(dataclasses.replace(args, directory=tmp_path / "halves"), at=2))
    other = dipllm.train(dataclasses.replace(args, seed=1, directory=tmp_path / "other"))
    assert whole.log[-1]["loss"] != other.log[-1]["loss"]
    player = Playing(functools.partial(load_policy, whole.weights))
    table = evaluate(DUEL, player, "random", matches=4, last_year=3)
    assert set(table.sides) == {"blue", "red"}


@pytest.mark.slow
def test_a_short_training_beats_the_anchor(tmp_path: Path):
    args = Args(games=100, total_steps=150_000, evaluations=1, matches=400, quiet=True, directory=tmp_path)
    assert dipllm.train(args).log[-1]["score"] > 0.55
