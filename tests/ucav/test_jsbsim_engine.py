"""The engine behind the aircraft: an exact reset, documented units and signs, and flags for invalid states."""

from __future__ import annotations

import builtins
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from games.play import python

from palaestra.games.ucav.body import BODY, NOT_FLOWN

pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")
from palaestra.games.ucav.airframes import AIRFRAMES, import_jsbsim, root_folder
from palaestra.games.ucav.jsbsim_engine import (
    FIRST,
    LAST,
    MOST_IDLE,
    OUTPUTS,
    PLANETS,
    JsbsimEngine,
    idle_aircraft,
    read_model,
)

AIRCRAFT = 2
KINDS = [{"airframe": airframe, "planet": planet} for airframe in AIRFRAMES for planet in PLANETS]
GAME: Any = SimpleNamespace(
    state_dtype=np.dtype([("odd", "u1"), ("body", BODY, (AIRCRAFT,)), ("even", "u1")], align=True)
)


def make_states(lanes: int = 1) -> Any:
    """Level flight at 6 km, two aircraft of different speed and height."""
    states: Any = np.zeros(lanes, GAME.state_dtype)
    body = states["body"]
    body["altitude_m"] = (6000.0, 4500.0)
    body["true_airspeed_mps"] = (240.0, 290.0)
    body["heading_rad"] = (0.3, 5.9)
    body["pitch_rad"] = (0.05, -0.1)
    body["roll_rad"] = (0.2, -2.0)
    body["north_m"] = (0.0, 3000.0)
    body["east_m"] = (-700.0, 20.0)
    body["throttle_command"] = (0.4, 0.9)
    return states


def look(states: Any, lanes: tuple[int, ...]) -> bytes:
    """The bytes of the records without their padding, which NumPy's copies leave undefined."""
    return b"".join(states["body"][name][list(lanes)].tobytes() for name in BODY.names or ())


def fly(engine: JsbsimEngine, states: Any, seed: int, periods: int, lanes: tuple[int, ...] = (0,)) -> bytes:
    """Random stick, a new one every half second; the bytes of every record on the way."""
    random = np.random.default_rng(seed)
    record = [look(states, lanes)]
    for period in range(periods):
        if period % 5 == 0:
            for name, low, high in (("aileron", -1, 1), ("elevator", -0.5, 1), ("rudder", -1, 1), ("throttle", 0, 1)):
                states["body"][f"{name}_command"][list(lanes)] = random.uniform(low, high, AIRCRAFT)
        engine.advance(states, lanes)
        record.append(look(states, lanes))
    return b"".join(record)


@pytest.fixture
def no_idle_aircraft():
    idle_aircraft.clear()
    yield
    idle_aircraft.clear()


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    """Corrected aircraft go to a folder of the tests, not to the user's cache."""
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


@pytest.fixture(scope="module", params=KINDS[1:3], ids=lambda kind: "-".join(kind.values()))
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def engine(kind):
    engine = JsbsimEngine(GAME, 2, **kind)
    yield engine
    engine.close()


@pytest.mark.check
@pytest.mark.usefixtures("no_idle_aircraft")
def test_the_same_start_gives_the_same_bytes_after_twenty_different_histories():
    veteran, novice = JsbsimEngine(GAME, 1), JsbsimEngine(GAME, 1)
    fresh = make_states()
    novice.load(fresh, [0])
    expected = fly(novice, fresh, seed=99, periods=60)
    past = make_states()
    for history in range(20):
        random = np.random.default_rng(history)
        past["body"]["altitude_m"] = random.uniform(400, 11000)
        past["body"]["true_airspeed_mps"] = random.uniform(40, 400)
        past["body"]["roll_rad"] = random.uniform(-math.pi, math.pi)
        past["body"]["pitch_rad"] = random.uniform(-1.4, 1.4)
        past["body"]["heading_rad"] = random.uniform(0, 2 * math.pi)
        past["body"]["north_m"] = random.uniform(-20000, 20000)
        past["body"]["throttle_command"] = random.uniform(0, 1)
        veteran.load(past, [0])
        fly(veteran, past, seed=history, periods=10 + 3 * history)
        again = make_states()
        veteran.load(again, [0])
        assert fly(veteran, again, seed=99, periods=60) == expected, f"history {history} left a trace"


