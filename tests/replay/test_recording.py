"""A recording holds the calls that happened, no others, and refuses what no call does."""

from __future__ import annotations

import contextlib
import itertools
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from games import crowd, two_team
from games.interrupted import call_interrupted

import palaestra
from palaestra.core.compile.reachable import unchanged_rules
from palaestra.core.contract.actions import ActionError
from palaestra.core.run.call_guard import InterruptedCallError
from palaestra.core.run.kernel import KernelSimulation
from palaestra.replay import Recorder, ReplayError, frames, verify
from palaestra.replay.changes import SET_OPPONENT, starting_changes

RAID, GUARDED = "test/Raid-v0", "test/Raid-guarded-v0"
CARTPOLE = "palaestra/CartPole-v0"
palaestra.register(RAID, "games.two_team:game", family="test")
palaestra.register(GUARDED, lambda: replace(two_team.game(), held_out=("idler",)), family="test")
RIGHT = np.ones((2, 1), np.int64)


def cartpole(**options: Any) -> Any:
    return palaestra.make_batch(CARTPOLE, 2, **{"autoreset_mode": "off", **options})


def test_a_refused_decision_leaves_the_recording_as_it_was():
    sim = cartpole()
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        sim.set_parameters(gravity_mps2=3.0)
        with pytest.raises(ActionError):
            sim.step(RIGHT * 9)
        sim.set_parameters(gravity_mps2=9.8)
        sim.step(RIGHT)
    assert recorder.replay().steps == 1
    assert verify(recorder.replay()).ok


def test_a_call_that_fails_is_no_part_of_the_recording():
    sim = palaestra.make_batch(RAID, 2, opponents={"red": "runner", "blue": "fighter"})
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        with pytest.raises(ValueError, match="must be in"):
            sim.set_parameters(damage=1e300)
        with pytest.raises(ValueError, match="neither a script"):
            sim.set_opponent("red", "nobody")
        with pytest.raises(ValueError, match="seed"):
            sim.seed(-1)
        sim.step()
    assert verify(recorder.replay()).ok


def test_load_states_is_refused_before_it_does_anything():
    sim = cartpole()
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        sim.step(RIGHT)
        before = sim.states.copy()
        with pytest.raises(ReplayError, match="load_states cannot be recorded"):
            sim.load_states(before[::-1])
        assert np.array_equal(sim.states, before)  # a copy does not hold what lies between the fields
        sim.step(RIGHT)
    assert recorder.replay().steps == 2
    assert verify(recorder.replay()).ok
    sim.load_states(before[::-1])


def test_records_written_by_hand_end_the_recording_and_what_was_recorded_stays():
    sim = cartpole()
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        sim.step(RIGHT)
        sim.states["steps"][1] += 1
        with pytest.raises(ReplayError, match="the match record of lane 1 was written by hand"):
            sim.step(RIGHT)
        sim.step(RIGHT)
    assert recorder.replay().steps == 1
    assert verify(recorder.replay()).ok


def test_what_a_reset_writes_anew_may_be_written_by_hand_before_it():
    sim = cartpole()
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        sim.states["steps"] += 1
        sim.reset()
        sim.step(RIGHT)
        sim.states["rng"] += np.uint64(1)
        with pytest.raises(ReplayError, match="written by hand"):
            sim.reset()
    assert verify(recorder.replay()).ok


def test_a_snapshot_from_before_the_recording_is_refused():
    sim = cartpole()
    sim.reset(seed=1)
    foreign = sim.snapshot()
    with Recorder(sim) as recorder:
        sim.reset(seed=2)
        sim.step(RIGHT)
        with pytest.raises(ReplayError, match="this snapshot cannot be recorded"):
            sim.restore(foreign)
        sim.step(RIGHT)
    assert verify(recorder.replay()).ok


def test_snapshots_of_the_recording_are_restored_on_playback_as_often_as_they_were():
    sim = cartpole(horizon=9)
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        kept = [sim.snapshot() for _ in range(2)]
        for step in range(12):
            sim.step(RIGHT if step % 3 else 0 * RIGHT)
            if step in (3, 7):
                sim.restore(pickle.loads(pickle.dumps(kept[step == 7])))
            kept.append(sim.snapshot())
        sim.restore(kept[5])
    replay = recorder.replay()
    assert verify(replay).ok
    assert [int(sim.states["steps"][0]) for sim in frames(replay)] == [0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]
    assert len(replay.change_operations) < 12, "snapshots that nobody restored are left out"


def test_streams_that_went_on_before_the_recording_are_repeated():
    sim = palaestra.make_batch(RAID, 2, opponents={"red": "mix:0.5", "blue": "mix"})
    sim.reset(seed=4)
    for _ in range(5):
        sim.step()
    sim.set_opponent("blue_1", "random", [1])
    sim.set_parameters([0], damage=2.0)
    with Recorder(sim) as recorder:
        sim.reset()
        for _ in range(10):
            sim.step()
    assert verify(recorder.replay()).ok
    assert recorder.replay().streams_went_on


def test_scripts_that_are_held_out_are_drawn_again():
    sim = palaestra.make_batch(GUARDED, 8, opponents={"red": "mix", "blue": "held_out:0.5"}, horizon=3)
    with Recorder(sim) as recorder:
        sim.reset(seed=4)
        for _ in range(8):
            sim.step()
        sim.set_opponent("red", "held_out", [1])
        sim.step()
    replay = recorder.replay()
    assert replay.players == {"red": "mix", "blue": "held_out:0.5"}
    assert verify(replay).ok


