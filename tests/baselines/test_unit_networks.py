"""Networks that fit any number of units: what they read, what has no influence, and whom their values aim at."""

from __future__ import annotations

from dataclasses import replace
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
from palaestra.game import Game, Role, Table
from palaestra_baselines.common.agents import Roster, make_lanes
from palaestra_baselines.common.flat_networks import NEVER, FlatUtilities, flat_player
from palaestra_baselines.common.policy_file import save_policy
from palaestra_baselines.common.rollout import Collector, Replay
from palaestra_baselines.common.unit_networks import (
    NetworkPlayer,
    UnitEncoder,
    UnitLayout,
    UnitUtilities,
    load_unit_player,
    unit_player,
)

pytestmark = pytest.mark.check

BATTLE = "palaestra/Skirmish-3m-v0"
ROWS_OF = {"3m": (2, 3), "5m_vs_6m": (4, 6)}
"""Teammates and opponents of a unit, by map."""
RECURRENT: dict[str, Any] = {
    "entity": lambda roster: UnitUtilities(roster, (8, 8), recurrent=True),
    "flat": lambda roster: FlatUtilities(roster, (8, 8), recurrent=True),
}
"""Networks that remember 8 numbers for each agent, by kind."""


def roster_of(map: str = "5m_vs_6m", **keywords: Any) -> Roster:
    return Roster(registry.make_game(BATTLE, map=map, **keywords)[0], ["red"])


def utilities_of(roster: Roster, recurrent: bool = False) -> UnitUtilities:
    torch.manual_seed(1)
    return UnitUtilities(roster, (8, 12), recurrent)


def observations_of(roster: Roster, batch: int = 6, healers: tuple[int, ...] = ()) -> torch.Tensor:
    """Random observations ``[batch, A, size]``: every unit is seen, and may be aimed at by whom it concerns."""
    layout, generator = UnitLayout.of(roster), torch.Generator().manual_seed(2)
    observed = torch.rand(batch, roster.agents, roster.sizes[layout.role.name], generator=generator)
    rows = layout.split(observed)[1]
    rows[..., layout.seen] = 1.0
    for agent, teammates in enumerate(layout.teammates):
        is_teammate = torch.arange(layout.table.rows) < int(teammates)
        rows[:, agent, :, layout.target] = (is_teammate == (agent in healers)).float()
    return observed


def named_values(roster: Roster) -> int:
    return len(UnitLayout.of(roster).named)


# -- the layout --------------------------------------------------------------------------------------------------------


def test_the_layout_says_where_the_rows_begin_and_how_many_alternatives_have_names():
    layout = UnitLayout.of(roster_of())
    observed = np.zeros(5, [("own", "f4", layout.own_size), ("rows", "f4", layout.table.shape)])
    observed["rows"][:, 3, layout.target] = 7.0
    flat = torch.from_numpy(observed.view("f4").reshape(5, -1))
    own, rows = layout.split(flat)
    assert (own.shape, rows.shape) == ((5, 21), (5, 10, 16))
    assert rows[:, 3, layout.target].tolist() == [7.0] * 5
    assert (len(layout.named), layout.targets, layout.teammates.tolist()) == (6, 6, [4] * 5)


def test_fields_may_stand_in_any_order():
    game = roster_of().game
    role = game.roles[0]
    *own, table = role.observation
    assert isinstance(table, Table)
    turned = replace(table, columns=tuple(reversed(table.columns)))
    layout = UnitLayout.of(Roster(with_role(game, replace(role, observation=(own[0], turned, *own[1:]))), ["red"]))
    observed = torch.arange(float(sum(f.size for f in role.observation)))
    mine, rows = layout.split(observed)
    assert mine.tolist() == [0.0, *range(161, 181)]
    assert rows[0].tolist() == list(range(1, 17))
    assert (rows[1, layout.target].item(), rows[1, layout.seen].item()) == (17.0, 32.0)


def with_role(game: Game, role: Role) -> Game:
    return replace(game, roles=(role, *game.roles[1:]))


def test_games_without_rows_of_units_are_refused_by_what_they_lack():
    with pytest.raises(ValueError, match="observes 0 tables of units"):
        UnitLayout.of(Roster(registry.make_game("palaestra/TeamPong-v0")[0], ["red"]))
    game = roster_of().game
    role = game.roles[0]
    *own, table = role.observation
    assert isinstance(table, Table)
    lacking = replace(table, columns=table.columns[:-1])
    with pytest.raises(ValueError, match="'units' have no column 'can_be_target'"):
        UnitLayout.of(Roster(with_role(game, replace(role, observation=(*own, lacking))), ["red"]))
    fewer = replace(table, rows=table.rows - 1)
    with pytest.raises(ValueError, match="has 9 rows, not one for each other unit"):
        UnitLayout.of(Roster(with_role(game, replace(role, observation=(*own, fewer))), ["red"]))
    nameless = replace(role.action[0], meanings=())  # type: ignore[type-var]
    with pytest.raises(ValueError, match="no alternative for each opponent"):
        UnitLayout.of(Roster(with_role(game, replace(role, action=(nameless,))), ["red"]))


