"""`watch` shows the last match of a recorded environment, or says how to record one."""

from __future__ import annotations

import html
from operator import methodcaller
from typing import Any

import gymnasium
import pytest
from replay.test_page import read

import palaestra
from palaestra.replay import Recorder, ReplayError, watch

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")
pytestmark = pytest.mark.check
CARTPOLE = "palaestra/CartPole-v0"
html_of = methodcaller("_repr_html_")


def decisions(shown: Any) -> int:
    """Decisions on a page in a notebook."""
    return read(html.unescape(shown.html))[0]["frames"] - 1


def play(env: Any, steps: int) -> None:
    env.reset(seed=steps)
    for _ in range(steps):
        env.step(1)


@pytest.fixture
def env() -> Any:
    env = gymnasium.make(CARTPOLE, horizon=6)
    yield env
    env.close()


def test_the_last_match_alone_is_shown(env: Any):
    Recorder(env.unwrapped.sim)
    play(env, 3)
    play(env, 6)
    shown = watch(env)
    assert decisions(shown) == 6
    assert html_of(shown).startswith("<iframe srcdoc=")
    assert repr(shown).startswith("<CartPole: ")
    assert "horizon, 6 decisions" in repr(shown)


def test_a_match_that_goes_on_is_shown_and_one_without_a_decision_is_not(env: Any):
    Recorder(env.unwrapped.sim)
    play(env, 6)
    play(env, 2)
    assert decisions(watch(env)) == 2
    assert "unfinished, 2 decisions" in repr(watch(env))
    env.reset()
    assert decisions(watch(env)) == 2


def test_a_stopped_recorder_is_watched_itself(env: Any):
    with Recorder(env.unwrapped.sim) as recorder:
        play(env, 4)
    with pytest.raises(ReplayError, match=r"CartPole was not recorded: write recorder = palaestra.replay.Recorder\("):
        watch(env)
    assert decisions(watch(recorder)) == 4


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_lane_of_a_batch_shows_its_last_match(mode: Any):
    sim = palaestra.make_batch(CARTPOLE, 2, horizon=3, autoreset_mode=mode)
    recorder = Recorder(sim)
    sim.reset(seed=1)
    for _ in range(3):
        sim.step()
    whole = watch(sim, lane=1)
    assert decisions(whole) == 3
    assert "horizon, 3 decisions" in whole.title
    for _ in range(2 if mode == "next_step" else 1):
        sim.step()
    after = watch(recorder, lane=1)
    assert decisions(after) == 1
    assert "unfinished, 1 decision" in after.title
    sim.close()


def test_what_is_no_environment_is_refused():
    with pytest.raises(TypeError, match=r"not CartPoleEnv; show\(replay\) a Replay"):
        watch(gymnasium.make("CartPole-v1").unwrapped)
