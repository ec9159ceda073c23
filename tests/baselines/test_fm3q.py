"""FM3Q: its mixers are monotone, and it finds a saddle point in seconds."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from learning import fm3q_tables
from palaestra import exact, registry
from palaestra_baselines import fm3q
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import UtilityPlayer
from palaestra_baselines.common.policy_file import read_policy

pytestmark = pytest.mark.check

SOCCER = "palaestra/TeamGridSoccer-3x3-v0"
MIXERS = ("monotone", "vdn", "pairwise")


def roster_of(id: str = SOCCER, **keywords: Any) -> Roster:
    return Roster(registry.make_game(id, **keywords)[0])


def mixer_of(name: str, roster: Roster, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return fm3q.make_mixer(fm3q.Args(mixer=name), roster)  # type: ignore[arg-type]


def what_is_seen(roster: Roster, count: int, seed: int) -> dict[str, torch.Tensor]:
    made = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(count, slots.stop - slots.start, roster.sizes[name], generator=made)
        for name, slots in roster.columns.items()
    }


@pytest.mark.parametrize("name", MIXERS)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**20), agent=st.integers(0, 3), rise=st.floats(0.0, 100.0))
def test_a_total_never_falls_with_an_own_utility_nor_rises_with_an_opponents(
    name: str, seed: int, agent: int, rise: float
):
    roster = roster_of()
    mixer, seen = mixer_of(name, roster, seed), what_is_seen(roster, 5, seed)
    utilities = 3.0 * torch.randn(5, roster.agents, generator=torch.Generator().manual_seed(seed))
    raised = utilities.clone()
    raised[:, agent] += rise
    change = (mixer(raised, seen) - mixer(utilities, seen)) * roster.signs[agent]
    assert (change >= -1e-4).all()


@pytest.mark.parametrize("name", MIXERS)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**20))
def test_the_minimax_of_the_total_is_the_tuple_of_the_agents_own_greedy_actions(name: str, seed: int):
    roster = roster_of()
    mixer, seen = mixer_of(name, roster, seed), what_is_seen(roster, 1, seed)
    table = torch.randn(roster.agents, roster.actions, generator=torch.Generator().manual_seed(seed))
    joint = torch.tensor(list(itertools.product(range(roster.actions), repeat=roster.agents)))
    utilities = table.gather(1, joint.T).T
    many = {role: rows.expand(len(joint), -1, -1) for role, rows in seen.items()}
    totals = mixer(utilities, many).detach().mean(1).reshape(25, 25)  # red's joint actions, blue's
    value = totals.min(1).values.max()
    greedy = table.argmax(1)
    own = totals[greedy[0] * 5 + greedy[1], greedy[2] * 5 + greedy[3]]
    assert abs(float(own - value)) < 1e-4
    assert abs(float(totals.max(0).values.min() - value)) < 1e-4  # minimax equals maximin


@settings(max_examples=25)
@given(seed=st.integers(0, 2**20))
def test_a_position_is_worth_to_one_team_what_its_mirror_image_costs_it(seed: int):
    roster = roster_of()
    mixer, seen = mixer_of("monotone", roster, seed), what_is_seen(roster, 3, seed)
    utilities = torch.randn(3, 4, generator=torch.Generator().manual_seed(seed))
    changed = [2, 3, 0, 1]
    there = mixer(utilities[:, changed], {role: rows[:, changed] for role, rows in seen.items()})
    torch.testing.assert_close(mixer(utilities, seen), -there)


def test_weights_of_the_monotone_mixer_count_without_their_sign():
    signed = torch.tensor([[1.0, 2.0]])
    w1, w2, b1, v = [-2.0, -3.0, 0.5, -1.0], [-0.5, 4.0], [0.25, 1.0], [7.0]
    total = fm3q.mix(signed, torch.tensor([w1 + w2 + b1 + v]), rows=2)
    assert total.item() == pytest.approx(0.5 * (2.0 + 6.0 + 0.25) + 4.0 * (0.5 + 2.0 + 1.0) + 7.0)
    bent = fm3q.mix(-signed, torch.tensor([w1 + w2 + b1 + v]), rows=2)
    assert bent.item() == pytest.approx(0.5 * (math.exp(-7.75) - 1.0) + 4.0 * (math.exp(-1.5) - 1.0) + 7.0)


@pytest.mark.parametrize("id", [SOCCER, "palaestra/TeamTag-2v2-v0"])
def test_the_weights_of_the_monotone_mixer_depend_on_the_observations_of_both_teams(id: str):
    roster = roster_of(id)
    mixer, seen = mixer_of("monotone", roster, 0), what_is_seen(roster, 1, 0)
    ((role, rows),) = seen.items()
    rising = torch.eye(roster.agents)

    def slopes(rows: torch.Tensor) -> torch.Tensor:
        many = {role: rows.expand(roster.agents, -1, -1)}
        return mixer(rising, many) - mixer(0 * rising, many)

    for agent in (0, 3):
        changed = rows.clone()
        changed[:, agent] += 1.0
        assert ((slopes(changed) - slopes(rows)).abs() > 1e-4).any()


def test_the_total_of_pairs_and_of_sums_is_the_difference_of_the_teams():
    utilities = torch.tensor([[1.0, 2.0, 10.0, 40.0]])
    assert mixer_of("vdn", roster_of(), 0)(utilities, {}).tolist() == [[-47.0]]
    assert mixer_of("pairwise", roster_of(), 0)(utilities, {}).tolist() == [[-9.0, -38.0]]


def test_pairs_need_teams_of_equal_size():
    with pytest.raises(ValueError, match="equal size, not 3 and 1"):
        mixer_of("pairwise", roster_of("palaestra/TeamTag-v0"), 0)


# -- learning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MIXERS)
def test_tables_find_the_saddle_point_exactly(name: str):
    saddle = fm3q_tables.TableArgs(options=("game=saddle", "rounds=1"), mixer=name)  # type: ignore[arg-type]
    tables = fm3q_tables.fit_tables(saddle)
    for team in ("red", "blue"):
        assert exact.exploitability(tables.rules, tables.policy(team), team, gamma=1.0).exploitability < 1e-9
    if name == "monotone":
        assert tables.loss < 1e-4  # it holds the whole table, the others only its greedy choices


@pytest.mark.check
def test_tables_look_ahead_by_one_decision_more_in_each_iteration():
    pitch: Any = {"env_id": "palaestra/GridSoccer-v0", "options": ("rows=3", "columns=3", "order=alternating")}
    worth = []
    for iterations in (1, 2):
        args = fm3q_tables.TableArgs(**pitch, mixer="vdn", gamma=0.9, iterations=iterations, steps=60)
        red, blue = fm3q_tables.fit_tables(args).utilities.max(2).T
        worth.append(int((abs(red - blue) > 0.5).sum()))
    assert worth == [48, 96]  # positions from which a goal is certain in one decision, and in two


def test_no_deterministic_pair_is_safe_in_pennies():
    tables = fm3q_tables.fit_tables(fm3q_tables.TableArgs(options=("game=pennies", "rounds=1")))
    lost = exact.nash_conv(tables.rules, {team: tables.policy(team) for team in ("red", "blue")}, gamma=1.0)
    assert lost.total >= 2.0 - 1e-9  # a best response to either policy wins 1, where the value is 0


@pytest.mark.check
def test_networks_find_the_saddle_point_in_seconds(tmp_path: Path):
    run = fm3q.Args(
        env_id="palaestra/TeamMatrix-v0",
        options=("game=saddle", "rounds=1"),
        total_steps=12_000,
        lanes=64,
        warmup_steps=1000,
        updates=1,
        batch_size=128,
        hidden=(32,),
        embedding=8,
        mixer_hidden=16,
        gamma=1.0,
        evaluations=1,
        directory=tmp_path,
        quiet=True,
    )
    arrays = read_policy(fm3q.train(run).weights)[0]
    game, _ = registry.make_game("palaestra/TeamMatrix-v0", game="saddle", rounds=1)
    players = {team: UtilityPlayer(arrays, game, team) for team in game.teams}
    assert exact.nash_conv(game, players, gamma=1.0).total < 1e-9


def test_tables_need_positions_that_can_be_counted():
    with pytest.raises(ValueError, match="cannot be solved exactly"):
        fm3q_tables.fit_tables(fm3q_tables.TableArgs(env_id="palaestra/TeamPong-v0"))
