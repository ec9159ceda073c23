"""JSBSim's models that are the same for every aircraft: motion, air and instruments, as statements of a frame.

Names are those of JSBSim's properties with underscores where there is one.
"""

from __future__ import annotations

from palaestra.games.ucav.aircraft.air import FOOT_M
from palaestra.games.ucav.planets import Planet

STANDARD_GRAVITY_FPS2 = 9.80665 / FOOT_M
KNOT_FPS = 1852.0 / (3600.0 * FOOT_M)
DEGREES = 57.29577951308232


def propagate(planet: Planet) -> str:
    """State after a frame, and what follows from it: attitude, place, velocity, gravity."""
    axes = "".join(
        f"""
        position_{axis} = position_{axis} + dt / 12.0 * (
            23.0 * velocity_{axis} - 16.0 * velocity_{axis}_before + 5.0 * velocity_{axis}_two_before
        )
        velocity_{axis}_two_before = velocity_{axis}_before
        velocity_{axis}_before = velocity_{axis}
        velocity_{axis} = velocity_{axis} + dt * (1.5 * acceleration_{axis} - 0.5 * acceleration_{axis}_before)
        acceleration_{axis}_before = acceleration_{axis}
        """
        for axis in "xyz"
    )
    return f"""
        attitude_w, attitude_x, attitude_y, attitude_z = turn(
            attitude_w, attitude_x, attitude_y, attitude_z, inertial_p, inertial_q, inertial_r, dt
        )
        inertial_p = inertial_p + dt * p_acceleration
        inertial_q = inertial_q + dt * q_acceleration
        inertial_r = inertial_r + dt * r_acceleration
        {axes}
        to_body = rotation(attitude_w, attitude_x, attitude_y, attitude_z)
        {_turning(planet) if planet.rotation else _still(planet)}
        local_to_body = compose_back(to_body, to_local)
        attitude_theta_rad = pitch_angle(local_to_body)
        attitude_phi_rad = roll_angle(local_to_body)
        attitude_psi_rad = heading_angle(local_to_body)
        cos_pitch, cos_roll = cosines(local_to_body)
        attitude_pitch_rad, attitude_roll_rad = attitude_theta_rad, attitude_phi_rad
        attitude_heading_true_rad = attitude_psi_rad
        velocities_v_north_fps, velocities_v_east_fps, velocities_v_down_fps = apply_back(
            local_to_body, velocities_u_fps, velocities_v_fps, velocities_w_fps
        )
        position_h_sl_ft, position_h_agl_ft = here.altitude, here.height
        """


def _turning(planet: Planet) -> str:
    omega, equator, pole = repr(planet.rotation), repr(planet.equator_ft), repr(planet.pole_ft)
    return f"""
        earth_angle = earth_angle + {omega} * dt
        cos_earth, sin_earth = math.cos(earth_angle), math.sin(earth_angle)
        earth_x = cos_earth * position_x + sin_earth * position_y
        earth_y = cos_earth * position_y - sin_earth * position_x
        here = place_on_ellipsoid(earth_x, earth_y, position_z, {equator}, {pole})
        to_local = turned_earth(here.to_local, cos_earth, sin_earth)
        gravity_earth_x, gravity_earth_y, gravity_z = gravity(
            earth_x, earth_y, position_z, {planet.mass!r}, {planet.flattening!r}, {equator}
        )
        gravity_x = cos_earth * gravity_earth_x - sin_earth * gravity_earth_y
        gravity_y = sin_earth * gravity_earth_x + cos_earth * gravity_earth_y
        velocities_u_fps, velocities_v_fps, velocities_w_fps = apply(
            to_body, velocity_x + {omega} * position_y, velocity_y - {omega} * position_x, velocity_z
        )
        spin_x, spin_y, spin_z = apply(to_body, 0.0, 0.0, {omega})
        velocities_p_rad_sec, velocities_q_rad_sec = inertial_p - spin_x, inertial_q - spin_y
        velocities_r_rad_sec = inertial_r - spin_z
        """


