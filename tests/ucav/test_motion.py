"""The equations of motion and the air against closed forms, published tables and integrations of their own.

Bodies are simple (balls, bricks, a top) and fly as plain Python. Where an integrator of JSBSim's has an error, the
test knows it: explicit Euler and Adams-Bashforth have closed forms too.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from ucav.aircraft_files import Flight, aircraft_file, module_of

from palaestra.games.ucav.aircraft import air, motion
from palaestra.games.ucav.planets import PLANETS

FOOT_M = 0.3048
SPHERE_FT = PLANETS["still"].equator_ft
EQUATOR_M, SQUARE = 6_378_137.0, 6.69437999014e-3
"""Semi-major axis and first eccentricity squared of WGS-84 (NIMA TR8350.2, table 3.1 and 3.3)."""
MASS_SI = 3.986004418e14
"""Gravitational parameter of the Earth, m^3/s^2, WGS-84."""
TURN = 7.292115e-5
"""rad/s."""
DRAG = """<function name="drag"> <product>
    <property> aero/qbar-psf </property> <property> metrics/Sw-sqft </property> <value> 0.5 </value>
</product> </function>"""
CANNONBALL = aircraft_file(drag=DRAG, weight_lb=0.3)
BODY_RATES = ("inertial_p", "inertial_q", "inertial_r")


def vector(e, *names):
    return np.array([getattr(e, name) for name in names])


def position(flight):
    """Inertial axes, m."""
    return FOOT_M * vector(flight.e, "position_x", "position_y", "position_z")


def velocity(flight):
    """Inertial axes, m/s."""
    return FOOT_M * vector(flight.e, "velocity_x", "velocity_y", "velocity_z")


def to_body(flight):
    """The matrix from inertial to body axes."""
    m = motion.rotation(*vector(flight.e, "attitude_w", "attitude_x", "attitude_y", "attitude_z"))
    return np.reshape(m, (3, 3))


# ------------------------------------------------------------------------------------------------------- free fall


def pull(place, j2):
    """Gravity, m/s^2, in vector form: a point mass, and the second zonal harmonic (Vallado, 8.6)."""
    axis, r = np.array([0.0, 0.0, 1.0]), np.linalg.norm(place)
    z = place @ axis / r
    harmonic = 1.5 * j2 * MASS_SI * EQUATOR_M**2 / r**4 * ((5 * z * z - 1) * place / r - 2 * z * axis)
    return -MASS_SI * place / r**3 + harmonic


def fall(place, speed, seconds, j2, steps=2000):
    """Where a body is after some time: Runge-Kutta of order 4."""
    state, dt = np.array([place, speed]), seconds / steps
    slope = lambda s: np.array([s[1], pull(s[0], j2)])  # noqa: E731
    for _ in range(steps):
        a = slope(state)
        b = slope(state + dt / 2 * a)
        c = slope(state + dt / 2 * b)
        state = state + dt / 6 * (a + 2 * b + 2 * c + slope(state + dt * c))
    return state


STARTS = {
    "dropped": {"altitude_m": 9000.0},
    "thrown far": {"altitude_m": 20_000.0, "true_airspeed_mps": 3000.0, "heading_rad": 0.8, "pitch_rad": 0.5},
    "from the north": {"altitude_m": 9000.0, "north_m": 5e6, "true_airspeed_mps": 900.0, "heading_rad": 4.0},
}


@pytest.fixture(scope="module")
def balls():
    """A ball without air forces around each planet."""
    return {planet: module_of(aircraft_file(), planet) for planet in PLANETS}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("planet", "j2"), [("still", 0.0), ("wgs84", 1.08262982e-3)])
def test_a_ball_without_air_forces_falls_as_newton_says(balls, planet, j2, start):
    """The first steps of Adams-Bashforth, without a past, lose g dt^2 / 12; the rest is of higher order."""
    flight = Flight(balls[planet], 60, **STARTS[start])
    here, speed = position(flight), velocity(flight)
    flight.advance(40 * 60)
    end, end_speed = fall(here, speed, 40.0, j2)
    lost = 9.8 * flight.dt**2 / 12
    assert np.linalg.norm(position(flight) - end - lost * here / np.linalg.norm(here)) < 0.2 * lost
    assert np.linalg.norm(velocity(flight) - end_speed) < 1e-5


@pytest.mark.check
@pytest.mark.parametrize(("factor", "expected"), [(1.0, 1.0), (1.3, None)])
def test_an_orbit_around_the_still_planet_is_keplers(balls, factor, expected):
    """A circle stays one; on an ellipse energy and angular momentum stay what they were."""
    radius = SPHERE_FT * FOOT_M + 30_000.0
    circular = math.sqrt(MASS_SI / radius)
    flight = Flight(balls["still"], 20, altitude_m=30_000.0, true_airspeed_mps=factor * circular, heading_rad=0.7)
    start, moved = position(flight), np.cross(position(flight), velocity(flight))
    energy = velocity(flight) @ velocity(flight) / 2 - MASS_SI / radius
    flight.advance(20 * 600)
    end = position(flight)
    assert velocity(flight) @ velocity(flight) / 2 - MASS_SI / np.linalg.norm(end) == pytest.approx(energy, rel=1e-8)
    np.testing.assert_allclose(np.cross(end, velocity(flight)), moved, rtol=0, atol=1e-8 * float(np.linalg.norm(moved)))
    if expected:
        assert np.linalg.norm(end) == pytest.approx(radius, abs=0.5)
        assert math.acos(start @ end / radius**2) == pytest.approx(600.0 * circular / radius, rel=1e-6)


@pytest.mark.parametrize("latitude_deg", [0.0, 45.0, -30.0])
def test_a_ball_thrown_up_lands_west_of_its_start(balls, latitude_deg):
    """Coriolis: by 4/3 omega cos(latitude) v^3 / g^2 (Landau and Lifshitz, Mechanics, 39)."""
    latitude, speed = math.radians(latitude_deg), 100.0
    north = latitude * PLANETS["wgs84"].north_m_per_rad
    flight = Flight(balls["wgs84"], 60, north_m=north, true_airspeed_mps=speed, pitch_rad=math.pi / 2)
    gravity = 9.780325 * (1 + 0.0053024 * math.sin(latitude) ** 2)
    flight.advance(20 * 60)
    before = flight.body.altitude_m, flight.body.east_m
    while flight.body.altitude_m > 0.0:
        before = flight.body.altitude_m, flight.body.east_m
        flight.advance()
    share = before[0] / (before[0] - flight.body.altitude_m)
    east = before[1] + share * (flight.body.east_m - before[1])
    east *= math.cos(latitude) * EQUATOR_M / math.sqrt(1 - SQUARE * math.sin(latitude) ** 2)
    east /= PLANETS["wgs84"].east_m_per_rad
    assert east == pytest.approx(-4 / 3 * TURN * math.cos(latitude) * speed**3 / gravity**2, rel=1e-3)


@pytest.mark.parametrize("planet", PLANETS)
def test_a_body_at_rest_over_the_ground_moves_with_it(balls, planet):
    flight = Flight(balls[planet], north_m=4e6, east_m=2e6, altitude_m=3000.0, heading_rad=1.0, roll_rad=0.4)
    omega = PLANETS[planet].rotation
    expected = omega * np.cross([0, 0, 1], position(flight))
    np.testing.assert_allclose(velocity(flight), expected, atol=1e-9)
    assert np.linalg.norm(velocity(flight)) == pytest.approx(omega * math.hypot(*position(flight)[:2]))
    assert (flight.body.p_radps, flight.body.q_radps, flight.body.r_radps) == pytest.approx((0, 0, 0), abs=1e-15)
    assert flight.body.velocity_down_mps == pytest.approx(0.0, abs=1e-9)


# --------------------------------------------------------------------------------------------------------- attitude

BRICK = {"ixx": 2.0, "iyy": 5.0, "izz": 6.0}


def spinning(inertia, rates, hz):
    """A body in free fall that turns with body rates, rad/s; its accelerations are those of the rates."""
    flight = Flight(module_of(aircraft_file(inertia=inertia)), hz, altitude_m=9000.0, heading_rad=0.6, roll_rad=0.3)
    moments = np.diag([inertia[tag] for tag in ("ixx", "iyy", "izz")])
    flight.e.inertial_p, flight.e.inertial_q, flight.e.inertial_r = rates
    changes = np.linalg.solve(moments, -np.cross(rates, moments @ rates))
    flight.e.p_acceleration, flight.e.q_acceleration, flight.e.r_acceleration = changes
    return flight, moments


def test_the_energy_of_a_torque_free_brick_grows_by_the_step_of_explicit_euler_and_nothing_else():
    """A step adds dt^2/2 w' I w' to the energy and dt^2 |I w'|^2 to the square of the angular momentum, exactly."""
    flight, moments = spinning(BRICK, (0.5, 1.0, 0.3), 120)
    start = vector(flight.e, *BODY_RATES)
    energy, square = start @ moments @ start / 2, start @ moments @ moments @ start
    before = energy
    for _ in range(1200):
        change = vector(flight.e, "p_acceleration", "q_acceleration", "r_acceleration")
        energy += flight.dt**2 / 2 * change @ moments @ change
        square += flight.dt**2 * change @ moments @ moments @ change
        flight.advance()
    rates = vector(flight.e, *BODY_RATES)
    assert rates @ moments @ rates / 2 == pytest.approx(energy, rel=1e-12)
    assert rates @ moments @ moments @ rates == pytest.approx(square, rel=1e-12)
    assert 0.0 < energy / before - 1.0 < 0.02