# -- what has an influence ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("map", ["5m_vs_6m", "3s5z_vs_3s6z"])
def test_exchanged_units_exchange_their_values_and_change_no_others(map: str):
    roster = roster_of(map)
    utilities, observed, layout = utilities_of(roster), observations_of(roster), UnitLayout.of(roster)
    teammates, named = int(layout.teammates[0]), named_values(roster)
    order = np.arange(layout.table.rows)
    order[:2], order[teammates : teammates + 3] = [1, 0], teammates + np.array([2, 0, 1])
    other = observed.clone()
    layout.split(other)[1][:] = layout.split(observed)[1][..., order, :]
    values, changed = utilities({"red": observed}), utilities({"red": other})
    torch.testing.assert_close(changed[..., :named], values[..., :named])
    torch.testing.assert_close(changed[..., named : named + 3], values[..., named + np.array([2, 0, 1])])
    torch.testing.assert_close(changed[..., named + 3 :], values[..., named + 3 :])
    assert (values[..., named] - values[..., named + 1]).abs().min() > 1e-5


def test_exchanged_agents_exchange_their_values():
    roster = roster_of()
    utilities, observed = utilities_of(roster), observations_of(roster)
    order = [4, 2, 0, 1, 3]
    torch.testing.assert_close(utilities({"red": observed[:, order]}), utilities({"red": observed})[:, order])


def test_teammates_and_opponents_have_weights_of_their_own():
    roster = roster_of()
    utilities, observed, layout = utilities_of(roster), observations_of(roster), UnitLayout.of(roster)
    rows = layout.split(observed)[1]
    rows[..., layout.target] = 0.0
    before = utilities({"red": observed})
    first, last = rows[..., 0, :].clone(), rows[..., -1, :].clone()
    rows[..., 0, :], rows[..., -1, :] = last, first
    assert (utilities({"red": observed})[..., : named_values(roster)] - before[..., :6]).abs().max() > 1e-3


@pytest.mark.parametrize("heals", [False, True])
def test_rows_that_are_not_seen_have_no_influence(heals: bool):
    roster = roster_of("MMM2" if heals else "5m_vs_6m")
    utilities, layout = utilities_of(roster), UnitLayout.of(roster)
    observed = observations_of(roster, healers=(3,) if heals else ())
    teammates, named = int(layout.teammates[0]), named_values(roster)
    rows = layout.split(observed)[1]
    hidden = [1, teammates + 1]
    rows[..., hidden, :] = 0.0
    values = utilities({"red": observed})
    rows[..., hidden, :] = 50.0
    rows[..., hidden, layout.seen] = 0.0
    noisy = utilities({"red": observed})
    is_known = torch.ones(values.shape[-1], dtype=torch.bool)
    is_known[[named + 1, named + 2]] = False  # values of what cannot be a target may be anything
    torch.testing.assert_close(noisy[..., is_known], values[..., is_known])
    observed[:, 0] = 50.0  # an agent is observed by nobody's network but its own
    torch.testing.assert_close(utilities({"red": observed})[:, 1:], noisy[:, 1:])


def test_only_rows_of_units_that_are_seen_are_encoded():
    roster = roster_of("5m_vs_6m")
    utilities, observed, layout = utilities_of(roster), observations_of(roster, 2), UnitLayout.of(roster)
    layout.split(observed)[1][0, ..., [1, 4 + 1], layout.seen] = 0.0  # the second of each side, in the first match
    with torch.no_grad():
        teammates, opponents = utilities.encoder(observed).sides
    assert teammates.rows.tolist() == [0, 2, 3] * 5 + [0, 1, 2, 3] * 5
    assert opponents.rows.tolist() == [4, 6, 7, 8, 9] * 5 + [4, 5, 6, 7, 8, 9] * 5
    assert teammates.agents.tolist() == sorted([*range(5)] * 3 + [*range(5, 10)] * 4)


def test_what_is_seen_has_an_influence():
    roster = roster_of()
    utilities, observed, layout = utilities_of(roster), observations_of(roster), UnitLayout.of(roster)
    before = utilities({"red": observed})
    for row in (0, layout.table.rows - 1):
        changed = observed.clone()
        layout.split(changed)[1][..., row, :] *= 0.0
        assert (utilities({"red": changed})[..., :6] - before[..., :6]).abs().amax(-1).min() > 1e-5


