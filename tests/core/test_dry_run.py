"""Rules played as plain Python before they are compiled: what is found in them, and in what time."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from games import crowd, orchard

from palaestra.core.run import dry_run as module
from palaestra.core.run.dry_run import BEFORE_COMPILING, dry_run
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Field, Game

SIGNATURES = {
    "reset": "s, world",
    "observe": "s, world, observations, scratch",
    "observe_reset": "s, world, observations, scratch",
    "legal": "s, world, mask",
    "plan": "s, world, team, which, scratch",
    "script": "s, world, slot, which, actions, scratch",
    "step": "s, world, actions, rewards, scratch",
    "global_state": "s, world, out",
}


def spin(s):
    """Never ends."""
    while True:
        s.steps += 0


def hook(name: str, line: str) -> Any:
    """A hook of one line."""
    scope: dict[str, Any] = {"spin": spin}
    exec(f"def {name}({SIGNATURES[name]}):\n    {line}\n    return 0\n", scope)
    return scope[name]


def game(capacity: bool = True, **lines: str) -> Game:
    """Orchard with some hooks written otherwise."""
    changes: dict[str, Any] = {name: hook(name, line) for name, line in lines.items()}
    if "global_state" in lines:
        changes["global_state_size"] = 1
    return orchard.game(capacity=capacity, **changes)


def tried(rules: Game, decisions: int = 20, seconds: float = 0.02) -> tuple[Exception | None, float]:
    """What a dry run finds, and its seconds of processor time."""
    start = time.process_time()
    found = dry_run(rules, lambda lanes: KernelSimulation(rules, lanes, compiled=False), decisions, seconds)
    return found, time.process_time() - start


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RULES_S", 0.02)
    monkeypatch.setattr(module, "OTHERS_S", 0.005)


class Noisy:
    """Does nearly all of the work when it is thrown away, where Python drops what is raised."""

    def __del__(self):
        for _ in range(1000):
            pass


def drop_objects():
    """Never ends."""
    while True:
        Noisy()


def collect_garbage():
    """Never ends."""
    while True:
        gc.collect()


def follow_garbage(*_):
    """As long as a rule: the clock is nearly always looked at here."""
    for _ in range(1000):
        pass


@pytest.mark.check
@pytest.mark.parametrize("spins", [drop_objects, collect_garbage])
def test_time_is_up_too_where_python_drops_what_is_raised(spins: Callable[[], None], monkeypatch: pytest.MonkeyPatch):
    dropped: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    gc.callbacks.append(follow_garbage)
    began = time.process_time()
    gc.collect()  # of what a whole run of tests has left: it is not interrupted
    ends = time.process_time() + 0.05
    collection = ends - began
    try:
        with pytest.raises(module.TimeUp):
            module.call_until(ends, spins)
    finally:
        gc.callbacks.remove(follow_garbage)
    assert time.process_time() < ends + 1.0 + 2 * collection
    assert not dropped, "a test of the caller would fail by what was dropped"


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_hook_that_never_ends_is_left(name: str):
    found, seconds = tried(game(True, **{name: "spin(s)"}))
    assert found is None
    assert seconds < 1.0


def test_a_later_decision_that_never_ends_is_left():
    found, seconds = tried(game(step="spin(s) if s.steps == 3 else None"))
    assert found is None
    assert seconds < 1.0


@pytest.mark.parametrize(
    ("slow", "wrong"),
    [
        *((slow, "step") for slow in ("observe", "observe_reset", "legal", "plan", "script", "global_state")),
        *(("observe", wrong) for wrong in ("observe_reset", "legal", "plan", "script", "global_state")),
    ],
)
def test_what_is_wrong_behind_a_slow_hook_is_found(slow: str, wrong: str):
    found, _ = tried(
        game(True, **{slow: "spin(s)", wrong: "s.force[99 * which]" if wrong == "script" else "s.force[99]"})
    )
    assert isinstance(found, IndexError)


@pytest.mark.parametrize(
    "lines",
    [
        {
            "legal": "mask.picker[0].pick[1] = 1; spin(s)",
            "step": "s.force[99 * actions.picker[0].pick]",
        },
        {"plan": "scratch.token[0] = 99; spin(s)", "script": "s.force[scratch.token[0]]"},
        {"script": "actions.picker[0].pick = 99; spin(s)", "step": "s.force[actions.picker[0].pick]"},
        {"reset": "s.token[0] = 99; spin(s)", "observe": "s.force[s.token[0]]"},
        {"step": "s.token[0] = 99; spin(s)", "observe": "s.force[s.token[0]]"},
    ],
    ids=lambda lines: next(iter(lines)),
)
def test_what_a_hook_has_not_finished_is_no_mistake_of_another(lines: dict[str, str]):
    for capacity in (True, False):
        assert tried(game(capacity, **lines))[0] is None


def test_the_trace_function_of_a_debugger_is_given_back():
    def trace(frame: FrameType, event: str, argument: Any) -> None: ...

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for rules in (game(), game(step="spin(s)"), game(step="s.force[99]")):
            tried(rules, decisions=1)
            assert sys.gettrace() is trace
    finally:
        sys.settrace(before)


def test_agents_of_each_role_and_team_are_played_by_each_script():
    """Slot 4 carries for red, slot 1 picks for blue: the second script is wrong for one of them alone."""
    for slot in range(7):
        line = f"s.force[99] if slot == {slot} and which == {slot // 2 % 2} else None"
        found, _ = tried(orchard.game(4, 3, script=hook("script", line), observe=hook("observe", "spin(s)")))
        assert isinstance(found, IndexError), slot


def test_megabytes_of_observations_take_no_time_of_their_own():
    shared = (*orchard.game().team_observation, Field("map", (1000, 1000), 0, 1, dtype="u1"))
    _, seconds = tried(orchard.game(capacity=True, team_observation=shared), decisions=1)
    assert seconds < 1.0


@pytest.mark.slow  # two thousand agents
def test_a_thousand_against_a_thousand_take_less_than_a_second(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    rules = crowd.battle(1000, 1000, 160)
    found, seconds = tried(rules, *BEFORE_COMPILING)
    assert found is None
    assert seconds < 1.0
    monkeypatch.setattr(module, "RULES_S", 5.0)  # a slow machine does not get to the end of `reset` in the usual time
    wrong = crowd.battle(1000, 1000, 160, step=lambda s, world, actions, rewards, scratch: s.x[world.agents])
    assert isinstance(tried(wrong, *BEFORE_COMPILING)[0], IndexError)
