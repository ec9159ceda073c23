"""Components of flight control systems, tables of three variables and engines, against formulas written out here.

Files are our own, and the modules that the compiler generates of them fly as plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
from ucav.aircraft_files import ENGINE, PROPULSION, Flight, aircraft_file, frame_of, imported, limits_around, module_of

from palaestra.games.ucav.aircraft.reader import UnsupportedAircraft
from palaestra.games.ucav.aircraft.writer import source_of

DT = 1.0 / 60.0
STICK = (0.0, 1.0, 0.4, -0.9, -0.9, 0.3, 0.35, 0.3, 0.32, -0.2, 1.0, 1.0)
"""Aileron commands of some frames."""


def values_of(components: str, stick: Sequence[float] = STICK, path: str = "fcs/out") -> list[float]:
    """What a property is at the start of a flight and after each frame under aileron commands."""
    module = module_of(aircraft_file(control=components), probes=(path,))
    name, flight = path.replace("/", "_").replace("-", "_"), Flight(module)
    values = [getattr(flight.e, name)]
    for command in stick:
        flight.body.aileron_command = command
        flight.advance()
        values.append(getattr(flight.e, name))
    return values


def component(tag: str, inside: str, words: str = "") -> str:
    """A channel with a component of the aileron command, named ``fcs/out``."""
    return f"""<channel name="c">
        <{tag} name="fcs/out" {words}> <input> fcs/aileron-cmd-norm </input> {inside} </{tag}>
    </channel>"""


# -------------------------------------------------------------------------------------------------------------- filters


def bilinear(above: Sequence[float], below: Sequence[float], inputs: Iterable[float]) -> list[float]:
    """A filter with a transfer function of s, coefficients of s^0, s^1, s^2, by s = 2 / dt (1 - 1/z) / (1 + 1/z)."""
    difference, total = np.array([1.0, -1.0]) * 2.0 / DT, np.array([1.0, 1.0])
    powers = np.array([np.convolve(total, total), np.convolve(difference, total), np.convolve(difference, difference)])
    b, a = np.array(above) @ powers, np.array(below) @ powers
    xs, ys = [0.0, 0.0], [0.0, 0.0]
    for x in inputs:
        xs.append(x)
        past = b[0] * xs[-1] + b[1] * xs[-2] + b[2] * xs[-3] - a[1] * ys[-1] - a[2] * ys[-2]
        ys.append(past / a[0])
    return ys[2:]


FILTERS = {
    "lag_filter": ((7.0,), (7.0, 0.0, 0.0), (7.0, 1.0, 0.0)),
    "lead_lag_filter": ((2.0, 7.25, 0.5, 6.0), (7.25, 2.0, 0.0), (6.0, 0.5, 0.0)),
    "washout_filter": ((3.0,), (0.0, 1.0, 0.0), (3.0, 1.0, 0.0)),
    "second_order_filter": ((0.1, 1.0, 30.0, 0.2, 2.0, 25.0), (30.0, 1.0, 0.1), (25.0, 2.0, 0.2)),
}
"""Coefficients c1, c2, ..., and those of the transfer function above and below the line."""


def filter_of(tag: str, constants: Sequence[float], more: str = "") -> str:
    """A filter of the aileron command."""
    return component(tag, "".join(f"<c{k}> {c!r} </c{k}>" for k, c in enumerate(constants, 1)) + more)


@pytest.mark.parametrize("tag", FILTERS)
def test_a_filter_is_the_bilinear_transform_of_its_transfer_function(tag):
    constants, above, below = FILTERS[tag]
    assert values_of(filter_of(tag, constants))[1:] == pytest.approx(bilinear(above, below, STICK), abs=1e-13)


def test_limits_cut_what_a_filter_shows_and_not_what_it_remembers():
    constants, above, below = FILTERS["lag_filter"]
    cut = values_of(filter_of("lag_filter", constants, "<clipto> <min> -0.05 </min> <max> 0.1 </max> </clipto>"))
    whole = bilinear(above, below, STICK)
    assert cut[1:] == pytest.approx(np.clip(whole, -0.05, 0.1), abs=1e-13)
    assert min(whole) < -0.05 < 0.1 < max(whole)


def test_a_coefficient_may_be_a_property():
    control = '<property value="7"> fcs/seven </property>' + filter_of("lag_filter", (0.0,))
    moving = values_of(control.replace("<c1> 0.0 </c1>", "<c1> fcs/seven </c1>"))
    assert moving == values_of(filter_of("lag_filter", (7.0,)))


def test_a_filter_shows_zero_in_the_first_frame_after_a_reset_and_starts_from_it_in_the_second():
    declared = '<property value="3"> fcs/three </property>'
    control = declared + filter_of("lag_filter", (7.0,)).replace("fcs/aileron-cmd-norm", "fcs/three")
    start, first = values_of(control, (0.0,))
    assert [0.0, start, first] == pytest.approx([0.0, *bilinear((7.0, 0.0, 0.0), (7.0, 1.0, 0.0), (3.0, 3.0))])


def test_two_filters_of_one_name_remember_apart():
    both = filter_of("lag_filter", (7.0,)) + filter_of("washout_filter", (3.0,))
    assert values_of(both) == values_of(filter_of("washout_filter", (3.0,)))


# ------------------------------------------------------------------------------------------------ deadband, integrators


@pytest.mark.parametrize(
    ("stick", "value"), [(1.0, 1.4), (0.31, 0.02), (0.3, 0.0), (0.0, 0.0), (-0.29, 0.0), (-0.8, -1.0)]
)
def test_a_deadband_takes_half_its_width_from_either_side(stick, value):
    assert values_of(component("deadband", "<width> 0.6 </width> <gain> 2 </gain>"), (stick,))[1] == pytest.approx(
        value
    )


def test_a_deadband_may_have_the_width_of_a_property_or_none():
    declared = '<property value="0.6"> fcs/width </property>'
    assert values_of(declared + component("deadband", "<width> fcs/width </width>")) == values_of(
        component("deadband", "<width> 0.6 </width>")
    )
    assert values_of(component("deadband", ""))[1:] == list(STICK)


@pytest.mark.parametrize(
    ("words", "weights"), [("", (0.5, 0.5)), ('type="rect"', (1.0, 0.0)), ('type="ab2"', (1.5, -0.5))]
)
def test_an_integrator_is_trapezoidal_unless_it_says_otherwise(words, weights):
    total, before, expected = 0.0, 0.0, []
    for value in STICK:
        total += 1.7 * DT * (weights[0] * value + weights[1] * before)
        before = value
        expected.append(total)
    assert values_of(component("integrator", f"<c1 {words}> 1.7 </c1>"))[1:] == pytest.approx(expected, abs=1e-15)


def test_a_trigger_stops_an_integrator_and_a_negative_one_empties_it():
    control = """<channel name="c">
      <fcs_function name="fcs/stop"> <function> <sum>
        <gt> <p>fcs/aileron-cmd-norm</p> <v>0.5</v> </gt>
        <product> <v>-2</v> <lt> <p>fcs/aileron-cmd-norm</p> <v>-0.5</v> </lt> </product>
      </sum> </function> </fcs_function>
      <integrator name="fcs/out">
        <input> fcs/aileron-cmd-norm </input> <c1> 1 </c1> <trigger> fcs/stop </trigger>
      </integrator>
    </channel>"""
    moving, stopped, emptied, again = values_of(control, (0.4, 0.9, -0.9, 0.2))[1:]
    assert moving == pytest.approx(0.2 * DT)
    assert stopped == moving
    assert emptied == 0.0
    assert again == pytest.approx(0.5 * (0.2 - 0.9) * DT)


def test_a_standard_controller_multiplies_everything_by_kp_and_may_be_given_the_rate():
    control = component(
        "pid",
        "<kp> 0.4 </kp> <ki> 0.8 </ki> <kd> 0.02 </kd> <pvdot> fcs/rate </pvdot>",
        'type="standard"',
    )
    total, before, expected = 0.0, 0.0, []
    for value in STICK:
        total += 0.8 * DT * (1.5 * value - 0.5 * before)
        before = value
        expected.append(0.4 * (value + total + 0.02 * 3.0))
    declared = '<property value="3"> fcs/rate </property>'
    assert values_of(declared + control)[1:] == pytest.approx(expected, abs=1e-14)


# ------------------------------------------------------------------------------------------------------------ actuators


def lagged(x: float, memory: dict[str, float]) -> float:
    """A lag of 20 / s."""
    y = (20.0 * DT * (x + memory["x"]) + (2.0 - 20.0 * DT) * memory["y"]) / (2.0 + 20.0 * DT)
    memory.update(x=x, y=y)
    return y


def limited(up: float, down: float) -> Callable[[float, dict[str, float]], float]:
    """A rate limit, 1 / s."""

    def limit(x: float, memory: dict[str, float]) -> float:
        memory["rated"] = min(max(x, memory["rated"] - down * DT), memory["rated"] + up * DT)
        return memory["rated"]

    return limit


def without_band(x: float, memory: dict[str, float]) -> float:
    """A deadband of 0.1."""
    return math.copysign(max(abs(x) - 0.05, 0.0), x)


def with_play(x: float, memory: dict[str, float]) -> float:
    """A hysteresis of 0.2: the output follows only when the input has taken up the play."""
    memory["play"] = min(max(memory["play"], x - 0.1), x + 0.1)
    return memory["play"]


def biased(x: float, memory: dict[str, float]) -> float:
    """A bias of 0.03."""
    return x + 0.03


EITHER_WAY = '<rate_limit sense="incr"> 9 </rate_limit> <rate_limit sense="decr"> 15 </rate_limit>'
ACTUATORS = {
    "nothing": ("", ()),
    "lag": ("<lag> 20 </lag>", (lagged,)),
    "rate limit": ("<rate_limit> 12 </rate_limit>", (limited(12.0, 12.0),)),
    "rate limits either way": (EITHER_WAY, (limited(9.0, 15.0),)),
    "rate limit upwards": ('<rate_limit sense="increasing"> 9 </rate_limit>', (limited(9.0, math.inf),)),
    "rate limit downwards": ('<rate_limit sense="decreasing"> 9 </rate_limit>', (limited(math.inf, 9.0),)),
    "deadband": ("<deadband_width> 0.1 </deadband_width>", (without_band,)),
    "hysteresis": ("<hysteresis_width> 0.2 </hysteresis_width>", (with_play,)),
    "bias": ("<bias> 0.03 </bias>", (biased,)),
    "all, in the order of JSBSim": (
        f"<bias> 0.03 </bias> <hysteresis_width> 0.2 </hysteresis_width> <deadband_width> 0.1 </deadband_width> "
        f"{EITHER_WAY} <lag> 20 </lag>",
        (lagged, limited(9.0, 15.0), without_band, with_play, biased),
    ),
}
"""What stands in an actuator, and what it does one after the other."""


@pytest.mark.parametrize("what", ACTUATORS)
def test_an_actuator_does_one_thing_after_the_other(what):
    inside, steps = ACTUATORS[what]
    memory, expected = dict.fromkeys(("x", "y", "rated", "play"), 0.0), []
    for value in STICK:
        for step in steps:
            value = step(value, memory)
        expected.append(value)
    assert values_of(component("actuator", inside))[1:] == pytest.approx(expected, abs=1e-13)


def test_an_actuator_starts_from_zero_after_a_reset():
    declared = '<property value="3"> fcs/three </property>'
    for inside, frames in (("<rate_limit> 12 </rate_limit>", limited(12.0, 12.0)), ("<lag> 20 </lag>", lagged)):
        memory = {"x": 0.0, "y": 0.0, "rated": 0.0}
        control = declared + component("actuator", inside).replace("fcs/aileron-cmd-norm", "fcs/three")
        expected = [frames(3.0, memory) for _ in range(4)]
        assert values_of(control, (0.0, 0.0)) == pytest.approx(expected[1:4], abs=1e-14)


def test_a_lag_of_zero_holds_an_actuator_still():
    assert values_of(component("actuator", "<lag> 0 </lag>")) == [0.0] * (len(STICK) + 1)


# ------------------------------------------------------------------------------------------------ tables and operations


def table_of(layers: str) -> str:
    """A function with a table of three variables: aileron, half the aileron, aileron in tens."""
    return f"""<channel name="c">
      <pure_gain name="fcs/half"> <input> fcs/aileron-cmd-norm </input> <gain> 0.5 </gain> </pure_gain>
      <pure_gain name="fcs/tenfold"> <input> fcs/aileron-cmd-norm </input> <gain> 10 </gain> </pure_gain>
      <fcs_function name="fcs/out"> <function> <table>
        <independentVar lookup="column"> fcs/half </independentVar>
        <independentVar lookup="row"> fcs/aileron-cmd-norm </independentVar>
        <independentVar lookup="table"> fcs/tenfold </independentVar>
        {layers}
      </table> </function> </fcs_function>
    </channel>"""


def layer(at: float, rows: str) -> str:
    return f'<tableData breakPoint="{at}"> {rows} </tableData>'


GRID = """
        0    0.2
   0    1    3
   0.5  2    8