# -- whom values aim at ------------------------------------------------------------------------------------------------


def aimed_at(roster: Roster, agent: int, row: int, healers: tuple[int, ...]) -> int:
    """The alternative beyond the named ones whose value changes most when a row of an agent does."""
    utilities, layout = utilities_of(roster), UnitLayout.of(roster)
    observed = observations_of(roster, 1, healers)
    before = utilities({layout.role.name: observed})[0, agent, len(layout.named) :]
    rows = layout.split(observed)[1]
    rows[0, agent, row, 1] += 40.0
    change = (utilities({layout.role.name: observed})[0, agent, len(layout.named) :] - before).abs()
    return int(change.argmax())


def test_the_value_of_a_target_comes_from_its_row():
    roster = roster_of()
    for target in range(6):
        assert aimed_at(roster, 2, 4 + target, ()) == target


def test_a_healer_aims_at_teammates_by_their_numbers_which_leave_itself_out():
    roster = roster_of("MMM2")
    healer = 3
    for row, teammate in ((0, 0), (2, 2), (3, 4), (8, 9)):
        assert aimed_at(roster, healer, row, (healer,)) == teammate
    assert aimed_at(roster, 0, 9 + 2, (healer,)) == 2  # others aim at opponents at the same time
    values = utilities_of(roster)({"red": observations_of(roster, 1, (healer,))})[0, healer]
    assert [int(k) for k in torch.nonzero(values == NEVER)] == [6 + healer, *range(6 + 10, len(values))]


def test_in_a_duel_of_unlike_teams_each_aims_at_its_own_opponents():
    game = registry.make_game("palaestra/SkirmishDuel-v0", map="5m_vs_6m")[0]
    roster = Roster(game)
    layout = UnitLayout.of(roster)
    assert layout.teammates.tolist() == [4] * 5 + [5] * 6
    assert aimed_at(roster, 0, 4, ()) == 0
    assert aimed_at(roster, 10, 5, ()) == 0
    one_side = UnitUtilities(Roster(game, ["blue"]), (8, 12))
    both = utilities_of(roster)
    one_side.load_state_dict(both.state_dict())
    observed = observations_of(roster)
    torch.testing.assert_close(one_side({"unit": observed[:, 5:]}), both({"unit": observed})[:, 5:])


@pytest.mark.parametrize(("map", "team"), [("MMM", "red"), ("5m_vs_6m", "blue")])
def test_values_in_a_match_are_those_of_its_legal_orders(map: str, team: str):
    other = {"red": "blue", "blue": "red"}[team]
    batch = registry.make_batch("palaestra/SkirmishDuel-v0", 1, opponents={other: "nearest"}, compiled=False, map=map)
    roster = Roster(batch.game, [team])
    layout, networks = UnitLayout.of(roster), utilities_of(roster)
    collector, found = Collector(batch, roster, Replay(100, 1), 0), 0
    for _ in range(24):
        observed = {name: torch.from_numpy(rows.copy()) for name, rows in collector.position.observations.items()}
        legal = collector.position.legal
        aimed = networks(observed)[..., len(layout.named) :].detach().numpy() != NEVER
        assert (aimed == legal[..., len(layout.named) :]).all()
        found += int(aimed.sum())
        collector.play((legal * collector.rng.random(legal.shape)).argmax(-1))
    assert found > 10


# -- inputs and recurrence ---------------------------------------------------------------------------------------------


def test_rows_are_standardised_by_those_that_are_seen_and_agents_by_those_in_the_match():
    roster = roster_of()
    encoder, layout = UnitEncoder(UnitLayout.of(roster), (8, 8)), UnitLayout.of(roster)
    observed = np.zeros((4, 5, roster.sizes["red"]), np.float32)
    own, rows = layout.split(torch.from_numpy(observed))
    own[0, 0, 0], own[1, 1, 0] = 1.0, 0.5
    rows[0, 0, 2], rows[1, 1, 3] = 1.0, 1.0
    rows[0, 0, 2, 4], rows[2, 2, 2, 4] = 0.5, 77.0  # the last is not seen
    encoder.standardise(observed)
    assert encoder.own_mean[0].item() == pytest.approx(0.75)
    assert encoder.own_scale[0].item() == pytest.approx(4.0)
    assert encoder.row_mean[4].item() == pytest.approx(0.75)
    assert encoder.row_scale[4].item() == pytest.approx(4.0)
    assert encoder.row_scale[layout.seen].item() == pytest.approx(20.0)  # hardly ever changes: not magnified further