def _still(planet: Planet) -> str:
    return f"""
        here = place_on_sphere(position_x, position_y, position_z, {planet.equator_ft!r})
        to_local = here.to_local
        gravity_x, gravity_y, gravity_z = gravity(
            position_x, position_y, position_z, {planet.mass!r}, 0.0, {planet.equator_ft!r}
        )
        velocities_u_fps, velocities_v_fps, velocities_w_fps = apply(to_body, velocity_x, velocity_y, velocity_z)
        velocities_p_rad_sec, velocities_q_rad_sec, velocities_r_rad_sec = inertial_p, inertial_q, inertial_r
        """


ATMOSPHERE = """
    atmosphere_T_R, standard_pressure = temperature_and_pressure(position_h_sl_ft)
    atmosphere_P_psf = pressure_ratio * standard_pressure
    atmosphere_rho_slugs_ft3 = atmosphere_P_psf / (GAS_CONSTANT * atmosphere_T_R)
    atmosphere_a_fps = math.sqrt(HEAT_RATIO * GAS_CONSTANT * atmosphere_T_R)
    atmosphere_sigma = atmosphere_rho_slugs_ft3 / (pressure_ratio * SEA_LEVEL_DENSITY)
    atmosphere_density_altitude = (
        position_h_sl_ft if pressure_ratio == 1.0 else density_altitude(atmosphere_rho_slugs_ft3)
    )
    """


def auxiliary(eye: str, reference: str) -> str:
    """Flow, airspeeds, and what accelerometers show.

    Args:
        eye: Place of the pilot from the centre of gravity in body axes, three expressions.
        reference: Aerodynamic reference point, the same.
    """
    return f"""
        wind_x, wind_y, wind_z = apply(local_to_body, wind_north, wind_east, wind_down)
        velocities_u_aero_fps = velocities_u_fps - wind_x
        velocities_v_aero_fps = velocities_v_fps - wind_y
        velocities_w_aero_fps = velocities_w_fps - wind_z
        velocities_p_aero_rad_sec, velocities_q_aero_rad_sec = velocities_p_rad_sec, velocities_q_rad_sec
        velocities_r_aero_rad_sec = velocities_r_rad_sec
        flow_square = velocities_u_aero_fps * velocities_u_aero_fps + velocities_w_aero_fps * velocities_w_aero_fps
        flow = math.sqrt(flow_square)
        velocities_vt_fps = math.sqrt(flow_square + velocities_v_aero_fps * velocities_v_aero_fps)
        aero_beta_rad = math.atan2(velocities_v_aero_fps, flow) if velocities_vt_fps > 0.001 else 0.0
        aero_alpha_rad = math.atan2(velocities_w_aero_fps, velocities_u_aero_fps) if flow_square >= 1e-6 else 0.0
        cos_alpha = velocities_u_aero_fps / flow if flow > 0.001 else 1.0
        sin_alpha = velocities_w_aero_fps / flow if flow > 0.001 else 0.0
        cos_beta = flow / velocities_vt_fps if velocities_vt_fps > 0.001 else 1.0
        sin_beta = velocities_v_aero_fps / velocities_vt_fps if velocities_vt_fps > 0.001 else 0.0
        aero_alpha_deg, aero_beta_deg = {DEGREES!r} * aero_alpha_rad, {DEGREES!r} * aero_beta_rad
        aero_mag_beta_rad, aero_mag_beta_deg = abs(aero_beta_rad), abs(aero_beta_deg)
        aero_alphadot_rad_sec = (
            velocities_u_aero_fps * accelerations_wdot_ft_sec2 - velocities_w_aero_fps * accelerations_udot_ft_sec2
        ) / max(flow_square, 1e-6)
        along = (
            velocities_u_aero_fps * accelerations_udot_ft_sec2
            + velocities_v_aero_fps * accelerations_vdot_ft_sec2
            + velocities_w_aero_fps * accelerations_wdot_ft_sec2
        ) / max(velocities_vt_fps, 0.001)
        aero_betadot_rad_sec = (accelerations_vdot_ft_sec2 * velocities_vt_fps - velocities_v_aero_fps * along) / max(
            velocities_vt_fps * flow, 1e-6
        )
        aero_qbar_psf = 0.5 * atmosphere_rho_slugs_ft3 * velocities_vt_fps * velocities_vt_fps
        velocities_mach = velocities_vt_fps / atmosphere_a_fps
        velocities_vg_fps = math.sqrt(
            velocities_v_north_fps * velocities_v_north_fps + velocities_v_east_fps * velocities_v_east_fps
        )
        velocities_vc_fps = calibrated_airspeed(velocities_mach, atmosphere_P_psf)
        velocities_vc_kts = velocities_vc_fps / {KNOT_FPS!r}
        velocities_ve_fps = math.sqrt(2.0 * aero_qbar_psf / SEA_LEVEL_DENSITY)
        velocities_ve_kts = velocities_ve_fps / {KNOT_FPS!r}
        flight_path_gamma_rad = math.atan2(-velocities_v_down_fps, velocities_vg_fps)
        accelerations_Nx = body_acceleration_x / {STANDARD_GRAVITY_FPS2!r}
        accelerations_Ny = body_acceleration_y / {STANDARD_GRAVITY_FPS2!r}
        accelerations_Nz = -body_acceleration_z / {STANDARD_GRAVITY_FPS2!r}
        eye_x, eye_y, eye_z = {eye}
        swing_x, swing_y, swing_z = cross(inertial_p, inertial_q, inertial_r, eye_x, eye_y, eye_z)
        centre_x, centre_y, centre_z = cross(inertial_p, inertial_q, inertial_r, swing_x, swing_y, swing_z)
        tangent_x, tangent_y, tangent_z = cross(p_acceleration, q_acceleration, r_acceleration, eye_x, eye_y, eye_z)
        accelerations_n_pilot_x_norm = (body_acceleration_x + tangent_x + centre_x) / {STANDARD_GRAVITY_FPS2!r}
        accelerations_n_pilot_y_norm = (body_acceleration_y + tangent_y + centre_y) / {STANDARD_GRAVITY_FPS2!r}
        accelerations_n_pilot_z_norm = (body_acceleration_z + tangent_z + centre_z) / {STANDARD_GRAVITY_FPS2!r}
        reference_x, reference_y, reference_z = {reference}
        reference_north, reference_east, reference_down = apply_back(
            local_to_body, reference_x, reference_y, reference_z
        )
        aero_h_b_cg_ft = position_h_agl_ft / metrics_bw_ft
        aero_h_b_mac_ft = (position_h_agl_ft - reference_down) / metrics_bw_ft
        """


