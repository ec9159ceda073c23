"""Games whose bodies an engine moves: one source of rules for all engines, exact snapshots, bounded memory, threads."""

import copy
import hashlib
import inspect
import pickle
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from games import body_game, logged_pucks
from games.play import leaves, python, random_actions, seen_bytes

from palaestra.core.compile.batch_loop import COMMAND, EVALUATE, FINISH, OBSERVE, PREPARE, START
from palaestra.core.compile.linker import jit_disabled
from palaestra.core.run import input_log
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.physics import PhysicsSimulation, engine_class
from palaestra.core.run.simulation import Simulation
from palaestra.core.run.workers import ProcessSimulation, answered

OUTSIDE, COMPILED, LOGGED = body_game.game(), body_game.game("compiled"), logged_pucks.game()
ENGINES = {"saving": OUTSIDE, "logged": LOGGED}
KINDS = {**ENGINES, "compiled": COMPILED}
N = 4
STEPS = 40 if jit_disabled() else 300
every_kind = pytest.mark.parametrize("game", KINDS.values(), ids=KINDS)
every_engine = pytest.mark.parametrize("game", ENGINES.values(), ids=ENGINES)


def make(game: Any, n: int = N, **options: Any) -> Any:
    kind = KernelSimulation if game.physics is None else PhysicsSimulation
    return kind(game, n, **options)


