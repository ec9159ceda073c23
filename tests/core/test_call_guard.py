"""After a call that was interrupted all others are refused until the matches are whole again; one call at a time."""

import copy
import itertools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from games import body_game, logged_pucks, two_team
from games.interrupted import call_interrupted
from games.play import all_bytes, idle_actions, random_actions

from palaestra.core.compile.reachable import unchanged_rules
from palaestra.core.contract.actions import ActionError
from palaestra.core.run.call_guard import InterruptedCallError
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.parameters import ParameterRecords
from palaestra.core.run.physics import PhysicsSimulation

ENGINES = {"saving": body_game.game(), "logged": logged_pucks.game()}
N = 3


def raid(**options: Any) -> Any:
    sim = KernelSimulation(two_team.game(), N, compiled=False, **options)
    sim.reset(seed=1)
    return sim


def bodies(game: Any) -> PhysicsSimulation:
    sim = PhysicsSimulation(game, N, compiled=False)
    sim.reset(seed=1)
    return sim


def after(call: Callable[..., Any], calls: int, error: type[BaseException] = KeyboardInterrupt) -> Callable[..., Any]:
    """``call``, which is interrupted at the end of its k-th call."""
    count = iter(range(calls))

    def interrupted(*arguments: Any) -> Any:
        result = call(*arguments)
        if next(count, None) == calls - 1:
            raise error
        return result

    return interrupted


@pytest.mark.parametrize("game", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("recovery", ["reset", "restore"])
def test_a_step_that_is_interrupted_between_periods_is_refused_until_all_lanes_start_anew(game, recovery: str):
    sim, twin = bodies(game), bodies(game)
    rng = np.random.default_rng(0)
    first, second = random_actions(sim, rng), random_actions(sim, rng)
    sim.step(first)
    snapshot = sim.snapshot()
    sim.engine.advance = after(sim.engine.advance, 2)
    with pytest.raises(KeyboardInterrupt):
        sim.step(second)
    refused: list[Callable[[], Any]] = [
        lambda: sim.step(second),
        sim.snapshot,
        sim.state,
        sim.refresh,
        lambda: sim.reset(np.array([True, False, True])),
        lambda: sim.set_parameters(drag_nspm=1.0),
        lambda: sim.set_opponent("puck", "steer"),
        lambda: sim.load_states(snapshot.states),
        lambda: copy.deepcopy(sim),
        lambda: pickle.dumps(sim),
    ]
    for call in refused:
        with pytest.raises(InterruptedCallError, match=r"interrupted step \(by KeyboardInterrupt\).*reset\(\)"):
            call()
    if recovery == "reset":
        sim.reset(seed=1)
        for each in (sim, twin):
            each.reset(seed=1)
            each.step(first)
    else:
        sim.restore(snapshot)
        twin.step(first)
    for each in (sim, twin):
        each.step(second)
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))


@pytest.mark.parametrize("call", ["reset", "restore", "load_states", "refresh", "seed"])
def test_an_interrupted_call_is_named_by_the_next_one(call: str, monkeypatch: pytest.MonkeyPatch):
    sim = raid()
    snapshot, target = sim.snapshot(), {"seed": "lane_keys"}.get(call)
    if target is not None:
        real = getattr(__import__("palaestra.core.run.simulation", fromlist=[target]), target)
        monkeypatch.setattr(f"palaestra.core.run.simulation.{target}", after(real, 1))
    else:
        monkeypatch.setattr(sim, "_play", after(lambda: None, 1))
    arguments = {"restore": [snapshot], "load_states": [snapshot.states], "seed": [3]}.get(call, [])
    with pytest.raises(KeyboardInterrupt):
        getattr(sim, call)(*arguments)
    monkeypatch.undo()
    with pytest.raises(InterruptedCallError, match=rf"step\(\) after an interrupted {call} \(by KeyboardInterrupt\)"):
        sim.step(idle_actions(sim))
    sim.restore(snapshot)
    twin = raid()
    for each in (sim, twin):
        each.step(idle_actions(each))
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))


def test_an_interrupt_among_threads_waits_for_them_before_the_next_match_begins(monkeypatch: pytest.MonkeyPatch):
    sim, expected = raid(threads=2), raid()
    running, go_on = threading.Event(), threading.Event()
    driver = vars(sim)["_step_driver"]

    def slow(lo: int, *arguments: Any) -> Any:
        if lo == 0:
            running.wait()
            raise KeyboardInterrupt
        running.set()
        go_on.wait()
        return driver(lo, *arguments)

    monkeypatch.setattr(sim, "_step_driver", slow)
    with pytest.raises(KeyboardInterrupt):
        sim.step(idle_actions(sim))
    with pytest.raises(InterruptedCallError):
        sim.step(idle_actions(sim))
    monkeypatch.undo()
    threading.Timer(0.05, go_on.set).start()
    sim.reset(seed=1)
    for each in (sim, expected):
        each.step(idle_actions(each))
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(expected))
    sim.close()


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "step": lambda sim, earlier: sim.step(idle_actions(sim)),
    "reset": lambda sim, earlier: sim.reset(seed=5),
    "reset some": lambda sim, earlier: sim.reset(np.array([True, False, True])),
    "seed": lambda sim, earlier: sim.seed(7),
    "restore": lambda sim, earlier: sim.restore(earlier),
    "load_states": lambda sim, earlier: sim.load_states(earlier.states),
    "set_parameters": lambda sim, earlier: sim.set_parameters(damage=3.0),
    "set_opponent": lambda sim, earlier: sim.set_opponent("blue", "fighter"),
    "refresh": lambda sim, earlier: sim.refresh(),
    "snapshot": lambda sim, earlier: sim.snapshot(),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", CALLS)
