"""The compiler of aircraft: what it refuses, what it leaves out, and its parts against numbers worked out by hand."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from ucav.aircraft_files import (
    CONTROL,
    ENGINE,
    PROPULSION,
    TURBINE,
    Flight,
    aircraft_file,
    frame_of,
    imported,
    limits_around,
    module_of,
)

from palaestra.games.ucav.aircraft import machinery, tables
from palaestra.games.ucav.aircraft.frame import INPUTS, POSE
from palaestra.games.ucav.aircraft.generated import read_frame
from palaestra.games.ucav.aircraft.program import Program, variable
from palaestra.games.ucav.aircraft.reader import UnsupportedAircraft
from palaestra.games.ucav.aircraft.writer import source_of

# ------------------------------------------------------------------------------------------------------ what is refused


def channel(component: str, words: str = "") -> str:
    return f'<channel name="c" {words}> {component} </channel>'


def drag(operation: str) -> str:
    return f'<function name="drag"> {operation} </function>'


TABLE = """<table> <independentVar lookup="row"> aero/alpha-rad </independentVar> {axes}
    <tableData> {rows} </tableData> </table>"""
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "component": ({"control": channel('<accelerometer name="felt"/>')}, '<accelerometer name="felt">'),
    "channel rate": ({"control": channel("", 'execrate="4"')}, '<channel name="c">'),
    "component's child": (
        {"control": channel('<summer name="s"> <input> a </input> <delay> 3 </delay> </summer>')},
        "<delay>",
    ),
    "limits": (
        {"control": channel('<summer name="s"> <input> a </input> <clipto> <min> 0 </min> </clipto> </summer>')},
        "<clipto>",
    ),
    "two inputs": (
        {"control": channel('<pure_gain name="g"> <input> a </input> <input> b </input> </pure_gain>')},
        '<pure_gain name="g">',
    ),
    "logic": (
        {"control": channel('<switch name="s"> <test logic="NOR" value="1"> a == 1 </test> </switch>')},
        "<test>",
    ),
    "condition": ({"control": channel('<switch name="s"> <test value="1"> a =~ 1 </test> </switch>')}, "<test>"),
    "actuator of one position": (
        {
            "control": channel(
                '<kinematic name="k"> <input> a </input> <traverse> <setting> <position> 0 </position> '
                "<time> 0 </time> </setting> </traverse> </kinematic>"
            )
        },
        '<kinematic name="k">',
    ),
    "operation": ({"drag": drag("<urandom/>")}, "<urandom>"),
    "number of arguments": ({"drag": drag("<pow> <v> 1 </v> </pow>")}, "<pow>"),
    "a name of the frame's own": (
        {"drag": drag("<v> 1 </v>").replace('"drag"', '"position_x"')},
        '<function name="position_x">',
    ),
    "a range that is missing": (
        {"control": channel('<aerosurface_scale name="a"> <input> a </input> </aerosurface_scale>')},
        '<aerosurface_scale name="a">',
    ),
    "two operations": ({"drag": drag("<v> 1 </v> <v> 2 </v>")}, '<function name="drag">'),
    "number": ({"drag": drag("<value> much </value>")}, "<value>"),
    "breakpoints that fall": ({"drag": drag(TABLE.format(axes="", rows="0 1\n -1 2"))}, "<table>"),
    "short row": ({"drag": drag(TABLE.format(axes="", rows="0 1\n 1"))}, "<table>"),
    "two-way table of one row": (
        {
            "drag": drag(
                TABLE.format(
                    axes='<independentVar lookup="column"> aero/beta-rad </independentVar>', rows="0 1\n 0 1 2\n 1 2"
                )
            )
        },
        "<table>",
    ),
    "four variables": (
        {
            "drag": drag(
                TABLE.format(
                    axes="".join(
                        f'<independentVar lookup="{a}"> x </independentVar>' for a in ("column", "table", "b")
                    ),
                    rows="0 1\n 0 1 2",
                )
            )
        },
        "<table>",
    ),
    "tank of oxidizer": ({"propulsion": PROPULSION.replace('type="FUEL"', 'type="OXIDIZER"')}, "<tank>"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_the_compiler_does_not_know_is_refused_by_tag_and_file(what):
    words, tag = REFUSED[what]
    with pytest.raises(UnsupportedAircraft, match=r'engine="jsbsim"') as caught:
        frame_of(aircraft_file(**words))
    assert str(caught.value).startswith(f"body.xml: {tag}: ")


EDITED = {
    "unit": ('<emptywt unit="LBS">', '<emptywt unit="STONE">', "<emptywt>: the unit 'STONE'"),
    "section": ("<ground_reactions/>", "<buoyant_forces/>", "<buoyant_forces>"),
    "force": (
        "<ground_reactions/>",
        '<external_reactions> <force name="parachute"/> </external_reactions>',
        '<force name="parachute">',
    ),
    "axis": ('<axis name="SIDE"/>', '<axis name="AXIAL"/>', "<aerodynamics>"),
    "frame of an axis": ('<axis name="SIDE"/>', '<axis name="SIDE" frame="STABILITY"/>', '<axis name="SIDE">'),
    "missing weight": ("emptywt", "description", "<mass_balance>"),
}


@pytest.mark.parametrize("what", EDITED)
def test_an_aircraft_with_something_unknown_is_refused(what):
    before, after, message = EDITED[what]
    assert before in aircraft_file()
    with pytest.raises(UnsupportedAircraft, match=r'engine="jsbsim"') as caught:
        frame_of(aircraft_file().replace(before, after))
    assert str(caught.value).startswith(f"body.xml: {message}")


@pytest.mark.parametrize(
    ("before", "after", "tag"),
    [
        ("turbine_engine", "piston_engine", "<piston_engine"),
        ("</turbine_engine>", "<stallspeed> 3 </stallspeed> </turbine_engine>", "<stallspeed>"),
        ("<augmethod> 2", "<augmethod> 3", "<turbine_engine"),
        ('"MilThrust"', '"N2SpoolUp"', "<turbine_engine"),
    ],
)
def test_an_unknown_engine_is_refused_by_its_own_file(before, after, tag):
    assert before in TURBINE
    with pytest.raises(UnsupportedAircraft, match=r'engine="jsbsim"') as caught:
        frame_of(aircraft_file(), engine=TURBINE.replace(before, after))
    assert str(caught.value).startswith(f"nothing.xml: {tag}")


def test_an_aircraft_without_a_section_is_refused():
    tree = ElementTree.fromstring(aircraft_file())
    tree.remove(next(tree.iter("mass_balance")))
    with pytest.raises(UnsupportedAircraft, match=r'has no <mass_balance>.*engine="jsbsim"'):
        frame_of(ElementTree.tostring(tree, "unicode"))


def test_a_property_that_nothing_writes_is_refused():
    frame = frame_of(aircraft_file(drag=drag("<property> fcs/no-such-lever </property>")))
    with pytest.raises(UnsupportedAircraft, match=r'fcs_no_such_lever.*engine="jsbsim"'):
        source_of(frame, limits_around("still"))


def test_a_missing_file_is_named(tmp_path):
    tree = ElementTree.fromstring(aircraft_file())
    with pytest.raises(UnsupportedAircraft, match=r"nothing\.xml: there is no such file"):
        read_frame(tree, "body.xml", tmp_path, tmp_path, "still")
    (tmp_path / "nothing.xml").write_text(ENGINE, encoding="utf-8")
    (tmp_path / "push.xml").write_text("<direct/>", encoding="utf-8")
    assert len(read_frame(tree, "body.xml", tmp_path, tmp_path, "still").engines) == 1


# --------------------------------------------------------------------------------------------------------------- tables

# Behind two numbers of something else: three breakpoints, their values, and a table of 3 rows and 2 columns.
POINTS, VALUES, DATA = 2, 5, 8
NUMBERS = [9.0, 9.0, -1.0, 0.0, 2.0, 10.0, 20.0, 60.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0]


@pytest.mark.parametrize(
    ("at", "value"),
    [(-5.0, 10.0), (-1.0, 10.0), (-0.5, 15.0), (0.0, 20.0), (0.5, 30.0), (2.0, 60.0), (2.1, 60.0)],
)
def test_a_table_is_linear_between_its_points_and_constant_beyond(at, value):
    assert tables.line(NUMBERS, VALUES, *tables.place(NUMBERS, POINTS, 3, at)) == pytest.approx(value)


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        *((-1.0, 0.0, 1.0), (-1.0, 1.0, 2.0), (0.0, 0.0, 3.0), (2.0, 1.0, 7.0), (9.0, 9.0, 7.0), (-9.0, 0.0, 1.0)),
        *((-0.5, 0.0, 2.0), (-0.5, 1.0, 3.0), (0.0, 0.25, 3.25), (1.0, 0.5, 0.25 * (3 + 4 + 5 + 7))),
    ],
)
def test_a_table_of_two_variables_is_linear_in_each(row, column, value):
    columns = [0.0, 1.0]
    places = *tables.place(NUMBERS, POINTS, 3, row), *tables.place(columns, 0, 2, column)
    assert tables.plane(NUMBERS, DATA, 2, *places) == pytest.approx(value)


# ------------------------------------------------------------------------------------------------------------- liveness


def program(text: str) -> Program:
    made = Program(frozenset({"max"}), fixed=frozenset({"locked"}))
    made.add(text)
    return made


def test_statements_that_nothing_reads_are_left_out():
    kept, live = program("a = c\nunused = a\nb = a + 1.0").needed({"b"})
    assert [statement.text for statement in kept] == ["a = c", "b = a + 1.0"]
    assert live == {"c"}


def test_what_is_read_before_it_is_written_is_carried_with_all_that_leads_to_it():
    made = program("out = late\nother = out\nmiddle = total + push\nlate = middle\ntotal = total + 1.0")
    kept, live = made.needed({"out"})
    assert [statement.text for statement in kept] == [
        "out = late", "middle = total + push", "late = middle", "total = total + 1.0",
    ]  # fmt: skip
    assert live == {"late", "total", "push"}
    once, before = made.needed_once({"out"})
    assert [statement.text for statement in once] == ["out = late"]
    assert before == {"late"}


def test_the_last_value_written_counts():
    kept, live = program("a = one\na = two\nb = a").needed({"b"})
    assert [statement.text for statement in kept] == ["a = two", "b = a"]
    assert live == {"two"}


def test_an_assignment_of_several_is_kept_for_any_of_them_and_fixed_variables_are_not_assigned():
    made = program("a, b = one, max(two, 0.0)\nlocked = three")
    assert made.written() == {"a", "b"}
    assert made.needed({"b"})[1] == {"one", "two"}


def test_properties_are_variables():
    assert variable("fcs/roll-rate-pid") == "fcs_roll_rate_pid"
    assert variable("propulsion/engine[0]/n2") == "propulsion_engine_n2"
    assert variable("propulsion/engine[1]/n2") == "propulsion_engine_1__n2"
    assert variable("propulsion/tank[0]") == "propulsion_tank"


def test_numbers_of_tables_are_stored_once():
    made = Program(frozenset())
    assert [made.store(row) for row in ([1.0, 2.0], [3.0], [1.0, 2.0])] == [0, 2, 0]
    assert made.numbers == [1.0, 2.0, 3.0]


GAIN = """<scheduled_gain name="{name}"> <input> fcs/rudder-cmd-norm </input> <table>
    <independentVar> fcs/lever </independentVar> <tableData>
    0 0
    10 10
    </tableData> </table> </scheduled_gain>"""
LEVER = '<summer name="{name}"> <input> {input} </input> <bias> {bias} </bias> <output> fcs/lever </output> </summer>'


def test_tables_share_a_search_until_what_they_look_up_changes():
    components = (
        LEVER.format(name="one", input="fcs/aileron-cmd-norm", bias=2),
        *(GAIN.format(name=name) for name in ("first", "second")),
        LEVER.format(name="two", input="fcs/lever", bias=3),
        GAIN.format(name="third"),
    )
    text = aircraft_file(control=channel("".join(components)))
    frame = frame_of(text)
    searches = [s.text for s in frame.program.statements if "place(NUMBERS" in s.text and "fcs_lever" in s.reads]
    assert len(searches) == 2
    flight = Flight(module_of(text, probes=("fcs/first", "fcs/second", "fcs/third")))
    flight.body.aileron_command, flight.body.rudder_command = 1.0, -1.0
    flight.advance()
    assert (flight.e.fcs_first, flight.e.fcs_second, flight.e.fcs_third) == (3.0, 3.0, 6.0)


# ---------------------------------------------------------------------------------------- parts that remember something

ACTUATOR = [0.0, 10.0, 30.0, 0.0, 2.0, 1.0]
"""From 0 to 10 in 2 s, on to 30 in 1 s: rates 5 and 20 a second."""


@pytest.mark.parametrize(
    ("target", "output", "dt", "expected"),
    [
        (10.0, 0.0, 1.0, 5.0),
        (10.0, 9.0, 1.0, 10.0),  # arrives after 0.2 s and stays
        (30.0, 0.0, 2.5, 20.0),  # 2 s at the slow rate, 0.5 s at the fast one
        (30.0, 10.0, 0.25, 15.0),
        (0.0, 30.0, 1.5, 7.5),  # 1 s back to 10, then 0.5 s
        (0.0, 10.0, 0.5, 7.5),
        (90.0, 25.0, 9.0, 30.0),  # no further than the last position
        (-5.0, 1.0, 9.0, 0.0),
        (4.0, 4.0, 1.0, 4.0),
        (10.0, 0.0, 0.0, 0.0),
    ],
)
def test_an_actuator_takes_its_times(target, output, dt, expected):
    assert machinery.kinematic([7.0, *ACTUATOR], 1, 3, target, output, dt) == pytest.approx(expected)


def test_an_actuator_without_a_time_is_there_at_once():
    assert machinery.kinematic([0.0, 1.0, 0.0, 0.0], 0, 2, 0.7, 0.1, 0.01) == 0.7


def test_an_integral_is_of_second_order_and_its_trigger_stops_and_empties_it():
    assert machinery.integral(2.0, 3.0, 1.0, 0.0, 0.5, 0.1) == pytest.approx(2.0 + 0.5 * 0.1 * (4.5 - 0.5))
    assert machinery.integral(2.0, 3.0, 1.0, 1.0, 0.5, 0.1) == 2.0
    assert machinery.integral(2.0, 3.0, 1.0, -1.0, 0.5, 0.1) == 0.0


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [(1.0, 5.0, 1.5), (1.0, 1.2, 1.2), (5.0, 1.0, 3.0), (5.0, 4.0, 4.0), (2.0, 2.0, 2.0)],
)
def test_a_value_seeks_its_target_at_a_rate_up_and_another_down(value, target, expected):
    assert machinery.seek(value, target, 0.5, 2.0) == expected


def test_a_spool_gains_speed_faster_when_it_turns_fast_and_in_thin_air():
    assert machinery.spool_rate(0.9, 1.0, 30.0) == pytest.approx(30.0)
    assert machinery.spool_rate(1.0, 1.0, 30.0) == pytest.approx(30.0)
    assert machinery.spool_rate(0.4, 1.0, 30.0) == pytest.approx(30.0 / 1.375)
    assert machinery.spool_rate(0.9, 0.5, 30.0) == pytest.approx(20.0)


SPEEDS = machinery.Speeds(30.0, 60.0, 100.0, 100.0, 30.0, 2.0, 3.0)
RATES = machinery.Rates(0.8, 2.0, 400.0, 0.1, 2.0, 4.0)
AIR = 389.7, 1.0, 300.0
"""Temperature at which the consumption is that of the file, density ratio, dynamic pressure."""


def run(before: machinery.Turbine, lever: float, burner: float = 0.0, boost: float = 0.0, switch: float = 0.0, dt=0.1):
    return machinery.thrust_and_flow(
        before, 1.0, SPEEDS, RATES, lever, burner, 500.0, 4500.0, 9000.0, boost, switch, *AIR, dt
    )


FULL = machinery.Turbine(100.0, 100.0, 1.0, 3360.0, 0.0, 0.0)


def test_a_turbine_at_military_power_has_its_thrust_and_consumption():
    """5000 lbf less the bleed air; 0.8 x 0.84 lb/(h lbf)."""
    assert run(FULL, 1.0) == pytest.approx((100.0, 100.0, 1.0, 0.8 * 0.84 * 5000.0, 0.0, 4500.0))


def test_a_turbine_spools_down_by_factors_of_its_spool_up():
    """30 percent/s at full speed: 0.1 s are 3, 6 for the fan and 9 for the core; thrust goes with the square."""
    share = (91.0 - 60.0) / 40.0
    after = run(FULL, 0.0)
    assert after[:3] == pytest.approx((94.0, 91.0, share))
    assert after.thrust == pytest.approx((500.0 + 4500.0 * share**2) * 0.9)
    wanted = (500.0 + 4500.0 * share**2) * 0.8 * (0.84 + (1 - share) ** 2)
    assert after.fuel_flow == pytest.approx(max(wanted, 3360.0 - 1000.0))


def test_an_afterburner_adds_its_part_of_the_thrust_that_it_could_add():
    """In the frame that it is lit the consumption changes from that of military power; then it rises by 5000 lb/h/s."""
    lit = run(FULL, 1.0, burner=0.5, boost=1.0)
    assert lit.thrust == pytest.approx(4500.0 + 0.5 * (9000.0 - 4500.0))
    assert (lit.fuel_flow, lit.augmented) == (pytest.approx(3360.0 + 500.0), 1.0)
    again = run(lit, 1.0, burner=0.5, boost=1.0)
    assert again.thrust == pytest.approx(5000.0 + 0.5 * (9000.0 - 5000.0))  # JSBSim takes no bleed air from then on
    assert again.fuel_flow == pytest.approx(3360.0 + 1000.0)


def test_an_afterburner_with_a_switch_is_lit_at_full_throttle_and_full_speed():
    assert run(FULL, 1.0, switch=1.0)[4:] == (1.0, 9000.0)
    assert run(FULL, 0.98, switch=1.0).augmented == 0.0
    assert run(FULL._replace(n2=80.0), 1.0, switch=1.0).augmented == 0.0


def test_a_turbine_without_fuel_is_turned_by_the_air():
    after = machinery.thrust_and_flow(FULL, 0.0, SPEEDS, RATES, 1.0, 0.0, 500.0, 4500.0, 9000.0, 0.0, 0.0, *AIR, 0.1)
    assert after == pytest.approx((100.0 - 100.0 / 2.0 * 0.1, 100.0 - 100.0 / 4.0 * 0.1, 1.0, 2360.0, 0.0, 0.0))
    still = machinery.windmill(machinery.Turbine(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 300.0, 2.0, 4.0, 0.1)
    assert still[:2] == pytest.approx((0.01, 0.01))


def test_a_turbine_burns_from_its_tanks_in_equal_parts():
    module = imported(
        source_of(frame_of(aircraft_file(propulsion=PROPULSION), "still", TURBINE), limits_around("still"))
    )
    flight = Flight(module, altitude_m=3000.0, true_airspeed_mps=150.0, throttle_command=0.6)
    e = flight.e
    assert (e.propulsion_tank_contents_lbs, e.propulsion_tank_1__contents_lbs) == (40.0, 30.0)
    burnt = 0.0
    for _ in range(120):
        flight.advance()
        burnt += e.engine_0_fuel_flow / 3600.0 / 60.0
    assert burnt > 0.2
    assert e.propulsion_tank_contents_lbs == pytest.approx(40.0 - burnt / 2)
    assert e.propulsion_tank_1__contents_lbs == pytest.approx(30.0 - burnt / 2)
    e.propulsion_tank_1__contents_lbs = 0.0
    before = e.propulsion_tank_contents_lbs
    flight.advance()
    assert before - e.propulsion_tank_contents_lbs == pytest.approx(e.engine_0_fuel_flow / 3600.0 / 60.0)


# -------------------------------------------------------------------------------------------------- frames without time


def test_a_frame_without_time_moves_nothing_and_burns_nothing_but_sees_new_air():
    text = aircraft_file(propulsion=PROPULSION, control=CONTROL, drag=drag("<property> aero/qbar-psf </property>"))
    frame = frame_of(text, "wgs84", TURBINE)
    module = imported(source_of(frame, limits_around("wgs84"), ("aero/qbar-psf", "inertia/mass-slugs")))
    flight = Flight(module, altitude_m=3000.0, true_airspeed_mps=150.0, throttle_command=0.4, roll_rad=0.3)
    flight.advance(30)
    e = flight.e
    same = *POSE, *(f"engine_0_{part}" for part in ("n1", "n2", "share", "fuel_flow", "augmented")), *INPUTS
    tanks = "propulsion_tank_contents_lbs", "propulsion_tank_1__contents_lbs"
    before = {name: getattr(e, name) for name in (*same, *tanks)}
    pressure, alpha = e.aero_qbar_psf, e.aero_alpha_rad
    module.frame(e, 0.0, flight.dt)
    after = {name: getattr(e, name) for name in before}
    assert {name: (before[name], after[name]) for name in before if before[name] != after[name]} == {}
    assert (e.aero_qbar_psf, e.aero_alpha_rad) == pytest.approx((pressure, alpha), rel=1e-12)
    e.wind_north -= 50.0
    e.pressure_ratio = 0.5
    module.frame(e, 0.0, flight.dt)
    speed = flight.body.true_airspeed_mps / 0.3048
    assert e.velocities_vt_fps == pytest.approx(speed + 50.0, abs=5.0)
    assert e.aero_qbar_psf == pytest.approx(0.5 * pressure * (e.velocities_vt_fps / speed) ** 2, rel=1e-6)
    assert {name: getattr(e, name) for name in POSE} == {name: before[name] for name in POSE}


def test_a_flight_of_numbers_that_are_not_finite_stops_where_it_was():
    module = module_of(aircraft_file(drag=drag("<property> fcs/aileron-cmd-norm </property>")))
    flight = Flight(module, altitude_m=3000.0, true_airspeed_mps=150.0)
    flight.advance(5)
    height = flight.body.altitude_m
    flight.body.aileron_command = math.nan
    flight.advance(5)
    assert flight.body.finite == 0
    assert flight.body.altitude_m == height
