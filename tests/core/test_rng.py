"""Random streams of 8 bytes a lane."""

import hashlib
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaestra.core import rng


def splitmix64(state: int) -> int:
    """The published algorithm (Steele, Lea, Flood 2014) in unbounded integers."""
    z = (state + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@given(st.integers(0, 2**64 - 1))
def test_a_draw_is_the_top_53_bits_of_splitmix64(state: int):
    s = SimpleNamespace(rng=np.uint64(state))
    with np.errstate(over="ignore"):
        value = rng.uniform(s, 0.0, 1.0)
    assert value == (splitmix64(state) >> 11) * 2.0**-53
    assert int(s.rng) == (state + 0x9E3779B97F4A7C15) % 2**64


@given(st.integers(0, 2**64 - 1), st.integers(1, 1000))
def test_an_integer_is_below_its_limit(state: int, n: int):
    with np.errstate(over="ignore"):
        assert 0 <= rng.integer(SimpleNamespace(rng=np.uint64(state)), n) < n


def both_streams(draw: float) -> SimpleNamespace:
    """A record whose next draw in [0, 1) is ``draw``, of the rules and of the scripts."""
    stream = np.uint64(rng.stream_before(np.array(draw)))
    return SimpleNamespace(rng=stream, script_rng=stream)


@pytest.mark.parametrize("integer", [rng.integer, rng.script_integer])
def test_every_integer_below_the_limit_is_drawn(integer: Callable[..., int]):
    with np.errstate(over="ignore"):
        assert [integer(both_streams((k + 0.5) / 5), 5) for k in range(5)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("uniform", [rng.uniform, rng.script_uniform])
def test_a_draw_is_a_share_of_the_way_between_its_bounds(uniform: Callable[..., float]):
    with np.errstate(over="ignore"):
        assert uniform(both_streams(0.25), 2.0, 4.0) == 2.5
        assert uniform(both_streams(0.0), -3.0, 4.0) == -3.0


def test_scripts_have_randomness_of_their_own():
    s = SimpleNamespace(rng=np.uint64(1), script_rng=np.uint64(2))
    with np.errstate(over="ignore"):
        rng.script_uniform(s, 0.0, 1.0)
    assert (int(s.rng), int(s.script_rng)) == (1, (2 + 0x9E3779B97F4A7C15) % 2**64)


@given(st.integers(0, 2**64 - 1))
def test_the_finaliser_has_an_inverse(state: int):
    with np.errstate(over="ignore"):
        assert int(rng.unmix64(rng.mix64(np.uint64(state)))) == state


@pytest.mark.parametrize("n", [1, 2, 8, 24, 999])
def test_a_stream_can_be_made_to_draw_any_outcome(n: int):
    streams = rng.stream_before((np.arange(n) + 0.5) / n)
    np.testing.assert_array_equal(rng.draw_integers(streams, np.ones(n, np.bool_), n), np.arange(n))


def test_the_opposite_stream_gives_the_other_outcome_of_a_fair_draw():
    streams = rng.lane_keys(np.arange(100, dtype=np.uint64), rng.SALT_RULES)
    opposite, everywhere = rng.opposite_stream(streams), np.ones(100, np.bool_)
    coins, others = (rng.draw_integers(s, everywhere, 2) for s in (streams, opposite))
    np.testing.assert_array_equal(coins, 1 - others)


def test_a_key_depends_on_its_seed_and_salt_alone():
    seeds = np.arange(1000, dtype=np.uint64)
    keys = rng.lane_keys(seeds, rng.SALT_RULES)
    np.testing.assert_array_equal(keys[7:9], rng.lane_keys(seeds[7:9], rng.SALT_RULES))
    assert len(set(keys.tolist()) | set(rng.lane_keys(seeds, rng.SALT_SCRIPTS).tolist())) == 2000


@pytest.mark.parametrize("seeds", [range(64), range(2**32, 2**32 + 64)])
def test_neighbouring_seeds_draw_what_is_not_alike(seeds: range):
    streams = rng.lane_keys(np.array(seeds, np.uint64), rng.SALT_RULES)
    everywhere = np.ones(64, np.bool_)
    draws = np.array([rng.draw_integers(streams, everywhere, 2**20) for _ in range(256)]) / 2**20
    assert abs(draws.mean() - 0.5) < 0.01  # standard error 0.0023
    assert abs(draws.var() - 1 / 12) < 0.005
    correlations = np.array(np.corrcoef(draws.T))[~np.eye(64, dtype=bool)]
    assert np.abs(correlations).max() < 0.35  # 5.6 standard errors


def test_uniforms_of_a_key_are_draws_of_a_stream_of_its_own():
    drawn = rng.keyed_uniforms("goals", 1000)
    start = int.from_bytes(hashlib.sha256(b"goals").digest()[:8], "little")
    assert drawn[:3].tolist() == [(splitmix64(start + k * 0x9E3779B97F4A7C15) >> 11) * 2.0**-53 for k in range(3)]
    np.testing.assert_array_equal(drawn[:10], rng.keyed_uniforms("goals", 10))
    assert abs(np.corrcoef(drawn, rng.keyed_uniforms("goal", 1000))[0, 1]) < 0.1
