"""Between the aircraft record of the rules and the flight of the compiled engine: kernel functions.

The map of a match is flat, as in `palaestra.games.ucav.jsbsim_engine`: angles at the origin become metres with the
radii of curvature there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from palaestra.games.ucav.aircraft.air import FOOT_M
from palaestra.games.ucav.aircraft.motion import (
    apply,
    apply_back,
    compose_back,
    heading_angle,
    pitch_angle,
    place_on_ellipsoid,
    point_over_ellipsoid,
    product,
    quaternion,
    quaternion_of,
    roll_angle,
    rotation,
    turned_earth,
)

POUND_KG = 0.45359237


class Limits(NamedTuple):
    """Where the map lies, and where the tables of an airframe end.

    Attributes:
        equator_ft: Radius of the planet at the equator.
        pole_ft: Radius at the poles.
        rotation: Of the planet, rad/s.
        north_m_per_rad: Metres of the map in a radian of latitude.
        east_m_per_rad: Metres of the map in a radian of longitude.
        lowest_attack_rad: Smallest angle of attack of all tables.
        highest_attack_rad: Largest.
        lowest_sideslip_rad: Smallest sideslip.
        highest_sideslip_rad: Largest.
    """

    equator_ft: float
    pole_ft: float
    rotation: float
    north_m_per_rad: float
    east_m_per_rad: float
    lowest_attack_rad: float
    highest_attack_rad: float
    lowest_sideslip_rad: float
    highest_sideslip_rad: float


def put_pose(e, body, limits):
    """Position, attitude and velocity of a flight that begins as the aircraft record says, without rotation.

    The airspeed is along the nose; the wind carries it.
    """
    east, altitude = body.east_m / limits.east_m_per_rad, body.altitude_m / FOOT_M
    north = body.north_m / limits.north_m_per_rad
    x, y, z = point_over_ellipsoid(north, east, altitude, limits.equator_ft, limits.pole_ft)
    here = place_on_ellipsoid(x, y, z, limits.equator_ft, limits.pole_ft)
    w, i, j, k = quaternion_of(here.to_local)
    a, b, c, d = quaternion(body.roll_rad, body.pitch_rad, body.heading_rad)
    e.attitude_w, e.attitude_x, e.attitude_y, e.attitude_z = product(w, i, j, k, a, b, c, d)
    to_body = rotation(e.attitude_w, e.attitude_x, e.attitude_y, e.attitude_z)
    e.inertial_p, e.inertial_q, e.inertial_r = apply(to_body, 0.0, 0.0, limits.rotation)
    e.position_x, e.position_y, e.position_z, e.earth_angle = x, y, z, 0.0
    wind_north, wind_east = body.wind_north_mps / FOOT_M, body.wind_east_mps / FOOT_M
    wind_x, wind_y, wind_z = apply_back(here.to_local, wind_north, wind_east, body.wind_down_mps / FOOT_M)
    nose_x, nose_y, nose_z = apply_back(to_body, body.true_airspeed_mps / FOOT_M, 0.0, 0.0)
    vx, vy, vz = nose_x + wind_x, nose_y + wind_y, nose_z + wind_z
    e.velocity_x, e.velocity_y, e.velocity_z = vx - limits.rotation * y, vy + limits.rotation * x, vz
    e.velocity_x_before, e.velocity_y_before, e.velocity_z_before = e.velocity_x, e.velocity_y, e.velocity_z
    e.velocity_x_two_before, e.velocity_y_two_before = e.velocity_x, e.velocity_y
    e.velocity_z_two_before = e.velocity_z


def put_commands(e, body):
    """Stick, throttle and wind: JSBSim's elevator is positive nose down, its rudder positive nose left."""
    e.fcs_aileron_cmd_norm = body.aileron_command
    e.fcs_elevator_cmd_norm = -body.elevator_command
    e.fcs_rudder_cmd_norm = -body.rudder_command
    e.fcs_throttle_cmd_norm = body.throttle_command
    put_wind(e, body)


def put_wind(e, body):
    """Velocity of the air over the ground."""
    e.wind_north, e.wind_east = body.wind_north_mps / FOOT_M, body.wind_east_mps / FOOT_M
    e.wind_down = body.wind_down_mps / FOOT_M