def test_the_angular_momentum_of_a_torque_free_brick_keeps_its_direction_better_with_smaller_steps():
    """Explicit Euler is of first order: half the step, half the error."""
    errors = []
    for hz in (120, 240):
        flight, moments = spinning(BRICK, (0.5, 1.0, 0.3), hz)
        start = to_body(flight).T @ moments @ vector(flight.e, *BODY_RATES)
        flight.advance(10 * hz)
        end = to_body(flight).T @ moments @ vector(flight.e, *BODY_RATES)
        errors.append(np.linalg.norm(end - start) / np.linalg.norm(start))
    assert errors[0] < 0.02
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.1)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_symmetric_top_precesses_with_the_period_of_euler(axis):
    """In body axes by (I3 / I1 - 1) w3, around the angular momentum by L / I1."""
    moments = [4.0, 4.0, 4.0]
    moments[axis] = 6.0
    rates, hz, seconds = np.full(3, 0.2), 480, 10
    rates[axis] = 1.0
    flight, inertia = spinning(dict(zip(("ixx", "iyy", "izz"), moments, strict=True)), rates, hz)
    momentum = to_body(flight).T @ inertia @ rates
    length = np.linalg.norm(momentum)
    nose = to_body(flight)[axis].copy()
    flight.advance(seconds * hz)
    first, second = (axis + 1) % 3, (axis + 2) % 3
    now = vector(flight.e, *BODY_RATES)
    assert now[axis] == pytest.approx(1.0, abs=1e-12)
    turned = math.atan2(now[second], now[first]) - math.atan2(rates[second], rates[first])
    assert turned % (2 * math.pi) == pytest.approx((6.0 / 4.0 - 1.0) * seconds % (2 * math.pi), abs=1e-4)
    unit = momentum / length
    flat = [v - (v @ unit) * unit for v in (nose, to_body(flight)[axis])]
    swept = math.atan2(np.cross(*flat) @ unit, flat[0] @ flat[1])
    assert swept % (2 * math.pi) == pytest.approx(length / 4.0 * seconds % (2 * math.pi), abs=0.01)