@pytest.mark.usefixtures("no_idle_aircraft")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind.values()))
def test_the_start_is_exact_whatever_is_flown_and_around_what(kind):
    veteran, novice = JsbsimEngine(GAME, 1, **kind), JsbsimEngine(GAME, 1, **kind)
    fresh = make_states()
    novice.load(fresh, [0])
    expected = fly(novice, fresh, seed=99, periods=30)
    past, again = make_states(), make_states()
    for history, speed in enumerate((90.0, 240.0, 390.0)):
        past["body"]["true_airspeed_mps"] = speed
        veteran.load(past, [0])
        fly(veteran, past, seed=history, periods=30)
        again[:] = make_states()
        veteran.load(again, [0])
        assert fly(veteran, again, seed=99, periods=30) == expected, f"history {history} left a trace"


@pytest.mark.usefixtures("no_idle_aircraft")
def test_aircraft_of_one_kind_are_not_used_for_another():
    used = set()
    for kind in [*KINDS, {"physics_hz": 120}]:
        engine = JsbsimEngine(GAME, 1, **kind)
        assert not used & {*engine.aircraft[0]}
        used |= {*engine.aircraft[0]}
        engine.close()
    assert len(used) == AIRCRAFT * (len(KINDS) + 1)


@pytest.mark.usefixtures("no_idle_aircraft")
def test_aircraft_of_a_closed_engine_fly_the_same_bytes_in_the_next_one():
    flights, used = [], []
    for seed in (8, 9, 9):
        engine, states = JsbsimEngine(GAME, 1), make_states()
        engine.load(states, [0])
        flights.append(fly(engine, states, seed, periods=40))
        used.append(engine.aircraft[0])
        if seed == 9:
            idle_aircraft.clear()  # the third plant has aircraft of its own
        else:
            engine.close()
    assert {*used[0]} == {*used[1]}
    assert not {*used[0]} & {*used[2]}
    assert flights[1] == flights[2]


@pytest.mark.usefixtures("no_idle_aircraft")
def test_a_engine_that_is_open_shares_no_aircraft_and_few_are_kept():
    one, two = JsbsimEngine(GAME, 1), JsbsimEngine(GAME, 1)
    assert not {*one.aircraft[0]} & {*two.aircraft[0]}
    one.aircraft *= MOST_IDLE
    one.close()
    two.close()
    two.close()
    assert len(idle_aircraft[60, "f16-jsbsim", "wgs84"]) == MOST_IDLE


def test_an_aircraft_whose_throttle_is_below_zero_is_neither_started_nor_flown():
    states = make_states()
    states["body"]["throttle_command"][0, 1] = NOT_FLOWN
    absent = states["body"][0, 1].tobytes()
    engine = JsbsimEngine(GAME, 1)
    engine.load(states, (0,))
    engine.advance(states, (0,))
    assert states["body"][0, 1].tobytes() == absent
    states["body"]["throttle_command"][0, 0] = NOT_FLOWN
    wreck = states["body"][0, 0].tobytes()
    engine.advance(states, (0,))
    assert states["body"][0, 0].tobytes() == wreck != make_states()["body"][0, 0].tobytes()
    engine.close()


def test_lanes_do_not_touch_each_other(engine):
    together, alone = make_states(2), make_states(2)
    engine.load(together, [0, 1])
    engine.advance(together, [1])
    first = fly(engine, together, seed=1, periods=20, lanes=(0,))
    engine.load(alone, [0])
    assert fly(engine, alone, seed=1, periods=20, lanes=(0,)) == first


def test_the_start_is_what_the_rules_wrote(engine):
    states = make_states(2)
    wanted = states.copy()
    engine.load(states, [0, 1])
    for name in ("north_m", "east_m", "altitude_m", "roll_rad", "pitch_rad", "heading_rad", "true_airspeed_mps"):
        np.testing.assert_allclose(states["body"][name], wanted["body"][name], atol=1e-6, err_msg=name)
    body = states["body"][0]
    assert body["engine_n2_fraction"] == pytest.approx((0.906, 1.0))  # settled at throttles 0.4 and 0.9
    assert (body["finite"] == 1).all()
    assert (body["in_tables"] == 1).all()
    np.testing.assert_allclose(body["u_mps"], body["true_airspeed_mps"])