def test_an_interrupt_at_any_python_function_of_a_call_leaves_it_undone_done_or_marked(call: str, threads: int):
    """Each function that the call enters is interrupted at its entry, one after the other."""

    game = two_team.game()

    def start() -> tuple[Any, Any]:
        sim = KernelSimulation(game, N, threads=threads)
        sim.reset(seed=1)
        earlier = sim.snapshot()
        sim.step(idle_actions(sim))
        return sim, earlier

    with unchanged_rules():  # many simulations are made of one game
        sim, earlier = start()
        before = all_bytes(sim)
        CALLS[call](sim, earlier)
        after = all_bytes(sim)
        for number in itertools.count():
            sim, earlier = start()
            was_interrupted, seen = call_interrupted(
                lambda sim=sim, earlier=earlier: CALLS[call](sim, earlier), number, lambda sim=sim: all_bytes(sim)
            )
            if not was_interrupted:
                break
            try:
                sim.snapshot()
            except InterruptedCallError:
                sim.restore(earlier)
                np.testing.assert_array_equal(sim.states, earlier.states)
            else:
                assert np.array_equal(seen, before) or np.array_equal(seen, after), number
                np.testing.assert_array_equal(all_bytes(sim), seen)  # also when the exception has been dropped
            sim.close()
    assert number > 1  # pyright: ignore[reportPossiblyUnboundVariable]


def test_what_was_refused_or_never_began_tears_nothing():
    class Broken:
        memory_size = 1

        def act(self, *arguments: Any) -> Any:
            raise ZeroDivisionError

    sim = raid()
    wrong = idle_actions(sim)
    wrong["scout"][0, 0] = 99
    with pytest.raises(ActionError):
        sim.step(wrong)
    sim.set_opponent("blue", Broken())
    with pytest.raises(ZeroDivisionError):
        sim.step(idle_actions(sim))
    sim.set_opponent("blue", None)
    with pytest.raises(ValueError, match="mask must be bool"):
        sim.reset(np.ones(N))
    with pytest.raises((ValueError, TypeError)):
        sim.reset(seed=[1, 2])
    twin = raid()
    for each in (sim, twin):
        each.step(idle_actions(each))
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))


def test_parameters_and_players_that_could_not_all_be_changed_are_as_before(monkeypatch: pytest.MonkeyPatch):
    sim = raid(opponents={"blue": "fighter"})
    before = sim.states.tobytes()
    with pytest.raises(ValueError, match="lanes must be"):
        sim.set_parameters(lanes=[0, N], damage=3.0)
    real = ParameterRecords.write
    monkeypatch.setattr(ParameterRecords, "write", after(real, 1))
    with pytest.raises(KeyboardInterrupt):
        sim.set_parameters(damage=3.0, horizon=9)
    monkeypatch.setattr("palaestra.core.run.opponent_assignments.draw_integers", after(lambda *_: 0, 1))
    with pytest.raises(KeyboardInterrupt):
        sim.set_opponent("blue", "mix")
    assert sim.states.tobytes() == before


def test_a_second_call_at_the_same_time_is_refused():
    class Nested:
        memory_size = 0

        def act(self, *arguments: Any) -> Any:
            for call in (sim.step, sim.reset, sim.snapshot):
                with pytest.raises(RuntimeError, match=r"was called while step\(\) of the same simulation is running"):
                    call()
            inside.set()
            go_on.wait()
            raise ZeroDivisionError

    inside, go_on = threading.Event(), threading.Event()
    sim = raid()
    sim.set_opponent("blue", Nested())
    errors: list[BaseException] = []

    def play() -> None:
        try:
            sim.step(idle_actions(sim))
        except ZeroDivisionError as error:
            errors.append(error)

    thread = threading.Thread(target=play)
    thread.start()
    assert inside.wait(10.0)
    with pytest.raises(RuntimeError, match="in another thread"):
        sim.step(idle_actions(sim))
    go_on.set()
    thread.join()
    assert errors
    sim.set_opponent("blue", None)
    sim.step(idle_actions(sim))


def test_what_cannot_be_a_number_of_lanes_or_threads_is_named():
    with pytest.raises(TypeError, match="threads must be an integer, at least 1, got '2'"):
        raid(threads="2")
    with pytest.raises(TypeError, match="num_envs must be an integer, at least 1, got None"):
        KernelSimulation(two_team.game(), None, compiled=False)  # type: ignore[arg-type]
    for huge in (2**45, 2**62):
        with pytest.raises(MemoryError, match=rf"Raid: {huge} lanes of \d+ bytes \(.* GiB\) do not fit into memory"):
            KernelSimulation(two_team.game(), huge, compiled=False)