def test_moments_turn_a_body_with_all_products_of_inertia_as_eulers_equations_say():
    random = np.random.default_rng(1)
    for _ in range(20):
        root = random.normal(size=(3, 3))
        matrix = root @ root.T + np.eye(3)
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = matrix.tolist()
        inertia = motion.Inertia(xx, yy, zz, xy, xz, yz)
        rates, moments = random.normal(size=(2, 3))
        expected = np.linalg.solve(matrix, moments - np.cross(rates, matrix @ rates))
        np.testing.assert_allclose(motion.angular_acceleration(inertia, *rates, *moments), expected, atol=1e-12)


def test_a_mass_adds_its_inertia_about_the_centre_of_gravity():
    place, mass = np.array([1.0, -2.0, 3.0]), 0.7
    added = motion.with_mass(motion.Inertia(1.0, 2.0, 3.0, 0.1, 0.2, 0.3), mass, *place)
    expected = [[1.0, 0.1, 0.2], [0.1, 2.0, 0.3], [0.2, 0.3, 3.0]]
    expected += mass * (place @ place * np.eye(3) - np.outer(place, place))
    got = [[added.xx, added.xy, added.xz], [added.xy, added.yy, added.yz], [added.xz, added.yz, added.zz]]
    np.testing.assert_allclose(got, expected)


