"""UNMAS: the self-weighting mixer, the encoding of the state as a set of units, all networks, and several maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch

from palaestra import registry
from palaestra.core.files import FileError
from palaestra_baselines import unmas, vdn
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import NEVER, FlatUtilities, UtilityPlayer
from palaestra_baselines.common.rollout import Position
from palaestra_baselines.common.unit_networks import UnitLayout, UnitUtilities

pytestmark = pytest.mark.check

BATTLE = "palaestra/Skirmish-3m-v0"
UNIT = 14
"""Numbers of a unit in the global state."""
SMALL: dict[str, Any] = {
    "total_steps": 200,
    "lanes": 8,
    "warmup_steps": 80,
    "updates": 1,
    "batch_size": 16,
    "length": 4,
    "replay_size": 160,
    "hidden": (8, 8),
    "embedding": 4,
    "mixer_hidden": 8,
    "evaluations": 1,
    "matches": 4,
    "quiet": True,
}


def roster_of(map: str = "3m") -> Roster:
    return Roster(registry.make_game(BATTLE, map=map)[0], ["red"])


def position_of(state: torch.Tensor, alive: torch.Tensor, observed: torch.Tensor | None = None) -> Position:
    rows = torch.zeros(*alive.shape, 1) if observed is None else observed
    return Position({"red": rows}, None, alive, alive, None, state=state)


class Given(torch.nn.Module):
    """A state that is encoded already."""

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        return state


def mixer_by(w1: float, b1: float, wq: float, wk: tuple[float, float], bq: float, bk: float, v: float) -> Any:
    """A mixer of width 1 whose hypernetworks give these numbers; both encodings are their inputs."""
    mixer = unmas.SelfWeightingMixer(Given(), 1, 1, 1, role=None)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.zero_()
        mixer.hyper.bias.copy_(torch.tensor([w1, b1, wq, *wk, bq, bk, v]))
        mixer.of_agent.weight.fill_(1.0)
        mixer.of_state.weight.fill_(1.0)
    return mixer


def test_the_self_weighting_mixer_computes_its_formula():
    mixer = mixer_by(-2.0, 1.0, -3.0, (-0.5, 2.0), 0.25, 0.125, 7.0)
    alive = torch.tensor([[True, True, False]])
    features, state = torch.tensor([[[1.0], [2.0], [3.0]]]), torch.tensor([[0.75]])
    total = mixer(torch.tensor([[1.5, -4.0, 9.0]]), position_of(state, alive), features)
    weights = [np.exp((0.5 * f + 2.0 * 0.75) / 2**0.5 + 0.125) for f in (1.0, 2.0)]
    first, second = 3.0 * (2.0 * 1.5 + 1.0) + 0.25, 3.0 * (np.exp(-8.0 + 1.0) - 1.0) + 0.25
    assert total.item() == pytest.approx((weights[0] * first + weights[1] * second) / 2 + 7.0)


def test_weights_of_agents_are_cut():
    mixer = mixer_by(1.0, 0.0, 1.0, (50.0, 0.0), 0.0, 0.0, 0.0)
    total = mixer(
        torch.ones(1, 1), position_of(torch.ones(1, 1), torch.ones(1, 1, dtype=torch.bool)), torch.ones(1, 1, 1)
    )
    assert total.item() == pytest.approx(np.exp(unmas.LARGEST))


@pytest.mark.parametrize("network", ["entity", "paper", "flat"])
def test_the_total_rises_in_the_utilities_of_living_agents_alone(network: Any):
    torch.manual_seed(0)
    roster = roster_of()
    mixer = unmas.make_networks(unmas.Args(network=network), roster, 6 * UNIT).mixer
    alive = torch.rand(100, 3) < 0.6
    utilities = torch.randn(100, 3, requires_grad=True)
    observed = torch.rand(100, 3, roster.sizes["red"], requires_grad=True)
    features = torch.rand(100, 3, 64, requires_grad=True)
    position = position_of(torch.rand(100, 6 * UNIT), alive, observed)
    mixer(utilities, position, features).sum().backward()
    assert utilities.grad is not None
    assert utilities.grad[alive].min() > 0.0
    assert utilities.grad[~alive].abs().max() == 0.0
    assert features.grad is None  # the mixer does not teach the utilities what to look at
    read = observed.grad if network != "entity" else None
    if read is not None:
        assert read[alive].abs().max() > 0.0
        assert read[~alive].abs().max() == 0.0


def test_what_agents_see_decides_their_weights():
    torch.manual_seed(0)
    mixer = unmas.make_networks(unmas.Args(), roster_of(), 6 * UNIT).mixer
    position = position_of(torch.rand(1, 6 * UNIT).repeat(50, 1), torch.ones(50, 3, dtype=torch.bool))
    totals = mixer(torch.ones(50, 3), position, torch.rand(50, 3, 64))
    assert totals.std() > 1e-4


# -- the state as a set ------------------------------------------------------------------------------------------------


def state_units(map: str = "3m") -> tuple[unmas.StateUnits, Roster]:
    torch.manual_seed(0)
    roster = roster_of(map)
    return unmas.StateUnits(roster, UNIT * len(roster.game.team_index), 6, 5), roster


def test_the_state_is_a_set_of_units_of_each_side():
    encoder, _ = state_units()
    state = torch.rand(4, 6, UNIT)
    state[..., 0] = 1.0
    encoded = encoder(state.flatten(1))
    torch.testing.assert_close(encoder(state[:, [2, 0, 1, 4, 5, 3]].flatten(1)), encoded)
    assert (encoder(state[:, [3, 1, 2, 0, 4, 5]].flatten(1)) - encoded).abs().max() > 1e-3


def test_units_out_of_the_match_have_no_influence_on_the_encoding_but_the_number_of_others_has():
    encoder, _ = state_units()
    state = torch.rand(4, 6, UNIT)
    state[..., 0] = 1.0
    state[:, [1, 4], 0] = 0.0
    noisy = state.clone()
    noisy[:, [1, 4], 1:] = 50.0
    torch.testing.assert_close(encoder(noisy.flatten(1)), encoder(state.flatten(1)))
    alike = state[:, :1].repeat(1, 6, 1)
    fewer = alike.clone()
    fewer[:, 1:3] = 0.0
    assert (encoder(alike.flatten(1)) - encoder(fewer.flatten(1))).abs().max() > 1e-3


def test_the_same_weights_encode_battles_of_other_sizes():
    encoder, _ = state_units()
    larger, roster = state_units("5m_vs_6m")
    larger.load_state_dict(encoder.state_dict())
    assert encoder(torch.rand(2, 6 * UNIT)).shape == larger(torch.rand(2, 11 * UNIT)).shape
    with pytest.raises(ValueError, match="the state has 100 numbers, no row for each agent"):
        unmas.StateUnits(roster, 100, 6, 5)
    with pytest.raises(ValueError, match="the state has 0 numbers"):
        unmas.StateUnits(roster, 0, 6, 5)


def test_no_weight_of_the_network_entity_depends_on_a_number_of_units():
    shapes = [
        {name: tensor.shape for name, tensor in networks.state_dict().items()}
        for networks in (
            unmas.make_networks(unmas.Args(), roster_of(), 6 * UNIT),
            unmas.make_networks(unmas.Args(), roster_of("5m_vs_6m"), 11 * UNIT),
        )
    ]
    assert shapes[0] == shapes[1]


# -- the paper's network -----------------------------------------------------------------------------------------------


def paper_utilities(map: str) -> tuple[unmas.TwoStreamUtilities, UnitLayout]:
    torch.manual_seed(0)
    roster = roster_of(map)
    return unmas.TwoStreamUtilities(roster, (8, 8), recurrent=False), UnitLayout.of(roster)


def test_every_target_has_a_value_of_its_row_and_of_the_agents_features():
    utilities, layout = paper_utilities("5m_vs_6m")
    observed = torch.rand(1, 5, utilities.first.in_features)
    rows = layout.split(observed)[1]
    rows[..., layout.seen], rows[..., layout.target] = 1.0, (torch.arange(layout.table.rows) >= 4).float()
    with torch.no_grad():
        utilities.first.weight[:, layout.first :] = 0.0  # the features read the agent's own numbers alone
    before = utilities({"red": observed})
    for target in range(6):
        changed = observed.clone()
        layout.split(changed)[1][0, 2, 4 + target] += 1.0
        others = (utilities({"red": changed}) != before)[0, 2]
        assert torch.nonzero(others).flatten().tolist() == [6 + target]
    changed = observed.clone()
    changed[0, 2, 0] += 1.0
    assert (utilities({"red": changed})[0, 2] - before[0, 2]).abs().min() > 1e-6


def test_a_healer_of_the_papers_network_aims_at_teammates():
    utilities, layout = paper_utilities("MMM2")
    observed = torch.rand(1, 10, utilities.first.in_features)
    rows = layout.split(observed)[1]
    rows[..., layout.target], rows[..., layout.seen] = 0.0, 1.0
    rows[0, 3, 0, layout.target] = 1.0
    rows[0, 3, 5, layout.target] = 1.0
    values = utilities({"red": observed})
    assert torch.nonzero(values[0, 3] != NEVER).flatten().tolist() == [*range(6), 6 + 0, 6 + 6]
    assert torch.nonzero(values[0, 0] != NEVER).flatten().tolist() == [*range(6)]


# -- runs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "recurrent"), [("entity", True), ("paper", False), ("paper", True), ("flat", False), ("flat", True)]
)
def test_each_network_trains_and_plays_from_its_file(network: Any, recurrent: bool, tmp_path: Path):
    args = unmas.Args(**SMALL, env_id=BATTLE, network=network, recurrent=recurrent, directory=tmp_path)
    report = unmas.train(args)
    assert report.updates > 10
    player: Any = unmas.load_policy(report.weights, registry.make_game(BATTLE)[0], "red")
    kinds = {"entity": UnitUtilities, "paper": unmas.TwoStreamUtilities, "flat": FlatUtilities}
    if (network, recurrent) == ("flat", False):
        assert isinstance(player, UtilityPlayer)
    else:
        assert type(player.network) is kinds[network]
    assert player.memory_size == (24 if recurrent else 0)
    if network != "entity":
        with pytest.raises(FileError, match=r"do not fit|trained for another game"):
            unmas.load_policy(report.weights, registry.make_game(BATTLE, map="8m")[0], "red")


def test_vdn_reads_units_and_plays_a_map_that_it_has_not_seen(tmp_path: Path):
    small = {name: SMALL[name] for name in SMALL if name not in ("length", "embedding", "mixer_hidden")}
    args = vdn.Args(**small, env_id=BATTLE, team="red", opponent="builtin", network="entity", directory=tmp_path)
    report = vdn.train(args)
    player: Any = vdn.load_policy(report.weights, registry.make_game(BATTLE, map="8m")[0], "red")
    assert isinstance(player.network, UnitUtilities)


def test_one_training_on_several_maps_plays_a_map_that_it_has_not_seen(tmp_path: Path):
    maps = ('maps=["3m","5m"]',)
    args = unmas.Args(**SMALL, env_id="palaestra/SkirmishUnshaped-Maps-v0", options=maps, directory=tmp_path)
    report = unmas.train(args)
    game = registry.make_game(BATTLE, map="10m")[0]
    player: Any = unmas.load_policy(report.weights, game, "red")
    roster = Roster(game, ["red"])
    legal = np.ones((2, 10, roster.actions), np.int8)
    observed = np.zeros((2, 10, roster.sizes["red"]), np.float32)
    assert player.act(observed, legal, None, None, None, np.zeros((2, 0))).shape == (2, 10)