def test_every_output_has_the_unit_of_its_name(engine):
    states = make_states(2)
    engine.load(states, [0])
    fly(engine, states, seed=3, periods=30)
    body = states["body"][0]
    speed = np.sqrt(body["u_mps"] ** 2 + body["v_mps"] ** 2 + body["w_mps"] ** 2)
    np.testing.assert_allclose(speed, body["true_airspeed_mps"])
    earth = np.sqrt(sum(body[f"velocity_{axis}_mps"] ** 2 for axis in ("north", "east", "down")))
    np.testing.assert_allclose(earth, speed)
    np.testing.assert_allclose(np.sin(body["flight_path_angle_rad"]), -body["velocity_down_mps"] / speed)
    np.testing.assert_allclose(np.tan(body["angle_of_attack_rad"]), body["w_mps"] / body["u_mps"])
    np.testing.assert_allclose(np.sin(body["sideslip_rad"]), body["v_mps"] / speed)
    assert (body["heading_rad"] >= 0).all()
    assert (body["heading_rad"] <= 2 * math.pi).all()
    assert ((body["fuel_kg"] > 1000) & (body["fuel_kg"] < 1361)).all()


def test_position_is_the_integral_of_velocity(engine):
    states = make_states(2)
    engine.load(states, [0])
    start, travelled, before = states["body"][0].copy(), np.zeros((AIRCRAFT, 3)), None
    end = start
    axes = ("north", "east", "down")
    for _ in range(51):
        velocity = np.stack([states["body"][0][f"velocity_{axis}_mps"] for axis in axes], 1)
        travelled += 0.0 if before is None else (before + velocity) * 0.05
        before = velocity.copy()
        end = states["body"][0].copy()
        engine.advance(states, [0])
    for axis, column in (("north_m", 0), ("east_m", 1)):
        np.testing.assert_allclose(end[axis] - start[axis], travelled[:, column], rtol=2e-3, atol=2.0)
    np.testing.assert_allclose(end["altitude_m"] - start["altitude_m"], -travelled[:, 2], atol=1.0)


@pytest.mark.parametrize(
    ("stick", "answer", "sign"),
    [
        ("elevator_command", "q_radps", 1),
        ("aileron_command", "p_radps", 1),
        ("rudder_command", "r_radps", 1),
        ("elevator_command", "load_factor_g", 1),
    ],
)
def test_a_positive_command_moves_the_aircraft_the_documented_way(engine, stick, answer, sign):
    states = make_states(2)
    states["body"]["roll_rad"] = 0.0
    for lane, command in ((0, 0.5), (1, -0.3)):
        states["body"][stick][lane] = command
    engine.load(states, [0, 1])
    for _ in range(5):
        engine.advance(states, [0, 1])
    assert (sign * (states["body"][answer][0] - states["body"][answer][1]) > 0.005).all()


def test_the_gear_is_up_from_the_first_frame_on(engine):
    states = make_states(2)
    engine.load(states, [0])
    assert engine.aircraft[0][0].fdm["gear/gear-pos-norm"] == 0.0
    fly(engine, states, seed=0, periods=3)
    assert engine.aircraft[0][0].fdm["gear/gear-pos-norm"] == 0.0


def test_no_engine_state_that_can_be_read_survives_a_load(engine):
    """Looks at every property of the model, so that an actuator of a future model that remembers is found."""
    fdm = engine.aircraft[0][0].fdm
    skip = ("gear/unit", "contact/unit", "simulation/frame")  # contact needs ground; JSBSim leaves it uninitialised
    names = [entry.split(" ")[0] for entry in fdm.get_property_catalog() if "R" in entry.rsplit("(")[-1]]
    names = [name for name in names if not name.startswith(skip)]
    read = lambda: {name: fdm.get_property_value(name) for name in names}  # noqa: E731
    engine.load(make_states(2), [0])
    before = read()
    for seed in range(3):
        past = make_states(2)
        past["body"]["true_airspeed_mps"] = 130.0 + 100.0 * seed
        engine.load(past, [0])
        fly(engine, past, seed=seed, periods=80)
        engine.load(make_states(2), [0])
        after = read()
        assert {name: (before[name], after[name]) for name in names if before[name] != after[name]} == {}