def test_a_point_mass_moves_the_centre_of_gravity_and_adds_inertia():
    """Two bodies of 100 lb, 4 ft apart along the nose: each 2 ft from the middle. JSBSim negates ixy and iyz."""
    text = aircraft_file(inertia={"ixx": 1.0, "iyy": 2.0, "izz": 3.0, "ixy": 0.1, "ixz": 0.2, "iyz": 0.3})
    point = '<pointmass> <weight unit="LBS"> 100 </weight> <location unit="FT"> <x> -4 </x> </location> </pointmass>'
    probes = "inertia", "inertia/cg-x-in", "inertia/mass-slugs"
    e = Flight(module_of(text.replace("</mass_balance>", f"{point} </mass_balance>"), probes=probes)).e
    assert e.inertia_cg_x_in == pytest.approx(-24.0)
    assert e.inertia_mass_slugs == pytest.approx(200.0 / 32.174049)
    far = e.inertia_mass_slugs * 2.0**2
    assert e.inertia == pytest.approx((1.0, 2.0 + far, 3.0 + far, -0.1, 0.2, -0.3))


# Rotations of the axes by an angle about x, y and z.
def about_x(angle):
    return np.array([[1, 0, 0], [0, math.cos(angle), math.sin(angle)], [0, -math.sin(angle), math.cos(angle)]])


def about_y(angle):
    return np.array([[math.cos(angle), 0, -math.sin(angle)], [0, 1, 0], [math.sin(angle), 0, math.cos(angle)]])


def about_z(angle):
    return np.array([[math.cos(angle), math.sin(angle), 0], [-math.sin(angle), math.cos(angle), 0], [0, 0, 1]])


def matrix(array):
    return motion.Matrix(*np.ravel(array))


ATTITUDES = [(0.3, -0.4, 2.0), (-3.0, 1.5, 6.0), (2.5, 0.2, 4.0), (0.1, 1.2, 3.1), (-1.5, -1.1, 0.2)]


