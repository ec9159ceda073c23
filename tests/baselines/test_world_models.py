"""Networks of the world models of SeqWM: categories of numbers, who sees whom, actors, critics, and what they read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from games import aim
from games.point_plan import make_design, make_roster, random_model
from torch.distributions import Normal

from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.world_models import (
    GROUP,
    LEAST_RANGE,
    LOG_DEVIATION,
    SIZES,
    Design,
    TwoHot,
    WorldModel,
    make_masks,
    others_seen,
    sim_norm,
    symexp,
)

CATEGORIES = TwoHot(21, 3.0)


def decoded(values: torch.Tensor) -> torch.Tensor:
    """Values there and back."""
    return CATEGORIES.decode(CATEGORIES.encode(values).clamp(min=1e-30).log())


# -- numbers and categories --------------------------------------------------------------------------------------------


def test_numbers_come_back_from_their_categories_within_the_range_and_at_the_edges_of_bins():
    inside = torch.linspace(-19.0, 19.0, 401)
    torch.testing.assert_close(decoded(inside), inside, rtol=1e-4, atol=1e-4)
    edges = CATEGORIES.values
    torch.testing.assert_close(decoded(edges), edges, rtol=1e-4, atol=1e-5)
    assert CATEGORIES.encode(edges).argmax(-1).tolist() == list(range(21))
    assert CATEGORIES.encode(edges).amax(-1).min() > 0.999


def test_the_mean_of_what_is_rare_and_bad_is_unbiased():
    rewards = torch.tensor([1.0] * 9 + [-10.0])
    chances = CATEGORIES.encode(rewards).mean(0)
    assert CATEGORIES.decode(chances.clamp(min=1e-30).log()).item() == pytest.approx(-0.1, abs=1e-4)


def test_numbers_out_of_range_get_the_outermost_bin():
    far = symexp(torch.tensor([3.0])).item()
    torch.testing.assert_close(decoded(torch.tensor([-1e6, 1e6])), torch.tensor([-far, far]))
    assert CATEGORIES.encode(torch.tensor([-1e6, 1e6])).argmax(-1).tolist() == [0, 20]


def test_weights_are_of_two_neighbours_and_add_up_to_one():
    weights = CATEGORIES.encode(torch.linspace(-50.0, 50.0, 1001).reshape(7, 143))
    assert weights.shape == (7, 143, 21)
    assert weights.min() >= 0.0
    assert ((weights > 0.0).sum(-1) <= 2).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(7, 143))
    places = weights @ torch.arange(21.0)
    assert (places.flatten().diff() >= -1e-5).all()


def test_the_loss_is_the_cross_entropy_and_least_at_the_weights_themselves():
    values = torch.tensor([-3.0, 0.2, 7.0])
    weights, logits = CATEGORIES.encode(values), torch.randn(3, 21, generator=torch.Generator().manual_seed(0))
    expected = -(weights * logits.log_softmax(-1)).sum(-1)
    torch.testing.assert_close(CATEGORIES.loss(logits, values), expected)
    assert (CATEGORIES.loss(weights.clamp(min=1e-9).log(), values) < expected).all()


def test_symexp_is_the_inverse_of_symlog():
    values = torch.tensor([-1e3, -1.0, 0.0, 0.5, 40.0])
    torch.testing.assert_close(symexp(values.sign() * values.abs().log1p()), values)
    assert symexp(torch.tensor([1.0, -1.0])).tolist() == pytest.approx([np.e - 1.0, 1.0 - np.e])


def test_groups_of_a_latent_add_up_to_one():
    latents = sim_norm(5.0 * torch.randn(2, 3, 4 * GROUP, generator=torch.Generator().manual_seed(0)))
    torch.testing.assert_close(latents.unflatten(-1, (GROUP, 4)).sum(-2), torch.ones(2, 3, 4))
    assert latents.min() >= 0.0
    assert latents.std() > 0.1


# -- who sees whom -----------------------------------------------------------------------------------------------------

NOBODY = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]
EARLIER = [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
ALL = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("mode", "sees", "models", "actors"),
    [
        ("seq", "earlier", EARLIER, EARLIER),
        ("seq", "own", EARLIER, NOBODY),
        ("random", "earlier", EARLIER, EARLIER),
        ("random", "own", EARLIER, NOBODY),
        ("centralised", "earlier", ALL, EARLIER),
        ("centralised", "own", ALL, NOBODY),
        ("decentralised", "earlier", NOBODY, NOBODY),
        ("decentralised", "own", NOBODY, NOBODY),
    ],
)
def test_each_mode_says_whose_actions_models_and_actors_see(mode: Any, sees: Any, models: list[Any], actors: list[Any]):
    masks = make_masks(mode, sees, torch.arange(3)[:, None])
    assert masks.models[..., 0].tolist() == models
    assert masks.actors[..., 0].tolist() == actors


def test_an_order_of_its_own_for_each_row_says_who_is_earlier_there():
    places = torch.tensor([[0, 2], [1, 0], [2, 1]])  # agents 0, 1, 2; then 1, 2, 0
    masks = make_masks("random", "earlier", places)
    assert masks.models[..., 0].tolist() == EARLIER
    assert masks.models[..., 1].tolist() == [[0, 1, 1], [0, 0, 0], [0, 1, 0]]
    assert torch.equal(masks.models, masks.actors)
    assert torch.equal(masks.repeated(2).models[0, 1], torch.tensor([0.0, 0.0, 1.0, 1.0]))
    assert torch.equal(masks.tiled(2).models[0, 1], torch.tensor([0.0, 1.0, 0.0, 1.0]))


def test_actions_of_others_stand_in_the_order_of_the_roster_and_are_zero_where_they_are_not_seen():
    actions = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]])  # [A, B, M]
    seen = others_seen(actions, torch.tensor(EARLIER).float()[..., None])
    assert seen[:, 0].tolist() == [[0, 0, 0, 0], [1, 2, 0, 0], [1, 2, 3, 4]]
    everything = others_seen(actions, torch.tensor(ALL).float()[..., None])
    assert everything[:, 0].tolist() == [[3, 4, 5, 6], [1, 2, 5, 6], [1, 2, 3, 4]]
    assert others_seen(actions[:1], torch.zeros(1, 1, 1)).shape == (1, 1, 0)


@pytest.mark.parametrize("mode", ["seq", "centralised", "decentralised"])
def test_dynamics_and_reward_of_an_agent_depend_on_the_actions_that_it_sees(mode: Any):
    model = random_model(make_roster(3), mode=mode)
    masks = model.masks(torch.arange(3)[:, None])
    latents, actions = torch.rand(3, 5, 16), torch.rand(3, 5, 1)
    before = model.step(latents, actions, masks)
    for j in range(3):
        changed = actions.clone()
        changed[j] += 0.5
        for first, second in zip(before, model.step(latents, changed, masks), strict=True):
            differs = (first != second).flatten(1).any(1).tolist()
            assert differs == [i == j or bool(masks.models[i, j, 0]) for i in range(3)]


# -- actors ------------------------------------------------------------------------------------------------------------


def test_the_density_of_an_action_is_that_of_a_normal_number_under_tanh():
    model = random_model(make_roster(2, 2), mode="decentralised")
    latents, noise = torch.rand(2, 6, 16), torch.randn(2, 6, 2)
    masks = model.masks(torch.arange(2)[:, None])
    actions, logs = model.act(latents, masks, noise)
    means = model.act(latents, masks, None)[0].atanh()
    normal = (actions.atanh() - means) / noise  # the deviation
    low, high = (np.exp(x) for x in LOG_DEVIATION)
    assert normal.min() > low
    assert normal.max() < high
    expected = (Normal(means, normal).log_prob(actions.atanh()) - (1 - actions**2).log()).sum(-1)
    torch.testing.assert_close(logs, expected, rtol=1e-3, atol=1e-3)


def test_agents_act_one_after_another_in_the_order_of_the_row():
    model = random_model(make_roster(3), mode="random")
    latents, noise = torch.rand(3, 2, 16), torch.randn(3, 2, 1)
    masks = model.masks(torch.tensor([[0, 2], [1, 0], [2, 1]]))
    actions, _ = model.act(latents, masks, noise)
    for row, order in enumerate([(0, 1, 2), (1, 2, 0)]):
        done = torch.zeros(3, 1, 1)
        for agent in order:
            seen = others_seen(done, masks.actors[..., row : row + 1])
            mean, raw = model.actor(torch.cat([latents[:, row : row + 1], seen], -1)).chunk(2, -1)
            low, high = LOG_DEVIATION
            deviation = (low + 0.5 * (high - low) * (raw.tanh() + 1.0)).exp()
            done[agent] = (mean + deviation * noise[:, row : row + 1]).tanh()[agent].detach()
        torch.testing.assert_close(actions[:, row : row + 1], done)


def test_no_gradient_reaches_an_earlier_agent_through_what_a_later_one_sees():
    model = random_model(make_roster(2))
    masks, noise = model.masks(torch.arange(2)[:, None]), torch.randn(2, 4, 1)
    latents = torch.rand(2, 4, 16, requires_grad=True)
    actions, logs = model.act(latents, masks, noise)
    assert logs is not None
    (actions[1].sum() + logs[1].sum()).backward()
    for parameter in (latents, *model.actor.parameters()):
        assert parameter.grad is not None
        assert not parameter.grad[0].any()
        assert parameter.grad[1].any()
    other = latents.detach().clone()
    other[0] = torch.rand(4, 16)
    assert not torch.equal(model.act(other, masks, noise)[0][1], actions[1])  # though it does see the earlier action


def test_numbers_that_an_agent_does_not_have_are_zero_and_do_not_count():
    roster = Roster(aim.game(), numbers=True)  # two numbers of the archer, one of the gunner
    model = random_model(roster)
    assert model.counts[:, 0].tolist() == [[1, 1], [1, 0]]
    masks, latents, noise = model.masks(torch.arange(2)[:, None]), torch.rand(2, 5, 16), torch.randn(2, 5, 2)
    actions, logs = model.act(latents, masks, noise)
    other = noise.clone()
    other[1, :, 1] = 3.0
    again, same = model.act(latents, masks, other)
    assert not actions[1, :, 1].any()
    assert actions[0].all()
    assert not model.act(latents, masks, None)[0][1, :, 1].any()
    torch.testing.assert_close(actions, again, rtol=0, atol=0)
    torch.testing.assert_close(logs, same, rtol=0, atol=0)


# -- critics and inputs ------------------------------------------------------------------------------------------------


def test_a_decentralised_critic_values_own_latent_and_action_alone_and_a_team_has_one_value():
    latents, actions = torch.rand(3, 5, 16), torch.rand(3, 5, 1)
    for mode, groups in (("seq", 1), ("random", 1), ("centralised", 1), ("decentralised", 3)):
        model = random_model(make_roster(3), mode=mode)
        found = model.values(latents, actions)
        assert found.shape == (2, groups, 5)
        assert not torch.equal(found[0], found[1])
        other = latents.clone()
        other[0] += 1.0
        differs = (model.values(other, actions) != found).flatten(2).any(2)
        assert differs.tolist() == [[True] + [False] * (groups - 1)] * 2


def test_rewards_and_values_of_a_new_model_are_zero():
    model = WorldModel(make_roster(), make_design())
    latents, actions = torch.rand(2, 3, 16), torch.rand(2, 3, 1)
    _, rewards = model.step(latents, actions, model.masks(torch.arange(2)[:, None]))
    torch.testing.assert_close(model.two_hot.decode(rewards), torch.zeros(2, 3), atol=1e-5, rtol=0)
    torch.testing.assert_close(model.values(latents, actions), torch.zeros(2, 1, 3), atol=1e-5, rtol=0)


def test_roles_are_read_agent_first_and_filled_up_and_scaled_by_what_was_observed():
    model = WorldModel(Roster(aim.game(), numbers=True), make_design())
    rng = np.random.default_rng(0)
    seen = {"archer": rng.normal(3.0, 2.0, (500, 1, 2)), "gunner": rng.normal(-1.0, 0.1, (500, 1, 1))}
    tensors = {name: torch.from_numpy(rows).float() for name, rows in seen.items()}
    read = model.read(tensors)
    assert read.shape == (2, 500, 2)
    torch.testing.assert_close(read[0], tensors["archer"][:, 0])
    assert not read[1, :, 1].any()
    stacked = model.read({name: rows.reshape(5, 100, 1, -1) for name, rows in tensors.items()})
    assert torch.equal(stacked, read)
    model.standardise(seen)
    scaled = (read - model.mean) * model.scale
    torch.testing.assert_close(scaled.mean(1), torch.zeros(2, 2), atol=1e-4, rtol=0)
    torch.testing.assert_close(scaled.std(1, correction=0), torch.tensor([[1.0, 1.0], [1.0, 0.0]]))


def test_the_range_of_values_moves_by_a_share_towards_five_to_ninety_five_percent():
    model = WorldModel(make_roster(), make_design())
    assert model.value_range.item() == pytest.approx(LEAST_RANGE)
    model.track_range(torch.linspace(-10.0, 10.0, 2001), 0.25)
    assert model.value_range.item() == pytest.approx(0.75 * LEAST_RANGE + 0.25 * 18.0, rel=1e-5)
    for _ in range(60):
        model.track_range(torch.ones(1, 9), 0.25)
    assert model.value_range.item() == pytest.approx(LEAST_RANGE)
    model.track_range(torch.ones(1, 0), 0.25)  # of a batch without a decision
    assert model.value_range.item() == pytest.approx(LEAST_RANGE)


def test_the_published_size_has_the_published_numbers_and_about_five_and_a_half_million_weights():
    numbers = SIZES["published"]
    fields = {name: numbers[name] for name in numbers if name in Design.__dataclass_fields__}
    assert fields == {
        **{"latent": 512, "encoder": (512,), "models": 1024, "hidden": (256, 256), "bins": 101, "largest": 10.0},
        **{"horizon": 1, "samples": 512, "actor_samples": 32, "elites": 64, "iterations": 6, "deviation": 2.0},
    }
    with torch.device("meta"):
        model = WorldModel(make_roster(2, 26, 229), make_design(**fields))
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(5.5e6, rel=0.02)
    assert numbers["batch_size"] == 1000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latent": 12}, "--latent must be a multiple of 8, got 12"),
        ({"bins": 1}, "--bins must be at least 2, got 1"),
        ({"actor_samples": 17}, "--actor-samples 17 are more than --samples 16"),
        ({"elites": 17}, "--elites 17 are more than --samples 16"),
    ],
)
def test_designs_that_cannot_be_are_refused_by_the_options(changes: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=f"^{message}$"):
        make_design(**changes).check()
