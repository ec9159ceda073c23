"""The speed measurements of pursuit: what is played, which bar decides, and the measurements from what was measured."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import palaestra
import pursuit_speed as pursuit
import speed
import start_worker
import team_speed
from measurement import NotHere
from palaestra import registry
from palaestra.cli.measure import Benchmark, Timing
from palaestra.games.pursuit.graphs import class_of, read

pytestmark = pytest.mark.slow


def played(per_second: float, size: float = 4096) -> Timing:
    return Timing(size / per_second, size / per_second, size)


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Simulations of plain Python; those that were made."""
    made: list[Any] = []
    make_batch = registry.make_batch

    def make(*args: Any, **keywords: Any) -> Any:
        made.append(make_batch(*args, compiled=False, **keywords))
        return made[-1]

    for module in (registry, palaestra):
        monkeypatch.setattr(module, "make_batch", make)
    return made


@pytest.mark.parametrize(("tag", "decisive"), [(5e6, 0), (4e6, 1)])
def test_a_busy_machine_is_held_to_the_share_and_another_to_the_speed(
    monkeypatch: pytest.MonkeyPatch, tag: float, decisive: int
):
    asked: list[tuple[str, dict[str, Any]]] = []
    speeds = (3.1e6, 4.2e6, 1.6e6, 2.5e6, 3.3e6, 1.2e6, 1.55e6)

    def play(id: str, **keywords: Any) -> Benchmark:
        asked.append((id, keywords))
        return Benchmark(id, lambda: None)

    monkeypatch.setattr(pursuit, "random_play", play)
    monkeypatch.setattr(pursuit, "timed", lambda *s: [*map(played, speeds), played(tag)])
    rows = pursuit.speeds(print)
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    assert [speed.value for speed, _ in pairs] == pytest.approx(speeds)
    assert [share.value for _, share in pairs] == pytest.approx([100 * speed / tag for speed in speeds])
    assert [pair[decisive].holds for pair in pairs] == [True, True, True, False, False, False, True]
    assert [pair[1 - decisive].holds for pair in pairs] == [None] * 7
    shown = [(graph, word) for graph in ("grid:10x10", "regular:200x4") for word in ("flat", "hops", "nodes")]
    given = [(words["graph"], words["observation"], words["pursuers"]) for _, words in asked[:6]]
    assert given == [(*words, 3) for words in shown]
    assert [id for id, _ in asked] == [pursuit.PURSUIT] * 6 + [pursuit.CONFRONT, team_speed.TAG]


