"""Red learns to fight: what a batch of decisions says of the dead and of time limits, and that VDN learns to win."""

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

import palaestra
from learning.skirmish_figures import GROUPS, STUDIES, Entry, final_row
from palaestra.core.compile.batch_loop import RUNNING
from palaestra.games.skirmish.orders import NOTHING, STOP
from palaestra_baselines import vdn
from palaestra_baselines.common.agents import Roster, make_lanes
from palaestra_baselines.common.flat_networks import Utilities
from palaestra_baselines.common.rollout import Batch, Collector, Position, Replay, epsilon_greedy

pytestmark = pytest.mark.check

BATTLE = "test/Skirmish-3m-v0"
palaestra.register(BATTLE, "palaestra.games.skirmish.games:battle", family="test", map="3m")
TEAM_OF = torch.zeros(3, dtype=torch.int64)


def collector_of(blue: str) -> Collector:
    """Eight matches of three marines against three, red's decisions being recorded."""
    sim = make_lanes(BATTLE, (), 8, {"blue": blue})
    return Collector(sim, Roster(sim.game, ["red"]), Replay(200, 8), 0)


def random_batch() -> Batch:
    """Random decisions of red against a script that kills all of it again and again."""
    collector = collector_of("builtin")
    for _ in range(150):
        collector.play(epsilon_greedy(collector.rng, collector.position.legal, None, 1.0))
    store: Any = collector.store
    return store.sample(np.random.default_rng(0), 256)


@pytest.fixture(scope="module")
def batch() -> Batch:
    return random_batch()


@pytest.fixture(scope="module")
def networks() -> tuple[Utilities, Utilities]:
    """An online network and another one in the place of its target."""
    roster = Roster(palaestra.make_batch(BATTLE, 1).game, ["red"])
    torch.manual_seed(0)
    return Utilities(roster, (16,)), Utilities(roster, (16,))


def with_other_dead(position: Position) -> Position:
    """The same position, but everything about dead units is noise."""
    observed = position.observations["red"].clone()
    dead = ~position.alive
    observed[dead] = torch.randn(int(dead.sum()), observed.shape[-1])
    return replace(position, observations={"red": observed})


def test_all_units_of_red_share_one_network_and_differ_in_its_first_bias(networks: tuple[Utilities, Utilities]):
    online, _ = networks
    (network,) = online.networks.children()
    assert network.place_bias.shape == (3, 16)
    assert {name.partition(".")[0] for name in online.arrays()} == {"red_red"}


def test_what_is_said_of_dead_units_does_not_change_the_loss(batch: Batch, networks: tuple[Utilities, Utilities]):
    assert 0.1 < batch.before.alive.float().mean() < 0.9
    assert (batch.before.alive & ~batch.after.alive).any()
    loss = vdn.td_loss(*networks, batch, TEAM_OF, 0.9)
    other = replace(batch, before=with_other_dead(batch.before), after=with_other_dead(batch.after))
    assert vdn.td_loss(*networks, other, TEAM_OF, 0.9) == loss


def test_targets_value_legal_orders_alone(batch: Batch, networks: tuple[Utilities, Utilities]):
    online, target = networks
    with torch.no_grad():
        wanted = torch.zeros(len(batch.actions))
        values, choice = target(batch.after.observations), online(batch.after.observations)
        for row, agent in np.argwhere(batch.after.alive.numpy()):
            legal = np.flatnonzero(batch.after.legal[row, agent].numpy())
            best = max(legal, key=lambda order, r=row, a=agent: float(choice[r, a, order]))
            wanted[row] += values[row, agent, best]
        totals = (online(batch.before.observations).gather(-1, batch.actions[..., None])[..., 0]) * batch.before.alive
        errors = (batch.rewards[:, 0] + 0.9 * batch.continues * wanted - totals.sum(1)) ** 2
        loss = vdn.td_loss(online, target, batch, TEAM_OF, 0.9)
    torch.testing.assert_close(loss, (errors * batch.weights).sum() / batch.weights.sum())


@pytest.mark.parametrize(("blue", "continues"), [("hold", 1.0), ("builtin", 0.0)])
def test_the_last_position_of_a_match_counts_at_the_time_limit_and_not_after_a_defeat(blue: str, continues: float):
    collector = collector_of(blue)
    store: Any = collector.store
    while collector.sim.states["pending"][0] == RUNNING:
        collector.play(np.where(collector.position.alive, STOP, NOTHING))
    assert store.last(1).continues[0, 0] == continues


@pytest.mark.learning
@pytest.mark.parametrize(
    "entry", [e for e in GROUPS["solved"] if e.method == "vdn" and e.bar is not None], ids=lambda entry: entry.place
)
def test_vdn_wins_nine_of_ten_matches_within_three_minutes(entry: Entry, tmp_path: Path):
    run = STUDIES["skirmish_solved"].run_of(entry, 0, tmp_path, quiet=True)
    report = vdn.train(run)
    assert (entry.bar, entry.minutes) == (0.9, 3.0)
    assert report.cpu_s <= 180.0
    assert final_row(entry.place, "vdn", run, report.log)["won"] >= 0.9
