"""The speed measurements of the team games: benchmarks, ratios, and the message without mpe2."""

import sys

import pytest

import team_speed
from measurement import NotHere
from palaestra import registry
from palaestra.cli.measure import Timing

pytestmark = pytest.mark.slow


def test_a_batch_plays_all_its_agents_by_actions_from_outside(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(team_speed, "LANES", 8)
    made = []
    make_batch = registry.make_batch
    monkeypatch.setattr(registry, "make_batch", lambda *a, **k: made.append(make_batch(*a, **k)) or made[-1])
    benchmark = team_speed.random_play(team_speed.TAG)
    (sim,) = made
    assert (sim.states["current_player"] == -1).all()
    assert benchmark.size == 8
    seen = []
    for _ in range(3):
        benchmark.call()
        seen.append(sim.actions.copy())
    assert (sim.states["steps"] == 3).all()
    assert (seen[0] != seen[1]).any()
    benchmark.close()


def test_a_parallel_env_is_reset_after_a_match():
    env = registry.make_parallel(team_speed.TAG, max_cycles=3)
    benchmark = team_speed.parallel(env)
    for _ in range(7):
        benchmark.call()
    assert env.sim.states["steps"][0] == 1
    benchmark.close()


def test_without_mpe2_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mpe2.simple_tag_v3", None)
    with pytest.raises(NotHere, match=r'pip install "mpe2>=1.1"'):
        team_speed.mpe2("simple_tag_v3")


def test_a_ratio_is_theirs_over_ours_per_decision():
    ours, theirs = Timing(1.0, 1e-3, 4000), Timing(1.0, 1e-3, 1)
    measurement = team_speed.ratio("about", ours, theirs, 500.0)
    assert measurement.value == pytest.approx(4000)
    assert measurement.holds
    assert measurement.note == "decisions/s: 4,000,000 to 1,000"