def accelerations(planet: Planet) -> str:
    """What the forces do: the accelerations of the next frame."""
    omega = planet.rotation
    turning = f"{2.0 * omega!r} * velocity_y, {-2.0 * omega!r} * velocity_x" if omega else "0.0, 0.0"
    centre = f"{omega * omega!r} * position_x, {omega * omega!r} * position_y" if omega else "0.0, 0.0"
    return f"""
        body_acceleration_x, body_acceleration_y = force_x / inertia_mass_slugs, force_y / inertia_mass_slugs
        body_acceleration_z = force_z / inertia_mass_slugs
        p_acceleration, q_acceleration, r_acceleration = angular_acceleration(
            inertia, inertial_p, inertial_q, inertial_r, moment_x, moment_y, moment_z
        )
        pull_x, pull_y, pull_z = apply_back(to_body, body_acceleration_x, body_acceleration_y, body_acceleration_z)
        acceleration_x, acceleration_y, acceleration_z = pull_x + gravity_x, pull_y + gravity_y, pull_z + gravity_z
        coriolis_x, coriolis_y = {turning}
        centrifugal_x, centrifugal_y = {centre}
        seen_x, seen_y, seen_z = apply(
            to_body, acceleration_x + coriolis_x - centrifugal_x, acceleration_y + coriolis_y - centrifugal_y,
            acceleration_z,
        )
        turn_x, turn_y, turn_z = cross(
            velocities_p_rad_sec, velocities_q_rad_sec, velocities_r_rad_sec,
            velocities_u_fps, velocities_v_fps, velocities_w_fps,
        )
        accelerations_udot_ft_sec2, accelerations_vdot_ft_sec2 = seen_x - turn_x, seen_y - turn_y
        accelerations_wdot_ft_sec2 = seen_z - turn_z
        """
