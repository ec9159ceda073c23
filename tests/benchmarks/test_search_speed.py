"""The speed measurements of SearchQA: what is played and counted, and the measurements from what was measured."""

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import search_speed as search
import speed
from palaestra import registry
from palaestra.adapters.retrieval_server import Server
from palaestra.cli.measure import Benchmark, Timing

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = {"passages": 300}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"EPISODES": 3, "VECTOR_EPISODES": 2, "LANES": 6, "ROUNDS": 2, "PASSAGES": 300}.items():
        monkeypatch.setattr(search, name, value)


def test_a_turn_has_the_tags_of_search_r1():
    turns = search.turns_of([("Ada", "rival", "Bob"), ("Bob", "year", "1907")], ("1907", "no"))
    assert turns[1] == "<think>Who or what is the year of Bob?</think><search>Bob year</search>"
    assert turns[2] == "<think>That is 1907.</think><answer>1907</answer>"
    assert len(turns) == 3


class Watched(gymnasium.Wrapper):
    """Notes rewards, and None for a reset."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.seen = list[Any]()

    def step(self, action: Any) -> Any:
        told = self.env.step(action)
        self.seen.append(told[1])
        return told

    def reset(self, **keywords: Any) -> Any:
        self.seen.append(None)
        return self.env.reset(**keywords)


def test_a_call_plays_episodes_of_right_turns_with_their_resets():
    env = Watched(gymnasium.make(search.FICTIONAL, form="text", **SMALL))
    benchmark = search.text_play(env)
    for _ in range(2):
        env.seen.clear()
        benchmark.call()
        assert env.seen == [None, *[0.0, 0.0, 1.0, None] * 3]
    assert benchmark.size == 9
    benchmark.close()


def test_each_step_of_a_lane_of_the_vector_is_a_right_turn(monkeypatch: pytest.MonkeyPatch):
    env = registry.make_vec(search.FICTIONAL, 4, form="text", autoreset_mode="same_step", **SMALL)
    benchmark = search.vector_text_play(env)
    rewards, step = list[np.ndarray](), env.step
    monkeypatch.setattr(env, "step", lambda turns: rewards.append((told := step(turns))[1].copy()) or told)
    benchmark.call()
    assert np.array(rewards).tolist() == [[0.0] * 4, [0.0] * 4, [1.0] * 4] * 2
    assert benchmark.size == 24
    benchmark.close()


def test_a_plan_that_is_not_rewarded_is_no_benchmark(monkeypatch: pytest.MonkeyPatch):
    turns_of = search.turns_of
    monkeypatch.setattr(search, "turns_of", lambda path, answers: turns_of(path, ["wrong"]))
    with pytest.raises(AssertionError, match="wrong</answer> does not answer"):
        search.text_play(gymnasium.make(search.FICTIONAL, form="text", **SMALL))
    with pytest.raises(AssertionError):
        search.vector_text_play(
            registry.make_vec(search.FICTIONAL, 4, form="text", autoreset_mode="same_step", **SMALL)
        )


def test_every_step_of_a_lane_is_a_turn_of_the_oracle(monkeypatch: pytest.MonkeyPatch):
    made, token_batch = list[Any](), search.token_batch
    monkeypatch.setattr(search, "token_batch", lambda *a, **k: made.append(token_batch(*a, **k)) or made[-1])
    benchmark = search.token_play(search.FRESH, **search.FRESH_SIZE)
    (sim,), rewards = made, list[np.ndarray]()
    for _ in range(6):
        benchmark.call()
        rewards.append(sim.rewards[:, 0].copy())
    assert np.array(rewards).tolist() == [[0.0] * 6, [0.0] * 6, [1.0] * 6] * 2
    assert (sim.game.world.options.entities, sim.game.world.options.relations) == (24, 8)
    assert benchmark.size == 6
    benchmark.close()


def test_the_memory_of_a_simulation_is_that_beside_its_world():
    few, many = (search.simulation_bytes(search.FICTIONAL, 64, passages=n) for n in (300, 3000))
    assert many == pytest.approx(few, rel=0.02)
    records = search.token_batch(search.FICTIONAL, 64, **SMALL).states.nbytes
    assert records < few < 4 * records


def test_the_client_sends_all_queries_and_this_process_answers_them():
    world, index = search.made_world(100)
    asked, retrieve = list[str](), index.search
    index.search = lambda queries, k=1: asked.extend(queries) or retrieve(queries, k)  # type: ignore[method-assign]
    queries = [f"{name} mayor" for name in world.names[:3]] * 50
    with Server(index, port=0) as server:
        asked.clear()
        wall, cpu = search.answered(server, queries)
    assert asked == queries
    assert wall > 0
    assert cpu > 0
    worlds: Any = SimpleNamespace(topk=3)
    with Server(worlds=worlds, port=0) as other, pytest.raises(RuntimeError, match=r"/retrieve: .*seed"):
        search.answered(other, queries)


def test_turns_are_counted_by_the_cpu_time_of_one_core(monkeypatch: pytest.MonkeyPatch):
    nothing = Benchmark("", lambda: None)
    for play in ("text_play", "vector_text_play", "token_play"):
        monkeypatch.setattr(search, play, lambda *_, **__: nothing)
    monkeypatch.setattr(search, "simulation_bytes", lambda id, lanes, passages: lanes * 4_000_000)
    monkeypatch.setattr(search, "timed", lambda *benchmarks: [Timing(9.0, 20e-6, 1), Timing(9.0, 1.0, 60e3)])
    rows = [*search.texts(print), *search.tokens(print)]
    assert [round(row.value or 0) for row in rows] == [50_000, 60_000, 50_000, 60_000, 24]
    assert [row.holds for row in rows] == [True, False, False, False, False]


def test_queries_are_counted_by_the_wall_and_making_by_the_cpu(monkeypatch: pytest.MonkeyPatch):
    turns = iter([(0.4, 0.8), (0.5, 0.1)])
    monkeypatch.setattr(search, "answered", lambda server, queries: (next(turns), asked.append(len(queries)))[0])
    asked = list[int]()
    (served,) = search.serving(print)
    assert asked == [asked[0]] * 2
    assert served.value == pytest.approx(asked[0] / 0.4)
    assert served.note == f"CPU us a query of the server: {1e6 * 0.1 / asked[0]:.1f}"
    (made,) = search.making(print)
    assert made.holds


def test_the_bars_of_measurements():
    table = {of: (bar, more) for of, _, bar, more in speed.MEASUREMENTS.values()}
    assert table[search.making] == (1.0, False)
    assert [table[of] for of in (search.texts, search.tokens, search.serving)] == [
        (45e3, True),
        (3e5, True),
        (2e4, True),
    ]
