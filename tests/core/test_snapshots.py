"""A match in the middle can be saved, restored, copied and pickled."""

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from games import duel, orchard, two_team, two_team_homogeneous
from games.play import all_bytes, random_actions, simulation, started

from palaestra.core.compile.identity import rules_digest
from palaestra.core.run.simulation import Simulation
from palaestra.game import Game

pytestmark = pytest.mark.jitless

RAID, MELEE = two_team.game(), two_team_homogeneous.game()


class Recurrent:
    """Does what its decaying memory says."""

    memory_size = 1

    def act(self, observations, legal, acting, first, seeds, memory):
        memory[:] = 0.9 * memory + 0.1 * observations[:, 0, :1]
        return np.broadcast_to(np.clip(memory, -1, 1)[:, :, None], (len(memory), 5, 2))


def in_the_middle(game: Game = RAID, opponent: Any = "mix", mode: Any = "next_step") -> Any:
    sim = simulation(game, 4, opponents={"blue": opponent}, parameters={"horizon": 30}, autoreset_mode=mode)
    sim.reset(seed=1)
    go_on(sim, 0, 45)
    return sim


def go_on(sim: Simulation, seed: int, steps: int = 60) -> np.ndarray:
    """Bytes after every step, under actions that depend on the seed alone."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(steps):
        sim.step(random_actions(sim, rng))
        rows.append(all_bytes(sim))
    return np.array(rows)


def through_pickle(sim: Simulation) -> Simulation:
    return pickle.loads(pickle.dumps(sim))


CASES = [(RAID, "mix", "next_step"), (RAID, "random", "same_step"), (MELEE, Recurrent(), "next_step")]


@pytest.mark.parametrize(("game", "opponent", "mode"), CASES, ids=["mix", "random", "recurrent"])
class TestAMatchGoesOnAsItWouldHave:
    @pytest.mark.check
    def test_after_restore(self, game, opponent, mode):
        sim = in_the_middle(game, opponent, mode)
        snapshot = sim.snapshot()
        first = go_on(sim, 5)
        sim.restore(snapshot)
        np.testing.assert_array_equal(go_on(sim, 5), first)

    @pytest.mark.check
    def test_after_restore_in_another_simulation(self, game, opponent, mode):
        sim, other = in_the_middle(game, opponent, mode), simulation(game, 4, autoreset_mode=mode)
        if not isinstance(opponent, str):
            other.set_opponent("blue", opponent)
        other.restore(sim.snapshot())
        np.testing.assert_array_equal(go_on(other, 5), go_on(sim, 5))

    @pytest.mark.check
    @pytest.mark.parametrize("duplicate", [copy.deepcopy, through_pickle])
    def test_in_a_copy_and_neither_touches_the_other(self, game, opponent, mode, duplicate):
        sim = in_the_middle(game, opponent, mode)
        twin = duplicate(sim)
        np.testing.assert_array_equal(all_bytes(twin), all_bytes(sim))
        before = all_bytes(sim)
        ahead = go_on(twin, 5)
        np.testing.assert_array_equal(all_bytes(sim), before)
        np.testing.assert_array_equal(go_on(sim, 5), ahead)


@pytest.mark.check
def test_restore_shows_the_match_as_it_stands():
    sim = in_the_middle()
    observations = sim.observations["scout"].copy()
    masks = sim.legal["guard"].copy()
    snapshot = sim.snapshot()
    go_on(sim, 5)
    sim.restore(snapshot)
    np.testing.assert_array_equal(sim.observations["scout"], observations)
    np.testing.assert_array_equal(sim.legal["guard"], masks)
    for array in (sim.rewards, sim.terminated, sim.truncated, sim.agent_terminated):
        assert not array.any()  # nothing has happened yet


def test_a_snapshot_keeps_the_seeds_of_the_lanes():
    sim = in_the_middle()
    snapshot = sim.snapshot()
    sim.reset(seed=99)
    sim.restore(snapshot)
    np.testing.assert_array_equal(sim.lane_seeds, [1, 2, 3, 4])


@pytest.mark.check
def test_a_snapshot_does_not_change_with_the_match():
    sim = in_the_middle()
    snapshot = sim.snapshot()
    before = snapshot.states.tobytes()
    go_on(sim, 5)
    assert snapshot.states.tobytes() == before


def test_a_snapshot_of_something_else_is_refused():
    snapshot = in_the_middle().snapshot()
    with pytest.raises(ValueError, match="snapshot of Raid with 4 lanes does not fit Melee with 4"):
        simulation(MELEE, 4).restore(snapshot)
    with pytest.raises(ValueError, match="snapshot of Raid with 4 lanes does not fit Raid with 5"):
        simulation(RAID, 5).restore(snapshot)


@pytest.mark.check
def test_a_snapshot_with_another_memory_is_refused_and_nothing_moves():
    sim = in_the_middle(MELEE, "chaser")
    before = all_bytes(sim)
    with pytest.raises(ValueError, match="taken against other opponents"):
        sim.restore(in_the_middle(MELEE, Recurrent()).snapshot())
    np.testing.assert_array_equal(all_bytes(sim), before)


# -- the rules of a snapshot -------------------------------------------------------------------------------------------

OTHER_RULES = (
    r"taken under other rules of \w+ \(code, numbers, agents or world\): restore it into a simulation of the same"
)


def test_a_snapshot_knows_its_rules():
    snapshot = started(orchard.game(), 2).snapshot()
    assert snapshot.rules == rules_digest(orchard.game())
    sim = started(orchard.game(), 2)
    sim.restore(snapshot)
    assert snapshot.rules == sim.snapshot().rules


@pytest.mark.parametrize("changes", [{"pickers": 2}, {"carriers": 3}, {"pairs": 1}, {"rows": 3}])
def test_a_snapshot_of_another_preset_is_refused_and_nothing_moves(changes: dict):
    sim = started(orchard.game(**changes), 2)
    before = all_bytes(sim)
    snapshot = started(orchard.game(), 2).snapshot()
    assert snapshot.states.dtype == sim.states.dtype
    with pytest.raises(ValueError, match=OTHER_RULES):
        sim.restore(snapshot)
    np.testing.assert_array_equal(all_bytes(sim), before)


def test_a_snapshot_under_another_constant_is_refused(monkeypatch: pytest.MonkeyPatch):
    snapshot = in_the_middle().snapshot()
    monkeypatch.setattr(two_team, "GOALS", 2)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(ValueError, match=OTHER_RULES):
        started(two_team.game(), 4).restore(snapshot)


def test_the_digest_distinguishes_agents():
    game = two_team_homogeneous.game()
    (role,) = game.roles
    swapped = dataclasses.replace(role, agents=(*role.agents[5:], *role.agents[:5]))
    assert rules_digest(dataclasses.replace(game, roles=(swapped,))) != rules_digest(game)


def test_the_digest_distinguishes_worlds_without_names():
    assert rules_digest(duel.game(tries=2)) != rules_digest(duel.game(tries=3))
    assert rules_digest(duel.game(tries=2)) == rules_digest(duel.game(tries=2))
    tables = [duel.game(world=np.array(numbers)) for numbers in ([1], [2], [1])]
    assert rules_digest(tables[0]) == rules_digest(tables[2]) != rules_digest(tables[1])


def test_defaults_of_parameters_are_no_rules():
    assert rules_digest(orchard.game(horizon=7)) == rules_digest(orchard.game())
