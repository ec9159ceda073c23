"""What the hashes of a recording see, and that machine code and plain Python give the same ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import palaestra
from palaestra.core.compile.linker import jit_disabled
from palaestra.core.run.call_guard import InterruptedCallError
from palaestra.replay import Recorder, ReplayError, verify
from palaestra.replay import recording as replay_recording
from palaestra.replay import trace as replay_trace
from palaestra.replay.file import RESET, STEP
from palaestra.replay.lane_bytes import padding_mask
from palaestra.replay.lane_hashes import SET, begin_call, finish_call, lane_keys
from palaestra.replay.trace import ROOM, Trace

pytestmark = pytest.mark.jitless

RAID = "test/Raid-v0"
CARTPOLE = "palaestra/CartPole-v0"
palaestra.register(RAID, "games.two_team:game", family="test")


def mixed(z: int) -> int:
    """The finaliser of splitmix64."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def hashes_of(sim: Any, before: list[int]) -> list[int]:
    """Hashes of the lanes after an operation, from the description of them."""
    b, found = sim.buffers, []
    padding = padding_mask(b.states.dtype).tolist()
    for lane, hashed in enumerate(before):
        words = np.frombuffer(b.states[lane].tobytes(), np.uint64).tolist()
        words = [word & mask for word, mask in zip(words, padding, strict=True)]
        numbers = [*b.masks[lane].tobytes(), *b.rewards[lane].view(np.uint32).tolist()]
        numbers += [*b.agent_terminated[lane].tolist(), int(b.terminated[lane]) + 2 * int(b.truncated[lane])]
        keys = lane_keys(len(words) + len(numbers)).tolist()
        nh = sum((w + k) % 2**32 * ((w + k) % 2**64 >> 32) for w, k in zip(words, keys, strict=False))
        nh += sum(n * (k >> 32) for n, k in zip(numbers, keys[len(words) :], strict=True))
        found.append(mixed((mixed((hashed + nh) % 2**64) + sum(words) + sum(numbers)) % 2**64))
    return found


def test_keys_are_the_published_stream_of_splitmix64():
    assert [hex(key) for key in lane_keys(3)] == ["0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f"]


def test_hashes_are_those_of_their_description():
    sim = palaestra.make_batch(RAID, 2, opponents={"red": "mix", "blue": "fighter"}, horizon=4)
    expected = [[0, 0]]
    with Recorder(sim) as recorder:
        sim.reset(seed=3)
        expected.append(hashes_of(sim, expected[-1]))
        for _ in range(6):
            sim.step()
            expected.append(hashes_of(sim, expected[-1]))
    checks = recorder.replay().checks
    assert checks.view("<u8")[..., 0].tolist() == expected[1:]


@pytest.fixture
def followed() -> tuple[Any, Trace]:
    """A simulation after its reset, and what follows it."""
    sim = palaestra.make_batch(RAID, 2, opponents={"red": "runner", "blue": "fighter"})
    trace = Trace(sim, 1)
    trace.begin(RESET)
    sim.reset(seed=1)
    trace.finish(RESET)
    return sim, trace


def test_each_bit_that_is_written_by_hand_is_seen_and_padding_and_results_are_free(followed: tuple[Any, Trace]):
    sim, trace = followed
    b = sim.buffers
    padded = padding_mask(b.states.dtype).view(np.uint8) == 0
    assert padded.any()
    assert not padded.all()
    arrays = [(b.states, ~padded), (b.masks, None), (b.rewards, False), (b.agent_terminated, False)]
    arrays += [(b.terminated, False), (b.truncated, False)]
    for array, decides in arrays:
        memory = array.view(np.uint8).reshape(2, -1)
        every = 37 if jit_disabled() and memory.shape[1] > 37 else 1
        for byte in range(0, memory.shape[1], every):
            memory[1, byte] ^= 1 << byte % 8
            is_seen = True if decides is None else decides if decides is False else bool(decides[byte])
            assert trace.begin(SET) == (1 if is_seen else -1), (byte, array.dtype)
            memory[1, byte] ^= 1 << byte % 8
    assert trace.begin(SET) == -1


def run(followed: tuple[Any, Trace], values: list[tuple[int, int]]) -> bytes:
    """The hash of lane 1 after decisions that leave the two streams of its record so."""
    sim, trace = followed
    for value in values:
        trace.begin(STEP)
        sim.states["rng"][1], sim.states["script_rng"][1] = value
        trace.finish(STEP)
    return trace.check()[1].tobytes()


def test_swapped_words_and_swapped_decisions_are_seen(followed: tuple[Any, Trace]):
    sim, _ = followed
    runs = [[(1, 2), (3, 4), (5, 6)], [(2, 1), (3, 4), (5, 6)], [(3, 4), (1, 2), (5, 6)], [(1, 2), (5, 6)]]
    found = [run((sim, Trace(sim, 1)), values) for values in [*runs, runs[0]]]
    assert len(set(found)) == len(runs)
    assert found[0] == found[-1]