def test_standardised_inputs_are_what_the_layers_read():
    roster = roster_of("3m")
    plain, scaled, layout = utilities_of(roster), utilities_of(roster), UnitLayout.of(roster)
    observed = observations_of(roster)
    scaled.standardise({"red": observed.numpy()})
    own, rows = layout.split(observed.clone())
    own[:] = (own - scaled.encoder.own_mean) * scaled.encoder.own_scale
    seen = rows[..., layout.seen].clone()
    rows[:] = (rows - scaled.encoder.row_mean) * scaled.encoder.row_scale
    assert seen.min() == 1.0
    rows[..., layout.seen] = 1.0  # the mask stays one
    with torch.no_grad():
        for network in (plain, scaled):
            for side in network.encoder.sides:
                side.weight[:, layout.seen] = 0.0  # type: ignore[index, union-attr]
    joined = torch.cat([own, rows.flatten(-2)], -1)
    torch.testing.assert_close(plain({"red": joined}), scaled({"red": observed}), atol=1e-4, rtol=1e-4)


def test_a_recurrent_network_remembers_and_wants_its_state():
    roster = roster_of("3m")
    utilities, observed = utilities_of(roster, recurrent=True), {"red": observations_of(roster)}
    fresh, state = utilities.evaluate(observed, torch.zeros(6, 3, 12))
    later, _ = utilities.evaluate(observed, state)
    assert (utilities.memory_size, state.shape) == (12, (6, 3, 12))
    assert (fresh - later)[..., :6].abs().amax(-1).min() > 1e-5
    with pytest.raises(ValueError, match="wants the recurrent state"):
        utilities(observed)


# -- players -----------------------------------------------------------------------------------------------------------


def saved(tmp_path: Path, utilities: UnitUtilities, env_id: str = BATTLE) -> Path:
    path = tmp_path / "policy.safetensors"
    save_policy(path, utilities.arrays(), method="qmix", env_id=env_id, args={}, **utilities.notes())
    return path


OTHERS = [
    ("palaestra/Skirmish-5m_vs_6m-v0", {}),
    ("palaestra/Skirmish-27m_vs_30m-v0", {}),
    ("palaestra/SkirmishUnshaped-Waves-v0", {}),
    ("palaestra/SkirmishDuel-v0", {"map": "5m_vs_6m"}),
]


@pytest.mark.parametrize(("env_id", "keywords"), OTHERS)
def test_weights_of_one_battle_play_others_unchanged(env_id: str, keywords: dict[str, Any], tmp_path: Path):
    utilities = utilities_of(roster_of("3m"))
    game = registry.make_game(env_id, **keywords)[0]
    player = load_unit_player(saved(tmp_path, utilities), game, "red")
    roster = Roster(game, ["red"])
    observed = observations_of(roster)
    legal = np.zeros((6, roster.agents, roster.actions), np.int8)
    legal[..., 6:9] = 1
    chosen = player.act(observed.numpy(), legal, None, None, None, np.zeros((6, 0)))
    same = UnitUtilities(roster, (8, 12))
    same.load_state_dict(utilities.state_dict())
    assert (chosen == 6 + same({UnitLayout.of(roster).role.name: observed})[..., 6:9].argmax(-1).numpy()).all()


def test_a_recurrent_player_keeps_the_states_of_its_agents():
    roster = roster_of("3m")
    utilities = utilities_of(roster, recurrent=True)
    player = unit_player(utilities.arrays(), roster.game, "red")
    observed, memory = observations_of(roster), np.zeros((6, 36))
    legal = np.ones((6, 3, roster.actions), np.int8)
    player.act(observed.numpy(), legal, None, None, None, memory)
    _, state = utilities.evaluate({"red": observed}, torch.zeros(6, 3, 12))
    np.testing.assert_allclose(memory, state.detach().flatten(-2).numpy(), atol=1e-6)
    chosen = player.act(observed.numpy(), legal, None, None, None, memory)
    assert (chosen == utilities({"red": observed}, state).argmax(-1).numpy()).all()
    assert player.memory_size == 36


def test_a_player_takes_legal_alternatives_alone():
    sim = make_lanes(BATTLE, (), 4, {"blue": "builtin"})
    roster = Roster(sim.game, ["red"])
    player = NetworkPlayer(utilities_of(roster), roster)
    sim.reset(seed=0)
    legal = roster.read_legal(sim)
    chosen = player.act(roster.read_observations(sim)["red"], legal, None, None, None, np.zeros((4, 0)))
    assert np.take_along_axis(legal, chosen[..., None], -1).all()


