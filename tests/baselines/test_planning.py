"""The planner of SeqWM: what a plan is worth, the best plan of known dynamics, who needs to know what, warm starts."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from games import aim, copy_game
from games.point_plan import ExactModel, exact_worth, make_design, make_roster, random_model

from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.planning import (
    CHUNK,
    LEAST_DEVIATION,
    Draws,
    PlanningPlayer,
    decide,
    design_of,
    draws_size,
    make_player,
    search,
    split_draws,
    worth_of,
)
from palaestra_baselines.common.policy_file import save_policy
from palaestra_baselines.common.world_models import WorldModel
from palaestra_baselines.seqwm import load_policy

START = np.array([0.2, -0.2])
MANY: dict[str, Any] = {"samples": 128, "actor_samples": 8, "elites": 16, "iterations": 6, "temperature": 0.1}


def normals_of(model: Any, lanes: int, seed: int = 0) -> torch.Tensor:
    """Draws of a decision."""
    design, (agents, _, numbers) = model.design, model.counts.shape
    return torch.randn(lanes, draws_size(design, agents, numbers), generator=torch.Generator().manual_seed(seed))


def searched(model: Any, latents: torch.Tensor, before: torch.Tensor, seed: int = 0, explore: bool = False) -> Any:
    """The plan from latents ``[A, n, L]``; agents act in the order of the roster."""
    draws = split_draws(normals_of(model, latents.shape[1], seed), model.design, *model.counts.shape[::2])
    return search(model, latents, model.masks(torch.arange(len(latents))[:, None]), before, draws, explore)


def at_start(lanes: int) -> torch.Tensor:
    """Latents of the exact model, ``[2, lanes, 2]``."""
    return torch.from_numpy(START).float().expand(2, lanes, 2)


# -- known dynamics ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_plan_is_worth_its_discounted_mean_rewards_and_the_value_after_them(horizon: int):
    model: Any = ExactModel(horizon=horizon)
    plans = np.random.default_rng(0).uniform(-1.0, 1.0, (50, horizon, 2))
    rows = torch.from_numpy(plans).float().permute(1, 2, 0)[:, :, None, :, None]  # [H, A, 1, S, M]
    found = worth_of(model, at_start(1), model.masks(torch.arange(2)[:, None]), rows)
    assert found.shape == (1, 1, 50)
    np.testing.assert_allclose(found[0, 0], exact_worth(START, plans, 0.9), rtol=1e-5)


@pytest.mark.check
def test_the_planner_comes_within_five_percent_of_the_best_plan_of_a_grid():
    numbers = np.linspace(-1.0, 1.0, 21)
    grid = np.array(list(itertools.product(numbers, repeat=4))).reshape(-1, 2, 2)
    worth = exact_worth(START, grid, 0.9)
    best, idle = worth.max(), exact_worth(START, np.zeros((1, 2, 2)), 0.9)[0]
    model: Any = ExactModel(**MANY)
    plan = searched(model, at_start(8), torch.zeros(8, 2, 2, 1))
    assert (plan.values >= best - 0.05 * (best - idle)).all()
    assert (plan.values <= best + 0.02 * (best - idle)).all()  # the grid is coarse
    later = plan.following.reshape(8, 2, 2)[:, :, 0]  # [n, A]
    played = exact_worth(START, np.stack([plan.actions[..., 0].numpy(), later.numpy()], 1), 0.9)
    assert (played >= best - 0.05 * (best - idle)).all()
    np.testing.assert_allclose(plan.actions[..., 0].mean(0), grid[worth.argmax(), 0], atol=0.1)


def test_more_iterations_find_better_plans():
    found = []
    for iterations in (1, 4):
        model: Any = ExactModel(**{**MANY, "iterations": iterations, "actor_samples": 0, "elites": 8})
        found.append(searched(model, at_start(32), torch.zeros(32, 2, 2, 1)).values.mean().item())
    assert found[1] > found[0] + 0.005


def test_plans_of_a_good_actor_are_among_those_that_are_compared():
    few: dict[str, Any] = {"samples": 8, "elites": 1, "iterations": 1}
    worth = {}
    for actor_samples in (0, 4):
        model: Any = ExactModel(**few, actor_samples=actor_samples)
        worth[actor_samples] = searched(model, at_start(64), torch.full((64, 2, 2, 1), -1.0)).values.mean()
    assert worth[4] > worth[0] + 0.1


def test_plans_of_the_iteration_before_are_replaced_but_those_of_the_actor_stay():
    model: Any = ExactModel(samples=6, actor_samples=2, elites=2, iterations=2)
    drawn = split_draws(normals_of(model, 4), model.design, 2, 1)
    good = torch.zeros_like(drawn.actor)  # the actor's own plan, undisturbed, is the best of all that are drawn here
    far = torch.full_like(drawn.samples, -5.0)
    draws = Draws(drawn.places, good, far, drawn.choice, drawn.noise)
    masks = model.masks(torch.arange(2)[:, None])
    plan = search(model, at_start(4), masks, torch.zeros(4, 2, 2, 1), draws, explore=False)
    own = model.act(at_start(4), masks, None)[0].transpose(0, 1)
    torch.testing.assert_close(plan.actions, own)
    assert (plan.values > -2.0).all()


def test_the_next_mean_is_that_of_the_elites_by_weight_and_the_elite_that_is_played_is_drawn_by_weight():
    model: Any = ExactModel(
        horizon=1, samples=40, actor_samples=0, elites=5, iterations=1, deviation=0.4, temperature=0.02
    )
    lanes = 2000
    draws = split_draws(normals_of(model, lanes), model.design, 2, 1)
    same = Draws(
        draws.places[:, :1].expand(-1, lanes),
        draws.actor[:, :, :1].expand(-1, -1, lanes, -1, -1),
        draws.samples[:, :, :, :1].expand(-1, -1, -1, lanes, -1, -1),
        draws.choice,
        draws.noise,
    )
    masks = model.masks(torch.arange(2)[:, None])
    plan = search(model, at_start(lanes), masks, torch.zeros(lanes, 2, 1, 1), same, explore=False)
    plans = (0.4 * draws.samples[0, 0, :, 0, :, 0]).clamp(-1.0, 1.0).T.double().numpy()  # [S, A]
    worth = exact_worth(START, plans[:, None], 0.9)
    order = np.argsort(-worth)[:5]
    shares = np.exp((worth[order] - worth[order[0]]) / 0.02)
    shares /= shares.sum()
    assert shares[:2].max() < 0.9  # a draw, and not always the best
    counts = [(np.abs(plan.actions[..., 0].numpy() - plans[k]).max(1) < 1e-5).mean() for k in order]
    np.testing.assert_allclose(counts, shares, atol=0.04)
    np.testing.assert_allclose(plan.values, worth.max(), rtol=1e-4)
    assert not plan.following.any()  # of one decision nothing is to come


def test_exploration_adds_noise_of_the_last_deviation_within_the_range():
    model: Any = ExactModel(**MANY)
    latents, before = at_start(64), torch.zeros(64, 2, 2, 1)
    still, noisy = (searched(model, latents, before, explore=explore) for explore in (False, True))
    torch.testing.assert_close(still.following, noisy.following, rtol=0, atol=0)
    draws = split_draws(normals_of(model, 64), model.design, 2, 1)
    without = draws._replace(noise=torch.zeros_like(draws.noise))
    silent = search(model, latents, model.masks(torch.arange(2)[:, None]), before, without, explore=True)
    torch.testing.assert_close(still.actions, silent.actions, rtol=0, atol=0)
    missed = (noisy.actions - still.actions)[still.actions.abs() < 0.8]
    assert LEAST_DEVIATION * 0.7 < missed.std() < LEAST_DEVIATION * 4.0
    wide: Any = ExactModel(horizon=1, samples=16, actor_samples=0, elites=16, iterations=1, temperature=1e3)
    noisy = searched(wide, at_start(256), torch.zeros(256, 2, 1, 1), explore=True)
    assert noisy.actions.abs().max() == 1.0


def test_plans_are_drawn_around_what_was_planned_before():
    model: Any = ExactModel(horizon=2, samples=8, actor_samples=0, elites=8, iterations=1, deviation=LEAST_DEVIATION)
    before = torch.tensor([[0.5, -0.5], [0.25, 0.0]]).expand(16, 2, 2)[..., None]  # [n, A, H, M]
    plan = searched(model, at_start(16), before)
    np.testing.assert_allclose(plan.actions[..., 0], np.broadcast_to([0.5, 0.25], (16, 2)), atol=0.25)
    following = plan.following.numpy()
    np.testing.assert_allclose(following[:, :, 0], np.broadcast_to([-0.5, 0.0], (16, 2)), atol=0.1)
    assert not following[:, :, 1].any()


# -- who needs to know what --------------------------------------------------------------------------------------------

AGENTS = {
    "decentralised": ({"mode": "decentralised"}, True),
    "decentralised actors": ({"mode": "decentralised", "plan": False}, True),
    "actors of own latents": ({"mode": "seq", "actor_sees": "own", "plan": False}, True),
    "seq": ({"mode": "seq"}, False),
    "seq actors": ({"mode": "seq", "plan": False}, False),
    "centralised": ({"mode": "centralised"}, False),
    "centralised actors": ({"mode": "centralised", "plan": False}, False),
}


@pytest.mark.parametrize(("changes", "alone"), AGENTS.values(), ids=AGENTS)
def test_the_second_agent_acts_without_the_observation_of_the_first_where_it_is_decentralised(
    changes: dict[str, Any], alone: bool
):
    model, lanes, rng = random_model(make_roster(), **changes), 5, torch.Generator().manual_seed(1)
    model.value_range.fill_(10.0)  # all elites have weight
    before, other_before = torch.zeros(lanes, 2, 2), torch.zeros(lanes, 2, 2)
    same = []
    for decision in range(4):
        seen, other, normals = torch.randn(lanes, 2, 3, generator=rng), None, normals_of(model, lanes, decision)
        other = seen.clone()
        other[:, 0] = torch.randn(lanes, 3, generator=rng)
        plan = decide(model, {"walker": seen}, before, normals, explore=True)
        changed = decide(model, {"walker": other}, other_before, normals, explore=True)
        assert not torch.equal(plan.actions[:, 0], changed.actions[:, 0])
        same.append(
            torch.equal(plan.actions[:, 1], changed.actions[:, 1])
            and torch.equal(plan.following[:, 1], changed.following[:, 1])
        )
        before, other_before = plan.following, changed.following
    assert all(same) == alone


@pytest.mark.parametrize("mode", ["random", "centralised", "decentralised"])
def test_agents_that_change_places_with_their_weights_and_draws_change_plans(mode: Any):
    model, swapped = random_model(make_roster(), mode=mode), random_model(make_roster(), seed=1, mode=mode)
    weights = {name: value.flip(0) for name, value in model.state_dict().items() if "critics.rest" not in name}
    weights["value_range"] = model.value_range
    for name, value in model.critics.rest.state_dict().items():  # of both critics, of the team or of each agent
        weights[f"critics.rest.{name}"] = value.unflatten(0, (2, -1)).flip(1).flatten(0, 1)
    swapped.load_state_dict(weights)
    draws = split_draws(normals_of(model, 6), model.design, 2, 1)
    draws = draws._replace(choice=draws.choice[:, :1].expand(-1, 2))
    mirrored = Draws(
        draws.places.flip(0), draws.actor.flip(1), draws.samples.flip(2), draws.choice, draws.noise.flip(0)
    )
    places = draws.places.argsort(0).argsort(0)
    assert mode != "random" or 0 < places[0].sum() < 6  # in some lanes the first is first
    seen, before = torch.randn(6, 2, 3), torch.rand(6, 2, 2, 1)
    plans = []
    for one, drawn, order, look, start in (
        (model, draws, places, seen, before),
        (swapped, mirrored, places.flip(0), seen.flip(1), before.flip(1)),
    ):
        latents = one.encode(one.read({"walker": look}))
        plans.append(search(one, latents, one.masks(order), start, drawn, explore=True))
    for first, second in zip(*plans, strict=True):
        assert torch.equal(first, second.flip(1))
        assert mode != "decentralised" or not torch.equal(first[:, 0], first[:, 1])


def test_each_decision_draws_an_order_of_its_own_where_it_is_random():
    model = random_model(make_roster(3), mode="random", plan=False)
    asked = []
    masks_of = model.masks
    model.masks = lambda places: asked.append(places) or masks_of(places)  # type: ignore[method-assign]
    decide(model, {"walker": torch.zeros(400, 3, 3)}, torch.zeros(400, 3, 2), normals_of(model, 400), explore=False)
    orders, counts = np.unique(asked[0].numpy(), axis=1, return_counts=True)
    assert orders.shape[1] == 6
    assert counts.min() > 30
    assert (np.sort(orders, axis=0) == np.arange(3)[:, None]).all()


def test_numbers_that_an_agent_does_not_have_are_not_planned():
    model = random_model(Roster(aim.game(), numbers=True))
    seen = {"archer": torch.rand(4, 1, 2), "gunner": torch.rand(4, 1, 1)}
    plan = decide(model, seen, torch.zeros(4, 2, 4), normals_of(model, 4), explore=True)
    assert not plan.actions[:, 1, 1].any()
    assert plan.actions[:, 0].all()
    following = plan.following.unflatten(-1, (2, 2))
    assert not following[:, 1, :, 1].any()
    assert following[:, 0, 0].all()


# -- the player --------------------------------------------------------------------------------------------------------


def copying(seed: int = 0, **changes: Any) -> PlanningPlayer:
    """A player of Copy by random weights."""
    model = random_model(Roster(copy_game.game(), ["team"], numbers=True), seed, **changes)
    return make_player(model.arrays(), model.design, copy_game.game(), "team")


def played(player: PlanningPlayer, lanes: int, first_seed: int = 100, decisions: int = 3) -> np.ndarray:
    """Actions ``[decisions, lanes, 2, 1]`` of matches that see the same whatever is played beside them."""
    memory, seeds = np.zeros((lanes, player.memory_size)), np.arange(first_seed, first_seed + lanes, dtype=np.uint64)
    found = []
    for t in range(decisions):
        seen = np.zeros((lanes, 2, 1), np.float32)
        seen[:, 0, 0] = np.sin(np.arange(lanes) + t)
        found.append(player.act(seen, None, None, None, seeds, memory))
    return np.stack(found)


@pytest.mark.parametrize("plan", [True, False])
def test_a_match_is_played_alike_to_the_bit_alone_and_beside_others(plan: bool):
    player = copying(plan=plan)
    alone = played(player, 1)
    for lanes in (5, CHUNK, 21, 2 * CHUNK + 1):
        beside = played(player, lanes)
        np.testing.assert_array_equal(beside[:, :1], alone)
    shifted = played(player, 4, 99)  # the same match in another row sees something else: compare rows of one seed
    assert not np.array_equal(shifted[:, 1:2], alone)
    seen, seeds = np.full((21, 2, 1), 0.3, np.float32), np.full(21, 7, np.uint64)
    rows = player.act(seen, None, None, None, seeds, np.zeros((21, player.memory_size)))
    np.testing.assert_array_equal(rows, np.broadcast_to(rows[:1], rows.shape))


@pytest.mark.check
def test_results_of_matches_do_not_depend_on_how_many_are_played_at_once():
    player = copying(horizon=1)
    tables = [
        evaluate("tests/Copy-v0", player, matches=matches, seed=5, num_envs=lanes).results["return_a"]
        for matches, lanes in ((1, 1), (21, 5), (21, 21))
    ]
    np.testing.assert_array_equal(tables[1], tables[2])
    assert tables[0][0] == tables[1][0]
    assert len(set(tables[1])) > 15


def test_actions_of_a_planner_repeat_to_the_bit_and_come_from_seed_and_number_of_the_decision():
    player = copying()
    np.testing.assert_array_equal(played(player, 3), played(copying(), 3))
    seen, memory = np.full((2, 2, 1), 0.3, np.float32), np.zeros((2, player.memory_size))
    seeds = np.array([1, 2], np.uint64)
    first = player.act(seen, None, None, None, seeds, memory)
    assert not np.array_equal(first[0], first[1])
    assert memory[:, 0].tolist() == [1, 1]
    later = np.zeros((2, player.memory_size))
    later[:, 0] = 1.0
    assert not np.array_equal(player.act(seen, None, None, None, seeds, later), first)


def test_memory_of_zero_is_the_start_of_a_match_and_what_is_remembered_is_the_mean_of_the_plan_to_come():
    player, seen = copying(), np.full((1, 2, 1), 0.3, np.float32)
    memory, seeds = np.zeros((1, player.memory_size)), np.array([4], np.uint64)
    first = player.act(seen, None, None, None, seeds, memory)
    planned = memory[:, 1:].reshape(1, 2, 2)  # [n, A, H]
    assert planned[..., 0].all()
    assert not planned[..., 1].any()
    kept = memory.copy()
    kept[:, 0] = 0.0
    assert not np.array_equal(player.act(seen, None, None, None, seeds, kept), first)  # it begins with the plan
    fresh = player.act(seen, None, None, None, seeds, np.zeros_like(memory))
    np.testing.assert_array_equal(fresh, first)


def test_the_player_tells_what_it_expects_to_earn():
    planner, actor = copying(), copying(plan=False)
    for player in (planner, actor):
        played(player, 20, decisions=1)
        assert player.policy_outputs["value"].shape == (20, 2)
        assert len(np.unique(player.policy_outputs["value"][:, 0])) == 20


def test_without_a_plan_the_actor_plays_its_mean():
    player = copying(plan=False)
    seen = torch.linspace(-1.0, 1.0, 2 * CHUNK)[:, None, None].expand(-1, 2, 1).contiguous()
    memory = np.zeros((len(seen), player.memory_size))
    found = player.act(seen.numpy(), None, None, None, np.arange(len(seen), dtype=np.uint64), memory)
    model = player.model
    expected, _ = model.act(model.encode(model.read({"copier": seen})), model.masks(torch.arange(2)[:, None]), None)
    np.testing.assert_allclose(found, expected.transpose(0, 1).detach(), rtol=1e-5, atol=1e-6)
    assert not memory[:, 1:].any()


def test_several_roles_are_played_by_role_in_their_own_ranges():
    game = aim.game()
    model = random_model(Roster(game, ["team"], numbers=True))
    player = make_player(model.arrays(), model.design, game, "team")
    seen = {"archer": np.random.default_rng(0).random((3, 1, 2), np.float32), "gunner": np.zeros((3, 1, 1), np.float32)}
    found = player.act(seen, None, None, None, np.arange(3, dtype=np.uint64), np.zeros((3, player.memory_size)))
    assert {name: rows.shape for name, rows in found.items()} == {"archer": (3, 1, 2), "gunner": (3, 1, 1)}
    assert (np.abs(found["archer"] - [2.0, -8.0]) <= 2.0).all()
    assert (np.abs(found["gunner"] - 20.5) <= 0.5).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: (model.arrays(), make_design(models=24)), "the weights do not fit"),
        (lambda model: (model.arrays(), make_design(mode="decentralised")), "the weights do not fit"),
        (lambda model: (model.arrays(), make_design(latent=12)), "--latent must be a multiple of 8"),
        (lambda model: (model.arrays(), make_design(samples=40_000)), "draws more than 65536 numbers"),
    ],
)
def test_weights_of_another_design_and_planners_without_bounds_are_refused(
    change: Callable[[WorldModel], Any], message: str
):
    model = random_model(Roster(copy_game.game(), ["team"], numbers=True))
    arrays, design = change(model)
    with pytest.raises(ValueError, match=message):
        make_player(arrays, design, copy_game.game(), "team")


# -- policy files ------------------------------------------------------------------------------------------------------


def saved(path: Path, design: Any) -> Path:
    """A policy file of random weights of the small design, that says to be of another."""
    model = random_model(Roster(copy_game.game(), ["team"], numbers=True))
    save_policy(path, model.arrays(), method="seqwm", env_id="tests/Copy-v0", args={}, design=design)
    return path


OF_DESIGN = "of the policy's design is"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "decentralised"}, "the weights do not fit"),
        ({"horizon": -1}, f"horizon {OF_DESIGN} -1 "),
        ({"horizon": 1.5}, f"horizon {OF_DESIGN} 1.5 "),
        ({"horizon": True}, f"horizon {OF_DESIGN} True "),
        ({"horizon": [1]}, rf"horizon {OF_DESIGN} \[1\] "),
        ({"latent": 16.0}, f"latent {OF_DESIGN} 16.0 "),
        ({"latent": 12}, "--latent must be a multiple of 8, got 12"),
        ({"iterations": 1000.0}, f"iterations {OF_DESIGN} 1000.0 "),
        ({"iterations": 1 << 20}, f"iterations {OF_DESIGN} 1048576 "),
        ({"hidden": 5}, f"hidden {OF_DESIGN} 5 "),
        ({"hidden": ["a"]}, rf"hidden {OF_DESIGN} \['a'\] "),
        ({"hidden": []}, rf"hidden {OF_DESIGN} \[\] "),
        ({"hidden": [0]}, rf"hidden {OF_DESIGN} \[0\] "),
        ({"encoder": [16.5]}, rf"encoder {OF_DESIGN} \[16.5\] "),
        ({"temperature": "a"}, f"temperature {OF_DESIGN} 'a' "),
        ({"temperature": 0.0}, f"temperature {OF_DESIGN} 0.0 "),
        ({"temperature": True}, f"temperature {OF_DESIGN} True "),
        ({"deviation": float("nan")}, f"deviation {OF_DESIGN} nan "),
        ({"deviation": float("inf")}, f"deviation {OF_DESIGN} inf "),
        ({"gamma": None}, f"gamma {OF_DESIGN} None "),
        ({"gamma": -0.1}, f"gamma {OF_DESIGN} -0.1 "),
        ({"gamma": 1.5}, f"gamma {OF_DESIGN} 1.5 "),
        ({"temperature": 1e-300}, f"temperature {OF_DESIGN} 1e-300 "),
        ({"largest": 1e30}, rf"largest {OF_DESIGN} 1e\+30 "),
        ({"mode": "foo"}, f"mode {OF_DESIGN} 'foo' "),
        ({"mode": 3}, f"mode {OF_DESIGN} 3 "),
        ({"mode": ["seq"]}, rf"mode {OF_DESIGN} \['seq'\] "),
        ({"actor_sees": "x"}, f"actor_sees {OF_DESIGN} 'x' "),
        ({"plan": "no"}, f"plan {OF_DESIGN} 'no' "),
        ({"plan": 1}, f"plan {OF_DESIGN} 1 "),
        ({"elites": 17}, "--elites 17 are more than --samples 16"),
        ({"samples": 60_000}, "its planner draws more than 65536 numbers"),
        ({"strange": 1}, "the metadata hold no design of world models"),
    ],
)
def test_files_of_designs_that_cannot_be_are_refused_in_a_line(tmp_path: Path, changes: dict[str, Any], message: str):
    path = saved(tmp_path / "policy.safetensors", {**dataclasses.asdict(make_design()), **changes})
    with pytest.raises(FileError, match=message) as error:
        load_policy(path, copy_game.game(), "team")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_has_all_fields_of_a_design_and_its_numbers_are_those_that_play(tmp_path: Path):
    design = dataclasses.asdict(make_design(gamma=0, temperature=1, horizon=3))
    player = load_policy(saved(tmp_path / "policy.safetensors", design), copy_game.game(), "team")
    assert player.model.design == make_design(gamma=0, temperature=1, horizon=3)
    for notes in ({name: x for name, x in design.items() if name != "gamma"}, list(design), "seq", None):
        path = saved(tmp_path / "other.safetensors", notes)
        with pytest.raises(FileError, match="the metadata hold no design of world models"):
            load_policy(path, copy_game.game(), "team")


@pytest.mark.parametrize("value", [[[0] * 500] * 500, "x" * 9999, "\x1b[2J"], ids=["nested", "long", "escape"])
def test_what_a_file_says_of_its_design_is_repeated_in_a_line(value: Any):
    with pytest.raises(ValueError, match=r"^temperature of the policy's design is ") as refusal:
        design_of({**json.loads(json.dumps(dataclasses.asdict(make_design()))), "temperature": value})
    assert len(str(refusal.value)) < 200
    assert str(refusal.value).isprintable()