@pytest.mark.parametrize("airframe", AIRFRAMES)
def test_the_envelope_of_the_tables_is_read_from_the_model(airframe):
    model = read_model(root_folder(), airframe)
    assert np.degrees(model.angle_of_attack_rad) == pytest.approx((-10.0, 45.0), abs=0.1)
    assert np.degrees(model.sideslip_rad) == pytest.approx((-30.0, 30.0), abs=0.1)


def test_flying_outside_the_tables_is_flagged(engine):
    states = make_states(2)
    states["body"]["true_airspeed_mps"] = 60.0  # far below the stall: the aircraft falls and the angle of attack grows
    states["body"]["pitch_rad"] = 1.2
    states["body"]["throttle_command"] = 0.0
    engine.load(states, [0])
    flags = []
    for _ in range(150):
        engine.advance(states, [0])
        body = states["body"][0]
        flags.append(body["in_tables"].copy())
        alpha, beta = np.degrees(body["angle_of_attack_rad"]), np.degrees(body["sideslip_rad"])
        np.testing.assert_array_equal(flags[-1], (alpha > -10.03) & (alpha < 44.98) & (abs(beta) < 30.03))
    assert not np.all(flags)


def test_a_number_that_is_not_finite_is_flagged_and_never_shown(engine, kind):
    states = make_states(2)
    engine.load(states, [0])
    engine.advance(states, [0])
    sane = states["body"][0, 0].copy()
    states["body"]["aileron_command"][0, 0] = np.nan
    for _ in range(10):
        engine.advance(states, [0])
    body = states["body"][0]
    assert body["finite"].tolist() == [0, 1]
    words = body.view(np.float64).reshape(AIRCRAFT, -1)[:, FIRST:LAST]
    assert np.isfinite(words).all()
    assert abs(body["altitude_m"][0] - sane["altitude_m"]) < 300
    again = make_states(2)
    engine.load(again, [0])
    idle_aircraft.clear()
    fresh = JsbsimEngine(GAME, 1, **kind)
    other = make_states(1)
    fresh.load(other, [0])
    assert fly(engine, again, 5, 30) == fly(fresh, other, 5, 30), "the next flight is not exact"


@pytest.mark.usefixtures("no_idle_aircraft")
def test_nothing_is_printed(capfd, kind):
    engine = JsbsimEngine(GAME, 1, **kind)
    states = make_states()
    states["body"]["altitude_m"] = 100.0
    states["body"]["pitch_rad"] = -1.0
    engine.load(states, [0])
    fly(engine, states, seed=0, periods=50)  # into the ground
    engine.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.check
def test_a_engine_that_is_never_closed_leaves_no_file_behind(tmp_path: Path):
    program = "import os, palaestra; palaestra.make_batch('palaestra/UcavTrack-v3').reset(seed=0); os._exit(0)"
    python(program, TMPDIR=str(tmp_path), TEMP=str(tmp_path), TMP=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_outputs_follow_the_order_of_the_record():
    names = BODY.names or ()
    assert tuple(name for name, _, _ in OUTPUTS) == names[names.index("north_m") : names.index("finite")]


def test_a_missing_jsbsim_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **kwargs):
        if name == "jsbsim":
            raise ImportError(name)
        return real(name, *rest, **kwargs)

    importing: Any = import_jsbsim
    importing.cache_clear()  # it may be loaded
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "palaestra\[flight\]"'):
        JsbsimEngine(GAME, 1)


def test_a_game_without_aircraft_is_refused():
    game: Any = SimpleNamespace(state_dtype=np.dtype([("odd", "u1")]))
    with pytest.raises(ValueError, match="no field of type"):
        JsbsimEngine(game, 1)