def test_all_agents_move_at_random(uncompiled: list[Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(team_speed, "LANES", 4)
    benchmark = team_speed.random_play(pursuit.PURSUIT, graph="grid:3x3", pursuers=3)
    benchmark.call()
    benchmark.call()
    (sim,) = uncompiled
    moves = np.concatenate([sim.actions[role].reshape(4, -1) for role in ("pursuer", "evader")], axis=1)
    assert moves.shape == (4, 4)
    assert all(len(np.unique(row)) > 1 for row in moves)
    assert (sim.states["current_player"] < 0).all()
    benchmark.close()


def test_pettingzoo_plays_the_game_of_the_same_size(monkeypatch: pytest.MonkeyPatch):
    asked: dict[str, Any] = {}
    monkeypatch.setitem(sys.modules, pursuit.SISL, SimpleNamespace(parallel_env=asked.update))  # type: ignore[arg-type]
    pursuit.sisl()
    assert asked == {"n_pursuers": 8, "n_evaders": 1, "x_size": 16, "y_size": 16}


def test_our_parallel_env_has_masks_and_comes_first(monkeypatch: pytest.MonkeyPatch):
    envs: list[Any] = []
    make_parallel = registry.make_parallel
    monkeypatch.setattr(registry, "make_parallel", lambda *a, **k: make_parallel(*a, compiled=False, **k))
    monkeypatch.setattr(pursuit, "sisl", lambda: "theirs")
    monkeypatch.setattr(pursuit, "parallel", lambda env: envs.append(env) or Benchmark("", lambda: None))
    monkeypatch.setattr(pursuit, "timed", lambda *s: [played(50e3, 1), played(500, 1)])
    (measurement,) = pursuit.next_to_sisl(print)
    assert (measurement.value, measurement.bar, measurement.holds) == (pytest.approx(100.0), 80.0, True)
    assert measurement.note == "decisions/s: 50,000 to 500"
    theirs, ours = envs
    assert theirs == "theirs"
    observations, _ = ours.reset(seed=0)
    assert len(observations) == 9
    assert all(np.asarray(seen["action_mask"]).shape == (5,) for seen in observations.values())
    assert len(ours.sim.game.world.hops[0]) == 256
    ours.close()


def test_without_pettingzoos_pursuit_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, pursuit.SISL, None)
    with pytest.raises(NotHere, match=r'pip install "pettingzoo\[sisl\]>=1\.27"'):
        pursuit.sisl()


def test_one_match_counts_steps_of_the_match():
    measurement = pursuit.single_measurement(Timing(1.0, 10e-6, 4))
    assert (measurement.value, measurement.holds) == (pytest.approx(100e3), True)
    assert measurement.note == "us a step: 10.0"


def test_the_slowest_further_graph_counts(monkeypatch: pytest.MonkeyPatch):
    asked: list[dict[str, Any]] = []
    walls = iter(([9.0, 0.01, 0.03, 0.01, 0.01, 0.01], [1.0, 0.02, 0.01, 0.01, 0.015, 0.01]))

    def fake(installation: Any, measurement: str, **words: Any) -> dict[str, Any]:
        assert measurement == "presets"
        asked.append(words)
        return {"wall_s": next(walls)}

    monkeypatch.setattr(pursuit, "start", fake)
    (measurement,) = pursuit.further_games(print)
    assert (measurement.value, measurement.holds) == (pytest.approx(10.0), True)
    assert (
        measurement.note
        == "the slowest of petersen 10.0, cube:4 10.0, torus:8x8 10.0, grid:16x16 10.0, regular:200x4 10.0"
    )
    assert all(start_worker.load(words["game"])(**{words["keyword"]: words["values"][1]}) for words in asked)


def test_further_graphs_share_a_kernel():
    assert {class_of(read(name)) for name in pursuit.FURTHER} == {5}
    assert class_of(read(pursuit.SMALL_POOL)) == 9


def test_a_pool_is_measured_beside_a_small_one_of_its_kernel(monkeypatch: pytest.MonkeyPatch):
    found = iter(({"wall_s": 4.0, "resident_bytes": 9e7}, {"wall_s": 3.0, "resident_bytes": 6e7}))

    def fake(installation: Any, measurement: str, **words: Any) -> dict[str, Any]:
        assert measurement == "further"
        assert words == {"id": pursuit.PURSUIT, "first": {"graph": "dungeons:8x200"}, "then": {"graph": pursuit.POOL}}
        return {**next(found), "world_bytes": 50e6}

    monkeypatch.setattr(pursuit, "start", fake)
    seconds, kept = pursuit.pools(print)
    assert (seconds.value, seconds.holds) == (3.0, True)
    assert (kept.value, kept.holds) == (50.0, False)
    assert kept.note.endswith(": 60.0")
    assert pursuit.pool_measurements([{"wall_s": 1.0, "world_bytes": 1, "resident_bytes": None}])[1].note == ""


def test_a_further_game_is_measured_with_its_arrays(uncompiled: list[Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(start_worker, "resident_bytes", iter((5_000, 9_000)).__next__)
    found = start_worker.further(pursuit.PURSUIT, {"graph": "petersen"}, {"graph": "dungeons:3x20"})
    assert found["resident_bytes"] == 4_000
    assert (found["wall_s"] or 0) > 0
    first, then = uncompiled
    assert (len(first.game.world.nodes), len(then.game.world.nodes)) == (1, 3)
    assert found["world_bytes"] == sum(array.nbytes for array in then.game.world[1:])
    monkeypatch.setattr(start_worker, "resident_bytes", lambda: None)
    assert start_worker.further(pursuit.PURSUIT, {}, {"graph": "petersen"})["resident_bytes"] is None


def test_each_measurement_has_a_name():
    functions = (pursuit.speeds, pursuit.next_to_sisl, pursuit.single, pursuit.further_games, pursuit.pools)
    names = [name for name in speed.MEASUREMENTS if name.startswith("pursuit")]
    assert [speed.MEASUREMENTS[name][0] for name in names] == list(functions)
