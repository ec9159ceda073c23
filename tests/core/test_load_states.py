"""Lanes that continue from match records; and methods with a mask, which change no other lane."""

import copy
from typing import Any

import numpy as np
import pytest
from games import orchard, size_game, two_team
from games.play import all_bytes, leaves, random_actions, simulation

from palaestra.core.run.buffers import rows_of_bytes

pytestmark = pytest.mark.jitless

GAMES = {"orchard": orchard.game(), "couriers": size_game.game(agents=5, parcels=7), "raid": two_team.game()}
MODES = ["next_step", "same_step", "off"]
N = 6
HORIZONS = [4, 9, 5, 6, 5, 9]
MASK = np.array([True, False, False, True, True, False])


def in_the_middle(name: str, mode: Any, decisions: int = 5, **options: Any) -> Any:
    """Lanes in the middle of a match, and some whose match is over (2 and 4 just now, 0 before)."""
    sim = simulation(GAMES[name], N, autoreset_mode=mode, parameters={"horizon": HORIZONS}, **options)
    sim.set_opponent("blue", "mix")
    sim.reset(seed=5)
    go_on(sim, 0, decisions)
    return sim


def go_on(sim: Any, seed: int, decisions: int) -> np.ndarray:
    """Bytes after every decision, under actions that depend on the seed alone."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(decisions):
        sim.step(random_actions(sim, rng))
        rows.append(everything(sim))
    return np.array(rows)


def everything(sim: Any) -> np.ndarray:
    """All that the simulation holds of each lane, what `same_step` kept included."""
    kept = [*leaves(sim.final_observations), *leaves(sim.final_legal), *leaves(sim.final_info)]
    kept = [a for a in kept if len(a) == len(sim.states)]
    rows = [np.ascontiguousarray(a).view(np.uint8).reshape(len(a), -1) for a in kept]
    return np.concatenate([all_bytes(sim), *rows], axis=1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "threads"), [("orchard", 1), ("orchard", 2), ("couriers", 1), ("raid", 1)])
@pytest.mark.parametrize("verb", ["reset", "refresh", "load_states"])
def test_lanes_outside_the_mask_keep_every_byte(verb: str, name: str, mode: Any, threads: int):
    sim = in_the_middle(name, mode, threads=threads)
    for rows in (rows_of_bytes(sim.buffers.observations), sim.buffers.mask_bytes):
        rows[~MASK] ^= 1  # bytes that no step writes
    before = everything(sim)
    assert (sim.states["pending"] != 0).any() == (mode != "same_step")
    if verb == "reset":
        sim.reset(MASK)
    elif verb == "refresh":
        sim.states["steps"] = 3
        before = everything(sim)
        sim.refresh(MASK)
    else:
        sim.load_states(sim.states[[1, 1, 1]], MASK)
    np.testing.assert_array_equal(everything(sim)[~MASK], before[~MASK])
    if verb != "refresh":
        assert (sim.states["pending"][MASK] == 0).all()
    sim.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_refresh_of_some_lanes_writes_what_they_show_and_nothing_else(mode: Any):
    sim = in_the_middle("orchard", mode)
    sim.states["count"] += 50
    sim.states["drawn"] += 0.25
    records, shown = sim.states.copy(), sim.observations["picker"].copy()
    flags = sim.rewards.copy(), sim.terminated.copy(), sim.truncated.copy()
    sim.refresh(MASK)
    np.testing.assert_array_equal(sim.states, records)  # pending too
    for now, then in zip((sim.rewards, sim.terminated, sim.truncated), flags, strict=True):
        np.testing.assert_array_equal(now, then)
    np.testing.assert_array_equal(sim.observations["picker"][MASK, 0, 0], shown[MASK, 0, 0] + 50)
    np.testing.assert_allclose(sim.observations["picker"][MASK, :, 7], shown[MASK, :, 7] + 0.25, rtol=1e-6)
    np.testing.assert_array_equal(sim.observations["picker"][~MASK], shown[~MASK])


def test_a_refresh_writes_masks_too():
    sim = in_the_middle("raid", "off", 0)
    sim.states["acting"][:] = 0
    sim.refresh()
    assert not sim.legal["scout"][:, :, 1:].any()
    assert sim.legal["scout"][:, :, 0].all()


@pytest.mark.check
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GAMES)
def test_a_loaded_lane_continues_like_the_lane_that_it_was_copied_from(name: str, mode: Any):
    source, sim = in_the_middle(name, mode, decisions=4), in_the_middle(name, mode, decisions=8)
    sim.load_states(source.states[~MASK], MASK)
    rng = np.random.default_rng(8)
    for _ in range(7):
        actions = random_actions(source, rng)
        moved = random_actions(sim, rng)
        for mine, its in zip(leaves(moved), leaves(actions), strict=True):
            mine[MASK] = its[~MASK]
        source.step(actions)
        sim.step(moved)
        np.testing.assert_array_equal(all_bytes(sim)[MASK], all_bytes(source)[~MASK])


def test_loaded_lanes_have_nothing_behind_them():
    sim = in_the_middle("orchard", "off")
    assert sim.rewards[MASK].any()
    assert sim.truncated[MASK].any()
    sim.load_states(sim.states[[1, 1, 1]], MASK)
    for array in (sim.rewards, sim.terminated, sim.truncated, sim.agent_terminated):
        assert not array[MASK].any()


def test_records_may_be_loaded_before_the_first_reset():
    source = in_the_middle("orchard", "off", 2)
    sim = simulation(GAMES["orchard"], N, autoreset_mode="off")
    shown = sim.load_states(source.states.copy())
    np.testing.assert_array_equal(shown["picker"], source.observations["picker"])
    np.testing.assert_array_equal(go_on(sim, 4, 6), go_on(source, 4, 6))


def test_the_first_records_are_for_all_lanes():
    sim = simulation(GAMES["orchard"], N)
    with pytest.raises(ValueError, match=r"no match has started yet: load records into all lanes, or call reset\(\)"):
        sim.load_states(sim.states[MASK], MASK)
    with pytest.raises(RuntimeError, match="step before reset"):
        sim.step()


def test_records_that_do_not_fit_are_refused_and_nothing_moves():
    sim = in_the_middle("orchard", "off")
    before = everything(sim)
    raid = in_the_middle("raid", "off").states
    for records, mask, complaint in (
        (raid, None, r"load_states takes 6 records of Orchard \(game.state_dtype\), got \(6,\) of another record"),
        (np.zeros(N), None, r"got \(6,\) of float64"),
        (sim.states[:5], None, r"takes 6 records of Orchard .* got \(5,\)"),
        (sim.states, MASK, r"takes 3 records of Orchard .* got \(6,\)"),
        (sim.states[0], None, r"got \(\)"),
        (sim.states, np.ones(N), r"mask must be bool of shape \(6,\)"),
    ):
        with pytest.raises(ValueError, match=complaint):
            sim.load_states(records, mask)
    np.testing.assert_array_equal(everything(sim), before)


def test_records_of_the_same_kernel_with_other_agents_are_refused():
    fewer = simulation(size_game.game(agents=4, parcels=7), N)
    fewer.reset(seed=1)
    with pytest.raises(ValueError, match="records of Couriers with other agents"):
        in_the_middle("couriers", "off").load_states(fewer.states.copy())


@pytest.mark.parametrize("mode", MODES)
def test_restore_brings_back_waiting_lanes_as_they_were(mode: Any):
    sim = in_the_middle("orchard", mode)
    snapshot, ahead = sim.snapshot(), go_on(copy.deepcopy(sim), 3, 8)
    go_on(sim, 9, 4)
    sim.restore(snapshot)
    np.testing.assert_array_equal(sim.states, snapshot.states)
    back = go_on(sim, 3, 8)
    width = all_bytes(sim).shape[1]  # what an earlier end left is not part of a snapshot
    moving = snapshot.states["pending"] != 2  # nor are the flags of a lane that waits
    np.testing.assert_array_equal(back[:, moving, :width], ahead[:, moving, :width])
    assert (snapshot.states["pending"] == 2).any() == (mode == "off")