@pytest.mark.parametrize("attitude", ATTITUDES)
def test_attitude_is_the_sequence_heading_pitch_roll_in_every_form(attitude):
    roll, pitch, heading = attitude
    turned = about_x(roll) @ about_y(pitch) @ about_z(heading)
    quaternion = motion.quaternion(*attitude)
    np.testing.assert_allclose(np.reshape(motion.rotation(*quaternion), (3, 3)), turned, atol=1e-14)
    back = np.array(motion.quaternion_of(matrix(turned)))
    np.testing.assert_allclose(back * np.sign(back @ quaternion), quaternion, atol=1e-14)
    angles = motion.roll_angle(matrix(turned)), motion.pitch_angle(matrix(turned)), motion.heading_angle(matrix(turned))
    assert angles == pytest.approx(attitude, abs=1e-12)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_nose_that_points_straight_up_or_down_has_heading_0(side):
    vertical = about_x(0.4) @ np.array([[0.0, 0.0, -side], [0.0, 1.0, 0.0], [side, 0.0, 0.0]])
    assert motion.pitch_angle(matrix(vertical)) == pytest.approx(side * math.pi / 2)
    assert motion.roll_angle(matrix(vertical)) == pytest.approx(0.4)
    assert motion.heading_angle(matrix(vertical)) == 0.0


def test_rotations_follow_each_other():
    one, two = ATTITUDES[:2]
    first, second = (about_x(a) @ about_y(b) @ about_z(c) for a, b, c in (one, two))
    (aw, ax, ay, az), (bw, bx, by, bz) = motion.quaternion(*one), motion.quaternion(*two)
    both = motion.product(aw, ax, ay, az, bw, bx, by, bz)
    np.testing.assert_allclose(np.reshape(motion.rotation(*both), (3, 3)), second @ first, atol=1e-14)
    composed = motion.compose_back(matrix(first), matrix(second))
    np.testing.assert_allclose(np.reshape(composed, (3, 3)), first @ second.T, atol=1e-14)
    turned = motion.turned_earth(matrix(first), math.cos(0.7), math.sin(0.7))
    np.testing.assert_allclose(np.reshape(turned, (3, 3)), first @ about_z(0.7), atol=1e-14)
    place = 1.0, -2.0, 3.0
    assert motion.apply(matrix(first), *place) == pytest.approx(tuple(first @ place))
    assert motion.apply_back(matrix(first), *place) == pytest.approx(tuple(first.T @ place))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_body_that_turns_about_one_axis_turns_that_way(axis):
    rates, about = np.zeros(3), (about_x, about_y, about_z)[axis]
    rates[axis] = 0.5
    p, q, r = rates.tolist()
    quaternion = motion.quaternion(0.4, 0.3, 1.0)
    start = np.reshape(motion.rotation(*quaternion), (3, 3))
    for _ in range(1000):
        quaternion = motion.turn(*quaternion, p, q, r, 0.001)
    assert np.linalg.norm(quaternion) == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(np.reshape(motion.rotation(*quaternion), (3, 3)), about(0.5) @ start, atol=1e-6)


# ------------------------------------------------------------------------------------------------------- air forces


@pytest.fixture(scope="module")
def cannonballs():
    return {planet: module_of(CANNONBALL, planet) for planet in PLANETS}


@pytest.fixture(scope="module")
def cannonball(cannonballs):
    return cannonballs["still"]


@pytest.mark.parametrize("planet", PLANETS)
@pytest.mark.parametrize("attitude", [(0.0, 0.0, 0.0), (1.0, -0.7, 2.0), (-2.5, 1.4, 5.0)])
def test_a_cannonball_reaches_its_terminal_speed_whatever_its_attitude(cannonballs, planet, attitude):
    """sqrt(2 m g / (rho S Cd)), on the equator; the air gets denser as it falls: too fast by v^2 / (4 H g)."""
    roll, pitch, heading = attitude
    start = {"altitude_m": 1000.0, "east_m": 3e6, "roll_rad": roll, "pitch_rad": pitch, "heading_rad": heading}
    flight = Flight(cannonballs[planet], **start)
    flight.advance(20 * 60)
    speed, height = flight.body.velocity_down_mps, flight.body.altitude_m
    density = 1.225 * (1 - 2.25577e-5 * height) ** 4.25588  # U.S. Standard Atmosphere 1976
    gravity = MASS_SI / (EQUATOR_M + height) ** 2 if planet == "still" else 9.7803253 - 3.09e-6 * height
    terminal = math.sqrt(2 * 0.3 * 0.45359237 * gravity / (density * FOOT_M**2 * 0.5))
    assert 5.0 < terminal < 8.0
    assert speed == pytest.approx(terminal, rel=3e-4)
    assert flight.body.true_airspeed_mps == pytest.approx(speed, rel=1e-6)
    assert flight.body.calibrated_airspeed_mps == pytest.approx(speed * math.sqrt(density / 1.225), rel=1e-3)