def put_no_air(e):
    """Standard day, no wind, no payload: JSBSim's resets know of none."""
    e.wind_north, e.wind_east, e.wind_down = 0.0, 0.0, 0.0
    e.pressure_ratio, e.payload_lb = 1.0, 0.0


def put_air_and_payload(e, body):
    """Air and payload of a flight. Returns whether they are others than JSBSim's resets know."""
    put_wind(e, body)
    e.pressure_ratio = 1.0 + body.density_deviation
    e.payload_lb = body.payload_kg / POUND_KG
    is_windy = body.wind_north_mps != 0.0 or body.wind_east_mps != 0.0 or body.wind_down_mps != 0.0
    return is_windy or body.density_deviation != 0.0 or body.payload_kg != 0.0


def show(e, body, limits):
    """Writes what the rules see of a flight; a flight with a number that is not finite keeps its last outputs."""
    total = (
        e.attitude_w + e.attitude_x + e.attitude_y + e.attitude_z + e.inertial_p + e.inertial_q + e.inertial_r
        + e.position_x + e.position_y + e.position_z + e.velocity_x + e.velocity_y + e.velocity_z
        + e.velocities_vc_fps + e.accelerations_Nz + e.aero_alpha_rad + e.aero_beta_rad + e.engine_0_n2
    )  # fmt: skip
    if not math.isfinite(total):
        body.finite = 0
        return
    omega = limits.rotation
    cosine, sine = math.cos(e.earth_angle), math.sin(e.earth_angle)
    x, y = cosine * e.position_x + sine * e.position_y, cosine * e.position_y - sine * e.position_x
    here = place_on_ellipsoid(x, y, e.position_z, limits.equator_ft, limits.pole_ft)
    to_body = rotation(e.attitude_w, e.attitude_x, e.attitude_y, e.attitude_z)
    attitude = compose_back(to_body, turned_earth(here.to_local, cosine, sine))
    vx, vy = e.velocity_x + omega * e.position_y, e.velocity_y - omega * e.position_x
    u, v, w = apply(to_body, vx, vy, e.velocity_z)
    north, east, down = apply_back(attitude, u, v, w)
    body.north_m = math.atan2(here.sine, here.cosine) * limits.north_m_per_rad
    body.east_m = math.atan2(y, x) * limits.east_m_per_rad
    body.altitude_m = here.altitude * FOOT_M
    body.roll_rad, body.pitch_rad, body.heading_rad = (
        roll_angle(attitude),
        pitch_angle(attitude),
        heading_angle(attitude),
    )
    body.true_airspeed_mps = e.velocities_vt_fps * FOOT_M
    body.velocity_north_mps, body.velocity_east_mps, body.velocity_down_mps = (
        north * FOOT_M,
        east * FOOT_M,
        down * FOOT_M,
    )
    wind_u, wind_v, wind_w = apply(attitude, e.wind_north, e.wind_east, e.wind_down)
    body.u_mps, body.v_mps, body.w_mps = (u - wind_u) * FOOT_M, (v - wind_v) * FOOT_M, (w - wind_w) * FOOT_M
    spin_p, spin_q, spin_r = apply(to_body, 0.0, 0.0, omega)
    body.p_radps, body.q_radps, body.r_radps = e.inertial_p - spin_p, e.inertial_q - spin_q, e.inertial_r - spin_r
    body.flight_path_angle_rad = math.atan2(-down, math.sqrt(north * north + east * east))
    body.angle_of_attack_rad, body.sideslip_rad = e.aero_alpha_rad, e.aero_beta_rad
    body.load_factor_g, body.mach = e.accelerations_Nz, e.velocities_mach
    body.calibrated_airspeed_mps = e.velocities_vc_fps * FOOT_M
    body.engine_n2_fraction = 0.01 * e.engine_0_n2
    body.fuel_kg = e.propulsion_total_fuel_lbs * POUND_KG
    attack, slip = e.aero_alpha_rad, e.aero_beta_rad
    is_inside = limits.lowest_attack_rad <= attack <= limits.highest_attack_rad
    body.in_tables = 1 if is_inside and limits.lowest_sideslip_rad <= slip <= limits.highest_sideslip_rad else 0
