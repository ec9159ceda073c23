"""Which engine flies a game, and what reaches it: words, fallback, pickles, weather."""

from __future__ import annotations

import math
import pickle
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import palaestra
from palaestra.core.compile.linker import record_view
from palaestra.games.ucav import flight, track, weather
from palaestra.games.ucav.body import BODY, NOT_FLOWN
from palaestra.registry import make_game

pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")
from palaestra.games.ucav.aircraft import generated
from palaestra.games.ucav.aircraft.reader import UnsupportedAircraft

pytestmark = pytest.mark.check

TRACK, DOGFIGHT = "palaestra/UcavTrack-v3", "palaestra/UcavDogfight-v2"


def make(lanes: int = 1, id: str = TRACK, **keywords: Any) -> Any:
    sim = palaestra.make_batch(id, lanes, **keywords)
    sim.reset(seed=3)
    return sim


def flown(sim: Any, steps: int = 20) -> bytes:
    """The bodies after some decisions without a hand on the stick."""
    for _ in range(steps):
        sim.step(np.zeros_like(sim.actions))
    bodies = sim.states["body"].tobytes()
    sim.close()
    return bodies


# ------------------------------------------------------------------------------------------------------------- engines


@pytest.mark.parametrize("name", ["UcavTrack-v3", "UcavPursuit-v2", "UcavDogfight-v2", "UcavDogfight-Contest-v2"])
def test_an_engine_is_a_keyword_of_every_id(name):
    own = make_game(f"palaestra/{name}")[0]
    assert own.physics is None
    assert own.advance is not None
    installed = {"engine": "jsbsim", "airframe": "f16-jsbsim", "planet": "wgs84"}
    other = make_game(f"palaestra/{name}", **installed)[0]
    assert other.physics_options == {"physics_hz": 60, "frames": 6, "airframe": "f16-jsbsim", "planet": "wgs84"}


def test_a_rate_without_a_whole_number_of_frames_in_a_period_is_refused():
    with pytest.raises(ValueError, match="physics_hz must be a multiple of 10, got 64"):
        track.game(physics_hz=64)


def test_an_aircraft_that_cannot_be_compiled_is_flown_by_jsbsim_and_the_user_is_told(monkeypatch: pytest.MonkeyPatch):
    def refuse(airframe: str, planet: str) -> None:
        raise UnsupportedAircraft("f16.xml: <warp_drive>: a component that is not known")

    monkeypatch.setattr(flight, "compiled_aircraft", refuse)
    flight.default_engine.cache_clear()
    flight.compiled_hooks.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="JSBSim itself flies 'f16', more slowly: .*<warp_drive>"):
            assert track.game().physics is not None
        with warnings.catch_warnings():  # once is enough
            warnings.simplefilter("error")
            assert track.game().physics is not None
        with pytest.raises(UnsupportedAircraft, match="<warp_drive>"):
            track.game(engine="compiled")
    finally:
        flight.default_engine.cache_clear()


def test_hooks_travel_by_name_and_worker_processes_fly_the_same_bits():
    hooks = flight.compiled_hooks("f16", "still", 60)
    for hook in (hooks.load, hooks.advance):
        assert pickle.loads(pickle.dumps(hook)) is hook
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        flight.nonsense  # type: ignore[attr-defined]  # noqa: B018
    assert flown(make(2, workers=2)) == flown(make(2))


def test_another_rate_is_another_flight_and_the_same_one_is_the_same_game():
    assert make_game(TRACK)[0] is make_game(TRACK)[0]
    slow, fast = (np.frombuffer(flown(make(physics_hz=hz)), BODY)[0] for hz in (60, 120))
    assert slow["altitude_m"] != fast["altitude_m"]
    assert slow["altitude_m"] == pytest.approx(fast["altitude_m"], abs=1.0)


def test_the_rules_digest_knows_aircraft_and_planet():
    digests = {
        flight.FlightDigest(airframe, planet)() for airframe in ("f16", "f16-jsbsim") for planet in ("still", "wgs84")
    }
    assert len(digests) == 4
    assert "GPL" in flight.FlightDigest("f16", "still").licence()
    assert flight.compiled_version() == f"compiled from {flight.jsbsim_version()}"


def test_a_flight_of_zeros_begins_as_the_aircraft_record_says():
    sim = make()
    sim.step(np.zeros_like(sim.actions))
    sim.states["body"]["altitude_m"], sim.states["body"]["roll_rad"] = 9000.0, 1.0
    sim.states["flight"] = np.zeros((), sim.states["flight"].dtype)
    sim.step(np.zeros_like(sim.actions))
    body = sim.states["body"][0, 0]
    assert body["altitude_m"] == pytest.approx(9000.0, abs=20.0)
    assert body["roll_rad"] == pytest.approx(1.0, abs=0.1)
    sim.close()


def test_a_flight_whose_numbers_are_no_longer_finite_stops_and_says_so():
    sim = make()
    before = sim.states["body"]["altitude_m"].copy()
    sim.states["flight"]["inertial_p"] = np.nan
    sim.step(np.zeros_like(sim.actions))
    assert sim.states["info"]["end_reason"][0] == sim.game.all_end_reasons.index("not_finite")
    np.testing.assert_array_equal(sim.states["body"]["altitude_m"], before)
    sim.close()