"""
OTHER_GRID = """
        0    0.1  0.3
   0.1  5    7    0
   0.4  6    1    2
"""


def on_grid(stick: float) -> float:
    """GRID by hand."""
    row, column = min(max(stick / 0.5, 0.0), 1.0), min(max(0.5 * stick / 0.2, 0.0), 1.0)
    return (1 - row) * ((1 - column) * 1 + column * 3) + row * ((1 - column) * 2 + column * 8)


def on_other_grid(stick: float) -> float:
    """OTHER_GRID by hand."""
    row = min(max((stick - 0.1) / 0.3, 0.0), 1.0)
    low, high = (float(np.interp(0.5 * stick, (0.0, 0.1, 0.3), line)) for line in ((5, 7, 0), (6, 1, 2)))
    return low + row * (high - low)


@pytest.mark.parametrize("stick", [-0.3, 0.0, 0.05, 0.2, 0.25, 0.31, 0.4, 0.43, 0.6, 1.0])
def test_a_table_of_three_variables_is_linear_between_its_layers_and_constant_beyond(stick):
    control = table_of(layer(1, GRID) + layer(3, OTHER_GRID) + layer(4, GRID) + layer(5, OTHER_GRID))
    between = float(np.interp(10 * stick, (1, 3, 4, 5), (0, 1, 0, 1)))
    expected = (1 - between) * on_grid(stick) + between * on_other_grid(stick)
    assert values_of(control, (stick,))[1] == pytest.approx(expected, abs=1e-14)


OPERATIONS = {
    "<ln> {} </ln>": lambda x: math.log(x) if x > 0 else -math.inf,
    "<log2> {} </log2>": lambda x: math.log(x) / math.log(2) if x > 0 else -math.inf,
    "<log10> {} </log10>": lambda x: math.log(x) / math.log(10) if x > 0 else -math.inf,
    "<sign> {} </sign>": lambda x: -1.0 if x < 0 else 1.0,
    "<integer> <product> {} <v>7</v> </product> </integer>": lambda x: float(int(7 * x)),
    "<fraction> <product> {} <v>7</v> </product> </fraction>": lambda x: 7 * x - int(7 * x),
    "<fmod> {} <v>0.15</v> </fmod>": lambda x: math.copysign(abs(x) - 0.15 * int(abs(x) / 0.15), x),
    "<avg> {} <v>1</v> <v>4</v> </avg>": lambda x: (x + 5) / 3,
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_of_functions_computes_what_its_name_says(operation):
    text = operation.format("<p> fcs/aileron-cmd-norm </p>")
    control = (
        f'<channel name="c"> <fcs_function name="fcs/out"> <function> {text} </function> </fcs_function> </channel>'
    )
    sticks = (0.8, 0.4, 0.0, -0.4, -0.8)
    assert values_of(control, sticks)[1:] == pytest.approx([OPERATIONS[operation](x) for x in sticks], abs=1e-14)


# ------------------------------------------------------------------------------------------- properties of other models


def test_positions_of_surfaces_that_nothing_writes_are_zero():
    control = """<channel name="c"> <summer name="fcs/out"> <bias> 1 </bias>
      <input> fcs/flap-pos-deg </input> <input> fcs/mag-spoiler-pos-rad </input> <input> gear/wow </input>
    </summer> </channel>"""
    assert values_of(control, (0.5,)) == [1.0, 1.0]


@pytest.mark.parametrize(("declared", "frames"), [("<property> fcs/late </property>", 1), ("", 2)])
def test_a_reset_sets_declared_properties_alone(declared, frames):
    control = """<property value="3"> fcs/three </property> <channel name="c">
      <integrator name="fcs/out"> <input> fcs/late </input> <c1 type="rect"> 1 </c1> </integrator>
      <pure_gain name="fcs/late"> <input> fcs/three </input> <gain> 1 </gain> </pure_gain>
    </channel>"""
    assert values_of(declared + control, ())[0] == pytest.approx(3.0 * frames * DT)


RELEASE = """
<property value="{}"> fcs/release </property>
<channel name="c">
  <switch name="fcs/released">
    <default value="fcs/released"/> <test value="1"> fcs/release == 1 </test>
  </switch>
  <switch name="fcs/weight-control">
    <default value="inertia/pointmass-weight-lbs[0]"/> <test value="0"> fcs/released == 1 </test>
    <output> inertia/pointmass-weight-lbs[0] </output>
  </switch>