def test_results_belong_to_the_user():
    sim = cartpole(horizon=3)
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        for _ in range(5):
            sim.step(RIGHT)
            sim.rewards *= -0.5
            sim.truncated[:] = False
        sim.reset(np.array([True, False]))
        sim.rewards += 7.0
        sim.step(RIGHT)
    assert verify(recorder.replay()).ok


def random_call(sim: Any, rng: np.random.Generator, kept: list) -> None:
    """One call that is drawn, some of them wrong."""
    lanes = rng.random(2) < 0.5
    calls = [
        lambda: sim.seed(int(rng.integers(99)), lanes),
        lambda: sim.reset(lanes),
        lambda: sim.reset(seed=int(rng.integers(99))),
        lambda: sim.set_opponent("red", ["mix", "runner:0.3", "random", None, resting][rng.integers(5)], lanes),
        lambda: sim.set_opponent("blue_1", ["mix:0.5", "fighter", None, resting][rng.integers(4)], lanes),
        lambda: sim.set_parameters(lanes, damage=rng.uniform(0, 2)),
        lambda: sim.set_parameters(horizon=rng.integers(-2, 9), damage=rng.uniform(0, 2)),
        lambda: kept.append(sim.snapshot()),
        lambda: kept and sim.restore(kept[rng.integers(len(kept))]),
        lambda: sim.load_states(sim.states.copy()),
        lambda: sim.refresh(lanes),
        *[lambda: sim.step(random_actions(rng))] * 6,
    ]
    calls[rng.integers(len(calls))]()


def random_actions(rng: np.random.Generator) -> dict:
    guard = {"move": rng.integers(0, 4, (2, 2)), "trigger": rng.integers(0, 2, (2, 2)), "effort": rng.uniform(0.1, 0.9)}
    return {"scout": rng.integers(0, 5, (2, 3)), "guard": {**guard, "effort": np.full((2, 2), guard["effort"])}}


def resting(observations: dict) -> dict:
    n = len(observations["scout"])
    agents = {name: observations[name].shape[1] for name in ("scout", "guard")}
    ones = np.ones((n, agents["guard"]), int)
    return {"scout": np.ones((n, agents["scout"]), int), "guard": {"move": ones, "trigger": ones, "effort": 0.5 * ones}}


@pytest.mark.parametrize("mode", ["next_step", "same_step", "off"])
def test_any_sequence_of_calls_and_refusals_repeats(mode: str):
    refusals = 0
    for case in range(6):
        rng = np.random.default_rng(case)
        sim = palaestra.make_batch(RAID, 2, autoreset_mode=mode, horizon=6)
        kept: list = []
        with Recorder(sim) as recorder:
            sim.reset(seed=case)
            for _ in range(40):
                try:
                    random_call(sim, rng, kept)
                except ValueError:
                    refusals += 1
            assert sim.recorder is recorder, "nothing was written by hand"
        assert verify(recorder.replay()).ok, case
    assert refusals > 25


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "step": lambda sim, earlier: sim.step(),
    "reset": lambda sim, earlier: sim.reset(seed=5),
    "reset some": lambda sim, earlier: sim.reset(np.array([True, False])),
    "seed": lambda sim, earlier: sim.seed(7),
    "restore": lambda sim, earlier: sim.restore(earlier),
    "set_parameters": lambda sim, earlier: sim.set_parameters(damage=3.0),
    "set_opponent": lambda sim, earlier: sim.set_opponent("blue", "idler"),
    "snapshot": lambda sim, earlier: sim.snapshot(),
}


@pytest.mark.check
@pytest.mark.parametrize("call", CALLS)
def test_an_interrupt_at_any_python_function_of_a_call_leaves_a_recording_that_verifies(call: str):
    """It goes on where nothing has happened, and ends before the call where something has."""
    outcomes = set()
    with unchanged_rules():  # many simulations are made of one game
        for number in itertools.count():
            sim = palaestra.make_batch(RAID, 2, opponents={"red": "runner", "blue": "fighter"})
            recorder = Recorder(sim)
            sim.reset(seed=1)
            earlier = sim.snapshot()
            sim.step()
            is_interrupted, _ = call_interrupted(lambda sim=sim, earlier=earlier: CALLS[call](sim, earlier), number)
            try:
                with contextlib.suppress(InterruptedCallError):
                    sim.step()
                sim.restore(earlier)
                outcomes.add("goes on")
            except ReplayError as error:
                outcomes.add("has stopped" if "by a call that was interrupted" in str(error) else str(error))
            replay = recorder.replay()
            assert replay.steps >= 1
            assert verify(replay).ok, number
            if not is_interrupted:
                break
    assert outcomes == ({"goes on"} if call == "snapshot" else {"goes on", "has stopped"})


def test_the_players_of_many_agents_are_written_down_without_looking_for_their_names(monkeypatch: pytest.MonkeyPatch):
    game = crowd.battle(30, 30, 20)
    (fighter,) = game.roles
    game = replace(game, roles=(replace(fighter, agents=tuple(map(crowd.Name, fighter.agents))),))
    sim = KernelSimulation(game, 1, compiled=False)
    sim.set_opponent("blue", "nearest")
    monkeypatch.setattr(crowd.Name, "comparisons", 0)
    players = {c.what: c.number for c in starting_changes(sim) if c.call == SET_OPPONENT}
    assert players == dict.fromkeys(range(2 + 30, 2 + 60), 0)
    assert crowd.Name.comparisons < 10 * 60