@pytest.mark.parametrize("attitude", [(0.0, 0.0, 0.0), (1.0, -0.7, 2.0)])
def test_a_ball_in_a_steady_wind_ends_with_the_wind(cannonball, attitude):
    roll, pitch, heading = attitude
    start = {"altitude_m": 1000.0, "roll_rad": roll, "pitch_rad": pitch, "heading_rad": heading}
    flight = Flight(cannonball, wind_north_mps=9.0, wind_east_mps=-6.0, true_airspeed_mps=40.0, **start)
    flight.advance(30 * 60)
    body = flight.body
    assert body.velocity_north_mps == pytest.approx(9.0, abs=1e-4)
    assert body.velocity_east_mps == pytest.approx(-6.0, abs=1e-4)
    assert body.true_airspeed_mps == pytest.approx(body.velocity_down_mps, rel=1e-6)


def test_a_flight_that_starts_in_wind_has_its_airspeed_along_the_nose(cannonball):
    start = {"altitude_m": 1000.0, "pitch_rad": 0.3, "heading_rad": 1.0, "roll_rad": 0.5}
    body = Flight(cannonball, wind_north_mps=9.0, wind_down_mps=2.0, true_airspeed_mps=40.0, **start).body
    assert (body.u_mps, body.v_mps, body.w_mps) == pytest.approx((40.0, 0.0, 0.0), abs=1e-9)
    assert body.velocity_north_mps == pytest.approx(9.0 + 40.0 * math.cos(0.3) * math.cos(1.0))
    assert body.velocity_east_mps == pytest.approx(40.0 * math.cos(0.3) * math.sin(1.0))
    assert body.velocity_down_mps == pytest.approx(2.0 - 40.0 * math.sin(0.3))


def test_thin_air_lets_a_ball_fall_faster(cannonball):
    speeds = []
    for deviation in (0.0, -0.19):
        flight = Flight(cannonball, altitude_m=1000.0, density_deviation=deviation)
        flight.advance(20 * 60)
        speeds.append(flight.body.velocity_down_mps)
    assert speeds[1] / speeds[0] == pytest.approx(1 / 0.9, rel=2e-3)


# ---------------------------------------------------------------------------------------------------------- geodesy

WGS84 = PLANETS["wgs84"].equator_ft, PLANETS["wgs84"].pole_ft


def over_the_ellipsoid(latitude_deg, height_m):
    """Distance from the axis and along it, m (Hofmann-Wellenhof, GNSS, 8.7)."""
    sine, cosine = math.sin(math.radians(latitude_deg)), math.cos(math.radians(latitude_deg))
    curvature = EQUATOR_M / math.sqrt(1 - SQUARE * sine * sine)
    return (curvature + height_m) * cosine, (curvature * (1 - SQUARE) + height_m) * sine


def sea_level(flat, up):
    """Radius of the ellipsoid on the line to a point, m: x^2 / a^2 + z^2 / b^2 = 1."""
    return math.hypot(flat, up) / math.sqrt((flat / EQUATOR_M) ** 2 + up**2 / (EQUATOR_M**2 * (1 - SQUARE)))