def test_each_bit_of_the_results_changes_the_hash_of_its_lane_alone(followed: tuple[Any, Trace]):
    sim, _ = followed
    b = sim.buffers

    def check() -> np.ndarray:
        trace = Trace(sim, 1)
        trace.begin(STEP)
        trace.finish(STEP)
        return trace.check()

    plain, seen = check(), set()
    for array in (b.rewards, b.agent_terminated, b.terminated, b.truncated):
        memory = array.view(np.uint8).reshape(2, -1)
        for byte in range(memory.shape[1]):
            memory[0, byte] ^= 1
            found = check()
            memory[0, byte] ^= 1
            assert found[1].tobytes() == plain[1].tobytes()
            seen.add(found[0].tobytes())
    assert len(seen | {plain[0].tobytes()}) == 1 + sum(a[0].nbytes for a in (b.rewards, b.agent_terminated)) + 2


def test_results_belong_to_the_user_after_other_calls_too():
    sim = palaestra.make_batch(CARTPOLE, 2, autoreset_mode="off", horizon=3)
    some = np.array([True, False])
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        kept = sim.snapshot()
        sim.step()
        sim.rewards *= -0.5
        sim.seed(5, some)
        sim.reset(some)
        sim.rewards += 7.0
        sim.restore(kept)
        sim.rewards += 7.0
        sim.reset(some)
    assert verify(recorder.replay()).ok


def test_calls_after_the_last_operation_are_left_out():
    sim = palaestra.make_batch(CARTPOLE, 1)
    with Recorder(sim) as recorder:
        sim.reset(seed=1)
        sim.set_parameters(gravity_mps2=3.0)
    assert set(recorder.replay().change_operations.tolist()) == {0}


def record_long() -> tuple[Any, list[np.ndarray]]:
    """More operations, and more ends of matches, than a trace has room for at first; and the actions."""
    sim = palaestra.make_batch(CARTPOLE, 3, autoreset_mode="same_step", horizon=2)
    rng, actions = np.random.default_rng(0), []
    with Recorder(sim, check_every=7) as recorder:
        sim.reset(seed=1)
        for decision in range(2 * ROOM + 5):
            actions.append(rng.integers(0, 2, (3, 1)))
            sim.step(actions[-1], lanes=np.arange(3) != decision % 4)
            actions[-1][np.arange(3) == decision % 4] = 0
    return recorder.replay(), actions


def test_a_recording_grows():
    replay, actions = record_long()
    np.testing.assert_array_equal(replay.actions, actions)
    assert len(replay.match_rows) > ROOM + 3
    assert len(replay.checks) == -(-(2 * ROOM + 6) // 7)
    assert verify(replay).ok


@pytest.mark.check
@pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")
def test_plain_python_gives_the_hashes_of_machine_code(monkeypatch: pytest.MonkeyPatch):
    def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
        return np.errstate(over="ignore")(function)

    replay, _ = record_long()
    monkeypatch.setattr(replay_trace, "compiled_calls", lambda: (quiet(begin_call), quiet(finish_call)))
    assert verify(replay).ok


def interrupted(call: Callable[[], Any], number: int) -> bool:
    """Raises KeyboardInterrupt before the instruction ``number`` of a call in the files of the recorder; else False."""
    files = {replay_recording.__file__, replay_trace.__file__}
    instructions = iter(range(number))

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(instructions, None) is None:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.check
@pytest.mark.skipif(jit_disabled(), reason="takes a minute")
@pytest.mark.usefixtures("rules_do_not_change")
@pytest.mark.parametrize("call", ["step", "step of some", "snapshot"])
def test_an_interrupt_between_any_two_instructions_leaves_a_recording_that_verifies(call: str):
    """Takes a second each: some hundred instructions. Every other operation has no check, so no copy of its hash."""
    number, outcomes = 0, set()
    while True:
        sim = palaestra.make_batch(CARTPOLE, 2)
        recorder = Recorder(sim, check_every=2)
        sim.reset(seed=1)
        earlier = sim.snapshot()
        for _ in range(ROOM - 2 + number % 2):  # the next call fills the room, or finds it full
            sim.step()
        calls: dict[str, Callable[[], Any]] = {
            "step": sim.step,
            "step of some": lambda sim=sim: sim.step(lanes=np.array([True, False])),
            "snapshot": sim.snapshot,
        }
        was_interrupted = interrupted(calls[call], number)
        try:
            try:
                sim.restore(sim.snapshot())
            except InterruptedCallError:
                sim.restore(earlier)
            sim.step()
            outcomes.add("goes on")
        except ReplayError:
            outcomes.add("has stopped")
        assert verify(recorder.replay()).ok, number
        if not was_interrupted:
            break
        number += 1
    assert number > 50
    assert outcomes == ({"goes on"} if call == "snapshot" else {"goes on", "has stopped"})