def test_an_aircraft_whose_throttle_is_below_zero_is_neither_started_nor_flown():
    hooks = flight.compiled_hooks("f16", "still", 60)
    s: Any = record_view(np.zeros(1, np.dtype([("body", BODY, (3,)), ("flight", hooks.record, (3,))])))[0]
    for body, throttle in zip(s.body, (0.5, NOT_FLOWN, 0.5), strict=True):
        body.altitude_m, body.true_airspeed_mps, body.throttle_command = 5000.0, 250.0, throttle
    absent = s.body[1].tobytes()
    hooks.load(s, None, None)
    hooks.advance(s, None, None)
    assert s.body[1].tobytes() == absent
    assert s.body[0].north_m == s.body[2].north_m > 20.0
    s.body[2].throttle_command = NOT_FLOWN
    wreck = s.body[2].tobytes()
    hooks.advance(s, None, None)
    assert s.body[2].tobytes() == wreck
    assert s.body[0].north_m > 40.0


# ------------------------------------------------------------------------------------------------------ generated file


def test_a_changed_file_of_the_cache_is_written_anew(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    module = generated.import_source("palaestra_trial_one", "ANSWER = 42\n")
    assert module.ANSWER == 42
    (file,) = (tmp_path / "palaestra" / "aircraft").glob("palaestra_trial_one_*.py")
    assert str(file) == module.__file__
    file.write_text("ANSWER = 'of somebody else'\n")
    monkeypatch.delitem(generated.sys.modules, module.__name__)
    assert generated.import_source("palaestra_trial_one", "ANSWER = 42\n").ANSWER == 42
    assert file.read_text() == "ANSWER = 42\n"


def test_without_a_cache_the_file_lies_in_a_folder_of_the_process(tmp_path, monkeypatch: pytest.MonkeyPatch):
    blocked = tmp_path / "cache"
    blocked.write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    module = generated.import_source("palaestra_trial_two", "ANSWER = 43\n")
    assert module.ANSWER == 43
    assert "palaestra-aircraft-" in str(module.__file__)


def test_a_source_that_fails_leaves_no_module(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        generated.import_source("palaestra_trial_three", "ANSWER = 1 / 0\n")
    assert not [name for name in generated.sys.modules if name.startswith("palaestra_trial_three")]


# ------------------------------------------------------------------------------------------------------------- weather


@pytest.mark.parametrize("engine", flight.ENGINES)
def test_the_wind_carries_an_aircraft_and_its_airspeed_stays(engine: str):
    sims = make(engine=engine), make(engine=engine, wind_north_mps=20.0)
    still, windy = (np.frombuffer(flown(sim, 50), BODY)[0] for sim in sims)
    assert windy["north_m"] - still["north_m"] == pytest.approx(100.0, rel=0.02)
    assert windy["east_m"] == pytest.approx(still["east_m"], abs=2.0)
    assert windy["true_airspeed_mps"] == pytest.approx(still["true_airspeed_mps"], abs=0.5)


@pytest.mark.parametrize("engine", flight.ENGINES)
def test_thin_air_and_a_payload_let_an_aircraft_sink(engine: str):
    sims = make(engine=engine), make(engine=engine, density_deviation=-0.2), make(engine=engine, payload_kg=3000.0)
    normal, thin, heavy = (np.frombuffer(flown(sim, 60), BODY)[0] for sim in sims)
    for burdened in (thin, heavy):
        assert burdened["altitude_m"] < normal["altitude_m"] - 4.0
        assert burdened["load_factor_g"] < normal["load_factor_g"] - 0.01
    assert thin["calibrated_airspeed_mps"] / thin["true_airspeed_mps"] == pytest.approx(
        math.sqrt(0.8) * normal["calibrated_airspeed_mps"] / normal["true_airspeed_mps"], rel=0.01
    )


def test_without_weather_no_number_is_drawn_and_gusts_are_those_of_their_parameters():
    s: Any = SimpleNamespace(
        rng=np.uint64(1), parameters=SimpleNamespace(**{p.name: p.default for p in weather.WEATHER})
    )
    body: Any = SimpleNamespace()
    with np.errstate(over="ignore"):
        weather.start_weather(s, body)
        weather.change_weather(s, body)
        assert s.rng == 1
        assert (body.wind_north_mps, body.wind_east_mps, body.wind_down_mps) == (0.0, 0.0, 0.0)
        s.parameters.gust_mps, s.parameters.gust_s, s.parameters.wind_east_mps = 3.0, 2.0, 7.0
        weather.start_weather(s, body)
        winds = []
        for _ in range(20_000):
            weather.change_weather(s, body)
            winds.append((body.wind_north_mps, body.wind_east_mps, body.wind_down_mps))
    gusts = np.array(winds) - (0.0, 7.0, 0.0)
    np.testing.assert_allclose(gusts.std(0), 3.0, rtol=0.1)
    np.testing.assert_allclose(gusts.mean(0), 0.0, atol=0.4)
    lag = np.mean(gusts[20:] * gusts[:-20], axis=0) / gusts.var(0)  # two seconds later
    np.testing.assert_allclose(lag, math.exp(-1.0), atol=0.1)
    assert abs(np.mean(gusts[:, 0] * gusts[:, 1])) < 0.15 * 3.0**2  # the axes are independent