@pytest.mark.parametrize("height_m", [-50.0, 1000.0, 30_000.0, 3e6])
@pytest.mark.parametrize("latitude_deg", [0.0, 30.0, 60.0, 89.0, -45.0])
def test_a_place_over_the_ellipsoid_is_found_from_earth_axes_and_back(latitude_deg, height_m):
    longitude = 2.0
    flat, up = over_the_ellipsoid(latitude_deg, height_m)
    x, y, z = flat * math.cos(longitude) / FOOT_M, flat * math.sin(longitude) / FOOT_M, up / FOOT_M
    here = motion.place_on_ellipsoid(x, y, z, *WGS84)
    assert math.degrees(math.atan2(here.sine, here.cosine)) == pytest.approx(latitude_deg, abs=1e-9)
    assert here.height * FOOT_M == pytest.approx(height_m, abs=1e-4)  # radii of JSBSim are rounded to 1e-5 ft
    altitude = math.hypot(flat, up) - sea_level(flat, up)
    assert here.altitude * FOOT_M == pytest.approx(altitude, abs=1e-4)
    latitude = math.radians(latitude_deg)
    axes = about_y(-math.pi / 2 - latitude) @ about_z(longitude)
    np.testing.assert_allclose(np.reshape(here.to_local, (3, 3)), axes, atol=1e-10)
    there = motion.point_over_ellipsoid(latitude, longitude, altitude / FOOT_M, *WGS84)
    np.testing.assert_allclose(there, (x, y, z), rtol=0, atol=1e-3)


def test_a_place_over_the_sphere_is_found_from_earth_axes():
    latitude, longitude, radius = -0.6, 2.5, 2e7
    x, y = (1e4 + radius) * math.cos(latitude) * np.array([math.cos(longitude), math.sin(longitude)])
    here = motion.place_on_sphere(x, y, (1e4 + radius) * math.sin(latitude), radius)
    assert (here.altitude, here.height) == pytest.approx((1e4, 1e4))
    assert math.atan2(here.sine, here.cosine) == pytest.approx(latitude)
    axes = about_y(-math.pi / 2 - latitude) @ about_z(longitude)
    np.testing.assert_allclose(np.reshape(here.to_local, (3, 3)), axes, atol=1e-12)
    assert motion.point_over_ellipsoid(latitude, longitude, 1e4, radius, radius) == pytest.approx(
        (x, y, (1e4 + radius) * math.sin(latitude))
    )


@pytest.mark.parametrize("latitude_deg", [0.0, 30.0, 60.0, 89.0, -45.0])
def test_gravity_is_that_of_wgs84(latitude_deg):
    """Normal gravity on the ellipsoid (Somigliana; NIMA TR8350.2, 4-1); the fourth harmonic is left out, 1e-4 m/s^2."""
    flat, up = over_the_ellipsoid(latitude_deg, 0.0)
    ground = PLANETS["wgs84"]
    pull = motion.gravity(flat / FOOT_M, 0.0, up / FOOT_M, ground.mass, ground.flattening, ground.equator_ft)
    seen = np.array(pull) * FOOT_M + np.array([TURN**2 * flat, 0.0, 0.0])
    sine, cosine = math.sin(math.radians(latitude_deg)), math.cos(math.radians(latitude_deg))
    expected = 9.7803253359 * (1 + 0.00193185265241 * sine**2) / math.sqrt(1 - SQUARE * sine**2)
    assert seen @ np.array([-cosine, 0.0, -sine]) == pytest.approx(expected, abs=1.5e-4)
    assert seen @ np.array([-sine, 0.0, cosine]) == pytest.approx(0.0, abs=1.5e-4)


# -------------------------------------------------------------------------------------------------------------- air

PSF_PA, RANKINE_K, DENSITY_SI = 47.88025898, 1 / 1.8, 515.378818

