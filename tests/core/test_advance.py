"""A compiled engine: the order of the hooks of one decision, how often they are called, and when they stop."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from games.play import simulation, started

from palaestra.game import TERMINATED, TRUNCATED, Choice, Field, Game, Parameter, Role

pytestmark = pytest.mark.jitless

RESET, LOAD, COMMAND, ADVANCE, EVALUATE = 1, 2, 3, 4, 5
ROOM = 24


def note(s, hook):
    """Writes down that a hook was called."""
    s.calls[s.called] = hook
    s.called += 1


def reset(s, world):
    note(s, RESET)
    s.body = 100


def load(s, world, scratch):
    note(s, LOAD)
    s.loaded_at = s.body


def command(s, world, actions, scratch):
    note(s, COMMAND)
    s.pushed = actions.walker[0].move


def advance(s, world, scratch):
    note(s, ADVANCE)
    s.body += s.pushed


def evaluate(s, world, rewards, scratch):
    note(s, EVALUATE)
    rewards[0] += 1.0
    if s.body >= s.parameters.goal:
        s.info.end_reason = 2
        return TERMINATED
    if s.body == s.parameters.trap:
        s.info.end_reason = 3
        return TRUNCATED
    return False


def observe(s, world, observations, scratch):
    observations.walker[0].body = s.body


GAME = Game(
    "Noted",
    (Role("walker", ("red_0",), (Field("body", (), 0, 999),), (Choice("move", 4),)),),
    (("calls", "i8", (ROOM,)), ("called", "i8"), ("body", "i8"), ("pushed", "i8"), ("loaded_at", "i8")),
    reset=reset,
    load=load,
    command=command,
    advance=advance,
    evaluate=evaluate,
    observe=observe,
    periods=3,
    parameters=(Parameter("goal", 1000, 0, 1000), Parameter("trap", 0, 0, 1000)),
    end_reasons=("there",),
    truncation_reasons=("trapped",),
)


def calls(sim: Any, lane: int = 0) -> list[int]:
    return sim.states["calls"][lane, : sim.states["called"][lane]].tolist()


def moved(sim: Any, *moves: int) -> Any:
    for move in moves:
        sim.step(np.full((sim.num_envs, 1), move))
    return sim


def test_bodies_are_completed_after_they_were_placed():
    sim = started(GAME)
    assert calls(sim) == [RESET, LOAD]
    assert sim.states["loaded_at"].tolist() == [100]
    assert sim.observations.tolist() == [[[100]]]


def test_a_decision_is_command_advance_evaluate_in_each_period():
    sim = moved(started(GAME), 2)
    assert calls(sim) == [RESET, LOAD] + [COMMAND, ADVANCE, EVALUATE] * 3
    assert sim.states["body"].tolist() == [106]
    assert sim.states["steps"].tolist() == [1]


def test_what_each_period_pays_adds_up_and_starts_from_nothing_in_each_decision():
    assert moved(started(GAME), 1).rewards.tolist() == [[3.0]]
    assert moved(started(GAME), 1, 1).rewards.tolist() == [[3.0]]


@pytest.mark.parametrize(("parameter", "ending"), [("goal", TERMINATED), ("trap", TRUNCATED)])
@pytest.mark.parametrize("period", [1, 2, 3])
def test_an_end_in_an_early_period_stops_the_engine(parameter: str, ending: int, period: int):
    sim = moved(started(GAME, autoreset_mode="off", parameters={parameter: 100 + 2 * period}), 2)
    assert calls(sim) == [RESET, LOAD] + [COMMAND, ADVANCE, EVALUATE] * period
    assert (sim.terminated[0], sim.truncated[0]) == (ending == TERMINATED, ending == TRUNCATED)
    assert GAME.end_reason(sim.info["end_reason"][0]) == ("there" if ending == TERMINATED else "trapped")
    assert sim.rewards.tolist() == [[float(period)]]
    assert sim.observations.tolist() == [[[100 + 2 * period]]]


def test_other_lanes_play_all_their_periods():
    sim = moved(started(GAME, 2, autoreset_mode="off", parameters={"goal": [102, 1000]}), 2)
    assert sim.states["body"].tolist() == [102, 106]
    assert sim.terminated.tolist() == [True, False]


def test_a_new_match_is_loaded_in_every_mode():
    for mode, decisions in (("same_step", 1), ("next_step", 2)):
        sim = moved(started(GAME, autoreset_mode=mode, parameters={"goal": 104}), *[2] * decisions)
        assert calls(sim) == [RESET, LOAD]
        assert sim.states["loaded_at"].tolist() == [100]
        assert sim.observations.tolist() == [[[100]]]


def test_periods_are_part_of_the_machine_code():
    sim: Any = simulation(replace(GAME, periods=1), 1)
    sim.reset(seed=1)
    assert calls(moved(sim, 2)) == [RESET, LOAD, COMMAND, ADVANCE, EVALUATE]
    assert started(GAME).kernel is not sim.kernel
