"""Central critics: which numbers they read, that units of a team may change places, and the scale of their targets."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch

from palaestra import registry
from palaestra.games.skirmish.observe import STATE
from palaestra_baselines.mappo import Critic, UnitCritic, ValueScale


def unit_critic(map: str) -> UnitCritic:
    """The same weights on any map."""
    torch.manual_seed(0)
    game, _ = registry.make_game(f"palaestra/Skirmish-{map}-v0")
    return UnitCritic(game, game.global_state_size, (8, 8))


def units(*shape: int) -> torch.Tensor:
    """Rows of living units ``[*shape, STATE]``."""
    return torch.cat([torch.ones(*shape, 1), torch.rand(*shape, STATE - 1)], -1)


def test_a_flat_critic_scales_its_inputs_and_magnifies_none_that_hardly_changes():
    critic = Critic(3, (4,))
    critic.standardise(np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 0.001]], np.float32))
    assert critic.mean.tolist() == pytest.approx([2.0, 5.0, 0.0005])
    assert critic.scale.tolist() == pytest.approx([1.0, 20.0, 20.0])
    at_mean = critic.layers[1](torch.relu(critic.layers[0].bias))  # type: ignore[arg-type]
    torch.testing.assert_close(critic(critic.mean.expand(2, 7, 3)), at_mean.expand(2, 7))


def test_units_of_a_team_may_change_places_and_those_of_two_teams_may_not():
    critic, rows = unit_critic("3m"), units(5, 6)
    value = critic(rows.flatten(1))
    torch.testing.assert_close(critic(rows[:, [2, 0, 1, 4, 5, 3]].flatten(1)), value)
    assert ((critic(rows[:, [3, 4, 5, 0, 1, 2]].flatten(1)) - value).abs() > 1e-4).all()


def test_the_weights_of_a_unit_critic_fit_battles_of_any_size():
    small, large = unit_critic("3m"), unit_critic("5m_vs_6m")
    large.load_state_dict(small.state_dict())
    assert large(units(2, 11).flatten(1)).shape == (2,)


def test_units_out_of_the_match_have_no_part_in_a_value_and_in_the_scaling():
    critic, rows = unit_critic("3m"), units(5, 6)
    rows[:, 1] = rows[:, 5] = 0.0
    critic.standardise(rows.flatten(1).numpy())
    assert (critic.mean[0].item(), critic.scale[0].item()) == (1.0, 20.0)
    assert critic(rows.flatten(1)).isfinite().all()
    larger = unit_critic("5m_vs_6m")
    larger.load_state_dict(critic.state_dict())
    with_places = torch.zeros(5, 11, STATE)
    with_places[:, [0, 3]], with_places[:, [6, 9]] = rows[:, [0, 2]], rows[:, [3, 4]]
    torch.testing.assert_close(larger(with_places.flatten(1)), critic(rows.flatten(1)))


def test_a_game_whose_state_has_no_rows_of_agents_has_no_unit_critic():
    game, _ = registry.make_game("palaestra/TeamTag-2v2-v0")
    with pytest.raises(ValueError, match=r"TeamTag: the global state of 30 numbers has no row.*--network flat"):
        UnitCritic(game, 30, (8,))


def test_targets_are_scaled_by_the_mean_and_deviation_of_those_that_count():
    scale = ValueScale(0.9)
    assert scale.mean_and_deviation() == (0.0, 1.0)
    scale.update(torch.tensor([[1.0, 5.0], [99.0, 3.0]]), torch.tensor([[1.0, 1.0], [0.0, 0.0]]))
    assert scale.mean_and_deviation() == pytest.approx((3.0, 2.0))
    assert scale.normalised(torch.tensor([3.0, 7.0])).tolist() == pytest.approx([0.0, 2.0])
    assert scale.restored(torch.tensor([0.0, 2.0])).tolist() == pytest.approx([3.0, 7.0])


def test_the_moments_of_targets_are_exponential_averages():
    scale = ValueScale(0.75)
    for value in (2.0, 10.0):
        scale.update(torch.full((3,), value), torch.ones(3))
    mean = (0.75 * 2.0 + 10.0) / 1.75
    deviation = ((0.75 * 4.0 + 100.0) / 1.75 - mean**2) ** 0.5
    assert scale.mean_and_deviation() == pytest.approx((mean, deviation))
    other = ValueScale(0.75)
    other.load_state_dict(scale.state_dict())
    assert other.mean_and_deviation() == scale.mean_and_deviation()