def test_a_game_of_other_alternatives_is_refused_by_their_names(tmp_path: Path):
    path = saved(tmp_path, utilities_of(roster_of("3m")))
    game = registry.make_game("palaestra/SkirmishUnshaped-Abilities-v0")[0]
    with pytest.raises(FileError, match=r"other alternatives than the game \(.*lacks boost\[?.*jump_west"):
        load_unit_player(path, game, "red")
    with pytest.raises(FileError, match="observes 0 tables of units"):
        load_unit_player(path, registry.make_game("palaestra/TeamPong-v0")[0], "red")


def test_a_game_of_other_columns_is_refused_by_their_names():
    layout = UnitLayout.of(roster_of())
    labels = layout.labels
    layout.check(labels)
    with pytest.raises(ValueError, match=r"columns of 'units' .* has nothing beyond, and lacks range\[1\]"):
        layout.check({**labels, "columns": [name for name in labels["columns"] if name != "range[1]"]})
    with pytest.raises(ValueError, match=r"fields of the agent .* has 'morale\[1\]' beyond, and lacks nothing"):
        layout.check({**labels, "own": [*labels["own"], "morale[1]"]})
    with pytest.raises(ValueError, match="or in another order"):
        layout.check({**labels, "own": labels["own"][::-1]})
    for no_labels in ("module:function", [["own"]], 3, {"own": 3}, {"own": "abc"}, {**labels, "named": {"a": 1}}):
        with pytest.raises(ValueError, match="the policy has other"):
            layout.check(no_labels)


def test_files_of_other_networks_and_damaged_weights_are_refused(tmp_path: Path):
    utilities, game = utilities_of(roster_of("3m")), roster_of("3m").game
    arrays, path = utilities.arrays(), tmp_path / "other.safetensors"
    save_policy(path, arrays, method="qmix", env_id=BATTLE, args={})
    with pytest.raises(FileError, match="its metadata say nothing about units"):
        load_unit_player(path, game, "red")
    save_policy(path, {**arrays, "named.bias": np.zeros(5)}, method="qmix", env_id=BATTLE, args={}, **utilities.notes())
    with pytest.raises(
        FileError, match=r"other\.safetensors: cannot play red of Skirmish: the weights do not fit: .*named\.bias"
    ):
        load_unit_player(path, game, "red")
    with pytest.raises(ValueError, match="no matrices"):
        unit_player({}, game, "red")
    vast = np.zeros((200_000, 1), np.float32)  # a matrix between these widths would need 160 GB
    with pytest.raises(ValueError, match=r"the weights do not fit: the network would have \d+, the policy has fewer"):
        unit_player({"encoder.sides.0.weight": vast, "encoder.agent.weight": vast}, game, "red")
    with pytest.raises(ValueError, match=r"the weights do not fit: the network would have \d+, the policy has fewer"):
        flat_player({"first.weight": vast, "second.weight": vast}, game, "red")


@pytest.mark.parametrize("kind", ["entity", "flat"])
def test_a_player_remembers_what_the_networks_remember(kind: str):
    sim = make_lanes("palaestra/SkirmishUnshaped-Waves-v0", (), 4, {"blue": "builtin"})
    roster = Roster(sim.game, ["red"])
    torch.manual_seed(1)
    collector, networks = Collector(sim, roster, Replay(100, 4), 0, memory_size=8), RECURRENT[kind](roster)
    player = networks.player(sim.game, "red")
    memory = np.zeros((4, player.memory_size))
    have_come, there = 0, collector.position.alive.copy()
    for _ in range(150):
        position = collector.position
        memory[position.first] = 0.0
        seen = sim.team_view("red", "observations")
        observed = {"red": torch.from_numpy(position.observations["red"].copy())}
        with torch.no_grad():
            values, after = networks.evaluate(observed, torch.from_numpy(position.memory))
        wanted = np.where(position.legal, values.numpy(), -np.inf).argmax(2)
        actions = player.act(seen, sim.team_view("red", "legal"), None, position.first, None, memory)
        alive = position.alive.copy()
        np.testing.assert_array_equal(actions[alive], wanted[alive])
        told = player.policy_outputs["action value"]
        np.testing.assert_allclose(told[alive], np.where(position.legal, values.numpy(), np.nan)[alive], atol=1e-5)
        np.testing.assert_allclose(memory.reshape(4, -1, 8)[alive], after.numpy()[alive], atol=1e-5)
        have_come += int((alive & ~there & ~position.first[:, None]).sum())
        there = alive.copy()
        collector.play(wanted, after.numpy())
    assert have_come > 0, "no unit has come late"