ISA = [
    (0.0, 288.15, 101_325.0),
    (5000.0, 255.65, 54_019.9),
    (11_000.0, 216.65, 22_632.1),
    (15_000.0, 216.65, 12_044.6),
    (20_000.0, 216.65, 5474.89),
    (32_000.0, 228.65, 868.019),
    (40_000.0, 251.05, 277.522),
]
"""Geopotential altitude, m; K; Pa (ISO 2533 and its tables)."""


def geometric_ft(height_m):
    """Geometric altitude, ft, of a geopotential one, m."""
    return height_m * 6_356_766.0 / (6_356_766.0 - height_m) / FOOT_M


@pytest.mark.parametrize(("height_m", "temperature", "pressure"), ISA)
def test_the_standard_atmosphere_is_the_published_one(height_m, temperature, pressure):
    found = air.temperature_and_pressure(geometric_ft(height_m))
    assert found[0] * RANKINE_K == pytest.approx(temperature, abs=0.002)
    assert found[1] * PSF_PA == pytest.approx(pressure, rel=2e-5)


def test_the_atmosphere_has_no_steps():
    for layer in air.LAYERS[1:]:
        edge = geometric_ft(layer[0] * FOOT_M)
        below, above = (air.temperature_and_pressure(edge + side) for side in (-1e-4, 1e-4))
        assert below == pytest.approx(above, rel=1e-8)


@pytest.mark.parametrize(
    "altitude_m", [-200.0, 0.0, 5000.0, 10_990.0, 11_030.0, 15_000.0, 20_100.0, 30_000.0, 40_000.0]
)
def test_density_altitude_is_the_altitude_on_the_standard_day(altitude_m):
    temperature, pressure = air.temperature_and_pressure(altitude_m / FOOT_M)
    density = pressure / (air.GAS_CONSTANT * temperature)
    assert air.density_altitude(density) * FOOT_M == pytest.approx(altitude_m, abs=1e-5)
    if altitude_m == 0.0:
        assert density * DENSITY_SI == pytest.approx(1.225, rel=1e-4)


@pytest.mark.parametrize(("mach", "ratio"), [(0.5, 0.8430), (0.9, 0.5913), (1.0, 0.5283), (1.5, 0.2930), (2.0, 0.1773)])
def test_a_pitot_tube_shows_the_published_pressure(mach, ratio):
    """Static to pitot pressure: NACA Report 1135, tables I and II."""
    assert 1.0 / air.total_pressure(mach, 1.0) == pytest.approx(ratio, abs=6e-5)


@pytest.mark.parametrize("mach", [0.05, 0.6, 0.99, 1.01, 1.4, 2.0])
def test_calibrated_airspeed_is_true_airspeed_at_sea_level(mach):
    speed = mach * 340.294 / FOOT_M
    assert air.calibrated_airspeed(mach, 2116.228) == pytest.approx(speed, rel=2e-5)


@pytest.mark.parametrize(("altitude_m", "mach"), [(3000.0, 0.4), (10_000.0, 0.8), (11_000.0, 1.6), (5000.0, 1.3)])
def test_calibrated_airspeed_has_the_impact_pressure_of_sea_level(altitude_m, mach):
    """Found by bisection in the pitot formula at sea level."""
    _, pressure = air.temperature_and_pressure(altitude_m / FOOT_M)
    impact = air.total_pressure(mach, pressure) - pressure
    low, high = 0.0, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        if air.total_pressure(middle, 2116.228) - 2116.228 < impact:
            low = middle
        else:
            high = middle
    assert air.calibrated_airspeed(mach, pressure) == pytest.approx(low * air.SEA_LEVEL_SOUND_FPS, rel=1e-5)


@pytest.mark.parametrize("pressure", [2116.228, 500.0])
def test_calibrated_airspeed_is_continuous_at_mach_1(pressure):
    below, above = (air.calibrated_airspeed(1.0 + side, pressure) for side in (-1e-7, 1e-7))
    assert 0.0 < above - below < 1e-3