</channel>
"""


def test_a_switch_that_always_holds_what_it_has_changes_nothing():
    assert not frame_of(aircraft_file(control=RELEASE.format(0))).program.written() & {
        "fcs_released",
        "inertia_pointmass_weight_lbs",
    }


def test_a_switch_is_no_constant_where_another_component_writes_what_it_holds():
    second = '<channel name="d"> <pure_gain name="fcs/released"> <input> fcs/aileron-cmd-norm </input> </pure_gain>'
    with pytest.raises(UnsupportedAircraft, match="inertia/pointmass-weight-lbs"):
        frame_of(aircraft_file(control=RELEASE.format(0) + second + "</channel>"))


REFUSED = {
    "delay": (component("actuator", "<delay> 0.1 </delay>"), "<delay>"),
    "malfunction": (component("actuator", "<malfunction/>"), "<malfunction>"),
    "a coefficient that is not there": (component("lead_lag_filter", "<c1> 1 </c1>"), "has no <c2>"),
    "an integral of third order": (component("integrator", '<c1 type="ab3"> 1 </c1>'), "'ab3'"),
    "two layers of two variables": (
        table_of(GRID).replace('<independentVar lookup="table"> fcs/tenfold </independentVar>', layer(1, GRID) * 2),
        "2 <tableData>",
    ),
    "a layer without a place": (table_of(layer(1, GRID) + f"<tableData> {GRID} </tableData>"), "breakPoint"),
    "a table without variables": (
        component("fcs_function", "<function> <table> <tableData> 0 1 </tableData> </table> </function>"),
        "whose variables",
    ),
    "a table that is not all numbers": (table_of(layer(1, "0 x") + layer(2, GRID)), "could not convert"),
    "what moves other models": (RELEASE.format(1), "inertia/pointmass-weight-lbs"),
    "the clock": (
        component("pure_gain", "<gain> 0 </gain> <output> simulation/integrator/rate/rotational </output>"),
        "simulation/integrator",
    ),
    "a lever that nobody moves": (
        component("pure_gain", "<gain> 1 </gain> <output> fcs/flap-cmd-norm </output>"),
        "fcs/flap-cmd-norm",
    ),
    "a property that a reset sets": (
        '<property value="2"> fcs/out </property>' + component("pure_gain", "<gain> 1 </gain>"),
        "declared with a value",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_known_is_refused_by_tag_and_file(what):
    control, named = REFUSED[what]
    with pytest.raises(UnsupportedAircraft, match=r"body\.xml: <") as error:
        frame_of(aircraft_file(control=control))
    assert named in str(error.value)


# -------------------------------------------------------------------------------------------------------------- engines

SWITCHED = """
<turbine_engine name="switched">
  <milthrust unit="LBS"> 1000 </milthrust> <maxthrust unit="LBS"> 1500 </maxthrust> <atsfc> 2.1 </atsfc>
  <augmented> {augmented} </augmented> <augmethod> 1 </augmethod>
  <function name="IdleThrust"> <value> 0.1 </value> </function>
  <function name="MilThrust"> <value> 0.9 </value> </function>
  <function name="AugThrust"> <value> 0.8 </value> </function>