def play(sim: Simulation, seed: int, steps: int = 1) -> np.ndarray:
    """Bytes after every step, under actions that depend on the seed alone; some go to the pads, some off the table."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(steps):
        sim.step(0.6 * random_actions(sim, rng) + [0.6, 0.0])
        rows.append(np.concatenate([seen_bytes(sim), puck_bytes(sim)], axis=1))
    return np.array(rows)


def puck_bytes(sim: Simulation) -> np.ndarray:
    """What the rules know of the bodies, the same fields with every engine."""
    fields = (sim.states["pucks"], sim.states["pad_m"], sim.states["rng"])
    return np.concatenate([np.ascontiguousarray(f).view("u1").reshape(sim.num_envs, -1) for f in fields], axis=1)


def in_the_middle(game: Any, n: int = N, **options: Any) -> Any:
    """Lanes of different ages: some matches have ended."""
    sim = make(game, n, **options)
    sim.reset(seed=1)
    play(sim, 0, 33)
    sim.reset(np.arange(n) % 4 == 1)
    play(sim, 1, 7)
    return sim


# -- the twins ---------------------------------------------------------------------------------------------------------


@pytest.mark.check
@pytest.mark.jitless
@pytest.mark.parametrize(("mode", "dense"), [("next_step", 1), ("same_step", 0)])
def test_an_engine_outside_and_a_compiled_one_give_the_same_bits(mode, dense):
    options = {"autoreset_mode": mode, "parameters": {"dense": dense, "horizon": 90}}
    twins = [make(game, 8, **options) for game in (OUTSIDE, COMPILED)]
    ends = np.zeros(5, int)
    for sim in twins:
        sim.set_opponent("puck", "steer", lanes=np.arange(6))
        sim.reset(seed=3)
    for seed in range(STEPS):
        outside, compiled = (play(sim, seed) for sim in twins)
        np.testing.assert_array_equal(outside, compiled)
        over = twins[0].terminated | twins[0].truncated
        if mode == "same_step":
            finals = [leaves(sim.final_observations) + leaves(sim.final_info) for sim in twins]
            for mine, its in zip(*finals, strict=True):
                assert mine[over].tobytes() == its[over].tobytes()
        else:
            np.add.at(ends, twins[0].info["end_reason"][over], 1)
    assert jit_disabled() or mode == "same_step" or (ends[1:] > 0).all(), f"matches by end reason: {ends}"
    assert twins[0].rewards.dtype == np.float64


@pytest.mark.jitless
def test_a_decision_calls_the_rules_once_a_period_and_once_more_if_a_match_starts():
    sim, calls = make(OUTSIDE, 2, parameters={"horizon": 2}), []
    sim.reset(seed=0)
    lanes = sim._lanes
    sim._lanes = lambda parts: (calls.append(parts), lanes(parts))[1]
    for _ in range(3):
        sim.step(sim.actions)
    plays = [PREPARE | COMMAND, *[EVALUATE | COMMAND] * (OUTSIDE.periods - 1), EVALUATE | FINISH | OBSERVE]
    assert calls == [*plays, *plays, PREPARE | COMMAND, EVALUATE | FINISH | OBSERVE, START, OBSERVE]


def compiled_hash() -> str:
    """Hash of what two lanes of the compiled engine show."""
    sim, sha = make(COMPILED, 2, parameters={"horizon": 12}), hashlib.sha256()
    sim.reset(seed=7)
    rng = np.random.default_rng(7)
    for _ in range(40):
        sim.step(random_actions(sim, rng))
        sha.update(seen_bytes(sim).tobytes())
    return sha.hexdigest()


PROGRAM = f"""
import hashlib
from typing import Any
import numpy as np
from games import body_game
from games.play import random_actions, seen_bytes
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.physics import PhysicsSimulation
COMPILED, N = body_game.game("compiled"), 4
{inspect.getsource(make)}
{inspect.getsource(compiled_hash)}
print(compiled_hash())
"""


@pytest.mark.check
@pytest.mark.skipif(jit_disabled(), reason="compares with compiled code")
def test_the_compiled_engine_gives_the_bits_of_the_interpreted_one():
    assert python(PROGRAM, NUMBA_DISABLE_JIT="1") == compiled_hash()


def test_contacts_happen_and_their_pressure_is_not_in_the_record():
    sim = make(OUTSIDE, 16, opponents={"puck": "steer"})
    sim.reset(seed=0)
    pressed = 0.0
    for _ in range(40):
        sim.step()
        pressed = max(pressed, sim.engine.pressure_n.max())
    assert pressed > 1.0
    assert not {"pressure_n", "thrust_n"} & set(OUTSIDE.state_dtype.names or ())


# -- snapshots and copies ----------------------------------------------------------------------------------------------


def through_pickle(sim: Simulation) -> Simulation:
    return pickle.loads(pickle.dumps(sim))


@every_kind
class TestAMatchGoesOnAsItWouldHave:
    def test_after_restore(self, game):
        sim = in_the_middle(game)
        snapshot = sim.snapshot()
        first = play(sim, 5, 60)
        sim.restore(snapshot)
        np.testing.assert_array_equal(play(sim, 5, 60), first)

    def test_after_a_second_restore_in_another_simulation(self, game):
        sim, other = in_the_middle(game), make(game)
        other.restore(pickle.loads(pickle.dumps(sim.snapshot())))
        play(sim, 4, 10)
        play(other, 4, 10)
        third = make(game)
        third.restore(other.snapshot())
        np.testing.assert_array_equal(play(third, 5, 40), play(sim, 5, 40))

    @pytest.mark.parametrize("duplicate", [copy.deepcopy, through_pickle])
    def test_in_a_copy_and_neither_touches_the_other(self, game, duplicate):
        sim = in_the_middle(game)
        twin = duplicate(sim)
        ahead = play(twin, 5, 40)
        np.testing.assert_array_equal(play(sim, 5, 40), ahead)


def test_what_the_engine_keeps_decides_how_a_match_continues():
    sim = in_the_middle(OUTSIDE)
    snapshot = sim.snapshot()
    first = play(sim, 5)
    sim.restore(replace(snapshot, engine={name: 0.0 * array for name, array in snapshot.engine.items()}))
    assert not np.array_equal(play(sim, 5), first)


@every_engine
def test_a_snapshot_before_the_first_match_is_refused(game):
    with pytest.raises(RuntimeError, match=r"Body has no bodies yet: call reset\(\)"):
        make(game).snapshot()
    copy.deepcopy(make(game)).reset(seed=0)


def test_64_lanes_are_restored_in_a_millisecond():
    sim = make(OUTSIDE, 64)
    sim.reset(seed=0)
    play(sim, 0, 30)
    snapshot = sim.snapshot()
    seconds = []
    for _ in range(30):
        before = time.perf_counter()
        sim.restore(snapshot)
        seconds.append(time.perf_counter() - before)
    assert min(seconds) < 1e-3  # 0.05 ms on a quiet machine


def test_a_start_of_all_lanes_sets_the_count_of_the_log_right():
    sim = make(LOGGED, 2, compiled=False)
    sim.input_log.nbytes = 10**12  # what an interrupt between two lines may leave
    sim.reset(seed=0)
    play(sim, 0)
    assert 0 < sim.input_log.nbytes < 10**6
    sim.snapshot()


@pytest.mark.check
@every_engine
def test_the_memory_of_a_simulation_does_not_grow_with_its_decisions(game):
    sim = make(game, 2, autoreset_mode="same_step", parameters={"horizon": 60})
    sim.reset(seed=0)
    rng = np.random.default_rng(0)
    pool = [random_actions(sim, rng) for _ in range(10)]  # drawn here: NumPy's uniform keeps array bounds for ever
    used = []
    for _ in range(2):
        for number in range(100):
            sim.step(pool[number % 10])
        if not used:
            tracemalloc.start()
        used.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    chunk = input_log.CHUNK_PERIODS * body_game.PUCKS * 16
    assert used[1] - used[0] < 4096 + (
        2 * chunk if game is LOGGED else 0
    )  # the inputs would take 24 kB a match and 48 in all


# -- the log of an engine that cannot save -----------------------------------------------------------------------------


def test_only_an_engine_that_cannot_save_has_a_log():
    assert make(OUTSIDE).input_log is None
    assert make(LOGGED).input_log is not None


def test_a_lane_drops_its_log_when_its_match_starts_anew():
    sim = make(LOGGED, autoreset_mode="off")
    sim.reset(seed=0)
    sim.step(random_actions(sim, np.random.default_rng(0)))
    full = sim.input_log.nbytes
    sim.reset(np.array([True, False, True, False]))
    assert sim.input_log.nbytes == full // 2
    assert [len(rows) for rows in sim.snapshot().engine.periods] == [0, 5, 0, 5]


@pytest.mark.parametrize("take", [Simulation.snapshot, copy.deepcopy, pickle.dumps])
def test_a_log_beyond_its_limit_is_given_up_and_copies_say_so(take, monkeypatch):
    monkeypatch.setattr(input_log, "CHUNK_PERIODS", 10)
    monkeypatch.setattr(input_log, "LOG_BYTES", 6 * 10 * body_game.PUCKS * 16)
    sim, free = make(LOGGED, 3, autoreset_mode="off"), make(OUTSIDE, 3, autoreset_mode="off")
    for each in (sim, free):
        each.reset(seed=0)
        play(each, 0, 4)
    take(sim)
    play(sim, 1, 1)
    with pytest.raises(RuntimeError, match=r"Body: no snapshot or copy now.*that of lanes 0 was given up.*reset them"):
        take(sim)
    play(free, 1, 1)
    np.testing.assert_array_equal(play(sim, 2, 3), play(free, 2, 3))
    assert sim.input_log.nbytes <= input_log.LOG_BYTES
    sim.reset(np.ones(3, bool))
    take(sim)


def test_an_engine_without_save_has_to_name_its_inputs(monkeypatch):
    monkeypatch.setattr(logged_pucks.LoggedPucks, "command_fields", ())
    with pytest.raises(ValueError, match="an engine without save needs command_fields"):
        make(LOGGED)


def test_an_input_that_no_body_has_is_named(monkeypatch):
    monkeypatch.setattr(logged_pucks.LoggedPucks, "command_fields", ("command_x_n", "torque"))
    with pytest.raises(ValueError, match=r"command_fields of the engine name 'torque', a body has .*command_x_n"):
        make(LOGGED)


class Forgetful(body_game.Pucks):
    """An engine whose loads leave a trace."""

    def load(self, states: Any, lanes: np.ndarray) -> None:
        self.pressure_n[lanes] = 0.0


def test_an_engine_that_does_not_come_back_is_found_out(monkeypatch):
    monkeypatch.setattr(body_game, "Pucks", Forgetful)
    sim = in_the_middle(LOGGED)
    with pytest.raises(RuntimeError, match="the engine did not come back to the snapshot"):
        sim.restore(sim.snapshot())


# -- loading records ---------------------------------------------------------------------------------------------------


@every_engine
def test_loaded_records_start_the_bodies_and_the_other_lanes_continue(game):
    sim, other = in_the_middle(game), in_the_middle(game)
    records = sim.states[[0, 2]].copy()
    records["pucks"]["velocity_x_mps"] = 0.5
    records["pucks"]["speed_mps"] = -1.0
    mask = np.array([True, False, True, False])
    sim.load_states(records, mask)
    pucks = sim.states["pucks"]
    np.testing.assert_array_equal(pucks["velocity_x_mps"][mask], 0.5)
    assert (pucks["speed_mps"] >= 0.5).all(axis=1)[mask].all()  # written by the engine's load
    np.testing.assert_array_equal(pucks["x_m"][mask], records["pucks"]["x_m"])
    np.testing.assert_array_equal(sim.observations[mask][..., 2], 0.5)
    ahead, others = play(sim, 5, 10), play(other, 5, 10)
    np.testing.assert_array_equal(ahead[:, ~mask], others[:, ~mask])
    sim.load_states(records, mask)
    np.testing.assert_array_equal(play(sim, 5, 10)[:, mask], ahead[:, mask])  # the thrust before does not matter


@every_engine
def test_a_snapshot_after_loaded_records_comes_back(game):
    sim = in_the_middle(game)
    sim.load_states(sim.states[:2].copy(), np.array([True, True, False, False]))
    play(sim, 3, 5)
    snapshot = sim.snapshot()
    first = play(sim, 4, 20)
    other = make(game)
    other.restore(snapshot)
    np.testing.assert_array_equal(play(other, 4, 20), first)


def test_a_record_of_the_compiled_twin_holds_everything():
    sim, other = in_the_middle(COMPILED), make(COMPILED)
    other.load_states(sim.states.copy())
    np.testing.assert_array_equal(play(other, 5, 30), play(sim, 5, 30))


# -- threads and pictures ----------------------------------------------------------------------------------------------


@pytest.mark.check
def test_threads_reach_the_engine_and_do_not_change_a_bit():
    one, three = make(OUTSIDE, 5), make(OUTSIDE, 5, threads=3)
    assert (one.engine.threads, three.engine.threads) == (1, 3)
    for sim in (one, three):
        sim.reset(seed=2)
    np.testing.assert_array_equal(play(three, 0, 80), play(one, 0, 80))
    three.close()


def test_the_engine_draws_its_match():
    sim = in_the_middle(OUTSIDE)
    picture = sim.render(2)
    np.testing.assert_array_equal(picture, body_game.draw(None, None, sim.states[2]))
    assert (picture != sim.render(0)).any()
    with pytest.raises(NotImplementedError, match=r'Body has render="engine", but LoggedPucks has no method render'):
        make(LOGGED).render()


def test_a_kernel_game_has_no_engine():
    with pytest.raises(ValueError, match="Body is a kernel game"):
        engine_class(COMPILED)


# -- the rules ---------------------------------------------------------------------------------------------------------


def still(sim: Any) -> np.ndarray:
    return np.zeros((sim.num_envs, 3, 2))


@every_kind
def test_a_body_that_is_too_fast_truncates_the_match_with_a_reason(game):
    sim = make(game, 2, autoreset_mode="off")
    sim.reset(seed=0)
    records = sim.states.copy()
    records["pucks"]["velocity_y_mps"][1, 2] = 3.0
    sim.load_states(records)
    sim.step(still(sim))
    assert (sim.truncated.tolist(), sim.terminated.tolist()) == ([False, True], [False, False])
    assert game.end_reason(sim.info["end_reason"][1]) == "diverged"


@every_kind
def test_each_puck_is_paid_for_itself(game):
    sim = make(game, 1)
    sim.reset(seed=0)
    records = sim.states.copy()
    records["pucks"]["x_m"][0, 1] = 1.51
    sim.load_states(records)
    sim.step(still(sim))
    away = np.hypot(*(sim.states["pad_m"][0] - np.stack([sim.states["pucks"][c][0] for c in ("x_m", "y_m")], 1)).T)
    np.testing.assert_allclose(sim.rewards[0], -body_game.PERIOD_S * away - [0.0, 1.0, 0.0])
    np.testing.assert_allclose(sim.team_rewards("puck"), sim.rewards.sum(axis=1))
    assert game.end_reason(sim.info["end_reason"][0]) == "off_table"


@every_kind
def test_what_is_drawn_at_the_start_is_shown_all_along_and_changes_with_the_match(game):
    sim = make(game, 2)
    sim.reset(seed=0)
    shown = [sim.observations[..., 8:].copy()]
    sim.set_parameters(mass_spread_kg=0.0)
    play(sim, 0, 3)
    shown.append(sim.observations[..., 8:].copy())
    sim.reset(np.array([True, False]))
    shown.append(sim.observations[..., 8:].copy())
    np.testing.assert_array_equal(shown[0], shown[1])
    np.testing.assert_array_equal(shown[0][1], shown[2][1])
    assert (shown[0][0] != shown[2][0]).all()
    assert (shown[2][0, :, 2] == 1.0).all()  # the spread of the masses waited for the match


# -- worker processes --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=ENGINES.values(), ids=list(ENGINES))
def workers(request) -> Iterator[ProcessSimulation]:
    # Numba is imported in two processes, not in four.
    sim = ProcessSimulation(request.param, 5, workers=2, compiled=request.param is OUTSIDE)
    yield sim
    sim.close()


@pytest.mark.check
def test_workers_play_save_and_load_the_same_bits(workers):
    here = make(workers.game, 5)
    for sim in (workers, here):
        sim.reset(seed=1)
    np.testing.assert_array_equal(play(workers, 0, 20), play(here, 0, 20))
    snapshot = here.snapshot()
    expected = play(here, 1, 10)
    workers.restore(snapshot)
    again = workers.snapshot()
    np.testing.assert_array_equal(play(workers, 1, 10), expected)
    here.restore(again)
    np.testing.assert_array_equal(play(here, 1, 10), expected)


def test_workers_load_records(workers):
    here = make(workers.game, 5)
    mask = np.array([False, True, False, True, True])
    for sim in (workers, here):
        sim.reset(seed=1)
        play(sim, 0, 8)
        records = sim.states[mask].copy()
        records["pucks"]["y_m"] += 0.01
        sim.load_states(records, mask)
    np.testing.assert_array_equal(play(workers, 1, 10), play(here, 1, 10))


def test_workers_draw(workers):
    workers.reset(seed=1)
    if workers.game is LOGGED:
        with pytest.raises(NotImplementedError, match="LoggedPucks has no method render"):
            workers.render(4)
    else:
        for lane in (0, 2, 4, -1):
            expected = body_game.draw(None, None, workers.states[lane])
            np.testing.assert_array_equal(workers.render(lane), expected)


def test_a_log_given_up_by_a_worker_is_an_answer_and_no_failure_of_the_worker(workers, monkeypatch):
    sim = make(LOGGED)
    with monkeypatch.context() as patch:
        patch.setattr(input_log, "LOG_BYTES", 0)
        sim.reset(seed=0)
        play(sim, 0)
        answer = answered(sim, "save", None)
    assert "was given up" in str(answer)
    workers.reset(seed=0)
    with monkeypatch.context() as patch:
        patch.setattr(workers, "_ask", lambda call: [answer, answer])
        with pytest.raises(RuntimeError, match="was given up"):
            workers.snapshot()
    workers.restore(workers.snapshot())