</turbine_engine>
"""


def engine_flight(engine: str, throttle: float, propulsion: str = PROPULSION) -> Flight:
    """A flight with another engine in place of the one that does nothing."""
    source = source_of(
        frame_of(aircraft_file(propulsion=propulsion), engine=engine),
        limits_around("still"),
        ("engine_0_thrust", "engine_1_thrust", "propulsion/engine[1]/thrust-lbs"),
    )
    flight = Flight(imported(source), altitude_m=3000.0, true_airspeed_mps=150.0, throttle_command=throttle)
    flight.advance()
    return flight


def test_an_afterburner_with_a_switch_is_lit_when_a_flight_begins_and_goes_out_below_full_throttle():
    e = engine_flight(SWITCHED.format(augmented=1), 0.5).e
    assert e.engine_0_thrust == pytest.approx(100.0 + 0.9 * 900.0 * (e.engine_0_n2 - 60.0) ** 2 / 40.0**2)
    assert (
        e.engine_0_fuel_flow == 2.1 * 1500.0 * 0.8
    )  # what it burnt when it was lit: that falls from the next frame on


def test_an_afterburner_with_a_switch_burns_on_at_full_throttle():
    flight = engine_flight(SWITCHED.format(augmented=1), 1.0)
    flight.advance(200)
    assert flight.e.engine_0_thrust == 1500.0 * 0.8
    assert flight.e.engine_0_fuel_flow == 2.1 * 1500.0 * 0.8


def test_a_method_of_augmentation_without_an_afterburner_is_refused():
    with pytest.raises(UnsupportedAircraft, match="the method of augmentation 1, without one"):
        engine_flight(SWITCHED.format(augmented=0), 1.0)


def test_a_turbine_that_does_not_say_has_ten_thousand_pounds():
    bare = """<turbine_engine name="bare">
      <function name="IdleThrust"> <value> 0 </value> </function>
      <function name="MilThrust"> <value> 1 </value> </function>
    </turbine_engine>"""
    assert engine_flight(bare, 1.0).e.engine_0_thrust == pytest.approx(10_000.0)


def test_one_lever_moves_all_engines():
    e = engine_flight(SWITCHED.format(augmented=1), 0.5, PROPULSION + PROPULSION[: PROPULSION.index("<tank")]).e
    assert e.engine_1_thrust == e.engine_0_thrust > 0.0
    assert e.propulsion_engine_1__thrust_lbs == e.engine_1_thrust


def test_a_function_that_an_afterburner_needs_is_missed():
    without = SWITCHED.replace('<function name="AugThrust"> <value> 0.8 </value> </function>', "")
    with pytest.raises(UnsupportedAircraft, match="the functions"):
        engine_flight(without.format(augmented=1), 0.5)
    assert engine_flight(ENGINE, 0.5).e.engine_0_thrust == 0.0
