"""The standard atmosphere and what instruments make of it: kernel functions in JSBSim's units (ft, lbf, slug, Rankine).

U.S. Standard Atmosphere 1976 without humidity, up to 47 km, from JSBSim's constants (`FGAtmosphere`,
`FGStandardAtmosphere` of JSBSim 1.3); one factor scales pressure and density at all heights.
"""

from __future__ import annotations

import math

FOOT_M = 0.3048
EARTH_RADIUS_FT = 6_356_766.0 / FOOT_M
"""Radius in the geopotential altitude."""
GRAVITY_FPS2 = 9.80665 / FOOT_M
GAS_CONSTANT = 8.31432 / 28.9645 * 1000.0 / (FOOT_M * FOOT_M * 1.8)
"""Of dry air, ft lbf / (slug R)."""
HEAT_RATIO = 1.4
SEA_LEVEL_PRESSURE_PSF, SEA_LEVEL_TEMPERATURE_R = 2116.228, 518.67
SEA_LEVEL_DENSITY = SEA_LEVEL_PRESSURE_PSF / (GAS_CONSTANT * SEA_LEVEL_TEMPERATURE_R)
"""slug/ft^3."""
SEA_LEVEL_SOUND_FPS = math.sqrt(HEAT_RATIO * GAS_CONSTANT * SEA_LEVEL_TEMPERATURE_R)


def _layers() -> tuple[tuple[float, ...], ...]:
    """Rows of base height (geopotential ft), base temperature (R), lapse rate (R/ft), pressure (psf) and density."""
    heights = (0.0, 36_089.2388, 65_616.7979, 104_986.8766, 154_199.4751)
    temperatures = (518.67, 389.97, 389.97, 411.57, 487.17)
    rows, pressure = [], SEA_LEVEL_PRESSURE_PSF
    for k in range(4):
        height, temperature, rise = heights[k], temperatures[k], heights[k + 1] - heights[k]
        lapse = (temperatures[k + 1] - temperature) / rise
        rows.append((height, temperature, lapse, pressure, pressure / (GAS_CONSTANT * temperature)))
        if lapse:
            pressure *= (temperature / (temperature + lapse * rise)) ** (GRAVITY_FPS2 / (GAS_CONSTANT * lapse))
        else:
            pressure *= math.exp(-GRAVITY_FPS2 * rise / (GAS_CONSTANT * temperature))
    return tuple(rows)


LAYERS = _layers()
TROPOSPHERE, STRATOSPHERE, UPPER, TOP = LAYERS


def temperature_and_pressure(altitude_ft):
    """Temperature, R, and pressure, psf, of the standard day at a geometric altitude."""
    height = altitude_ft * EARTH_RADIUS_FT / (EARTH_RADIUS_FT + altitude_ft)
    if height < STRATOSPHERE[0]:
        return in_gradient(TROPOSPHERE, height)
    if height < UPPER[0]:
        base, temperature = STRATOSPHERE[0], STRATOSPHERE[1]
        return temperature, STRATOSPHERE[3] * math.exp(-GRAVITY_FPS2 * (height - base) / (GAS_CONSTANT * temperature))
    return in_gradient(UPPER if height < TOP[0] else TOP, height)


def in_gradient(layer, height):
    """Temperature and pressure in a layer whose temperature changes with height (geopotential ft)."""
    rise = layer[2] * (height - layer[0])
    factor = layer[1] / (layer[1] + rise)
    return layer[1] + rise, layer[3] * factor ** (GRAVITY_FPS2 / (GAS_CONSTANT * layer[2]))


def density_altitude(density):
    """Geometric altitude, ft, at which the standard day has a density, slug/ft^3."""
    if density >= STRATOSPHERE[4]:
        height = height_of_density(TROPOSPHERE, density)
    elif density >= UPPER[4]:
        scale = GAS_CONSTANT * STRATOSPHERE[1] / GRAVITY_FPS2
        height = STRATOSPHERE[0] - scale * math.log(density / STRATOSPHERE[4])
    else:
        height = height_of_density(UPPER if density >= TOP[4] else TOP, density)
    return height * EARTH_RADIUS_FT / (EARTH_RADIUS_FT - height)


def height_of_density(layer, density):
    """Geopotential altitude, ft, of a density in a layer whose temperature changes with height."""
    exponent = -1.0 / (1.0 + GRAVITY_FPS2 / (GAS_CONSTANT * layer[2]))
    return layer[0] + layer[1] / layer[2] * ((density / layer[4]) ** exponent - 1.0)


def total_pressure(mach, pressure):
    """Pressure that a pitot tube shows: isentropic below Mach 1, behind a normal shock above (Rayleigh)."""
    if mach < 1.0:
        base = 1.0 + 0.2 * mach * mach
        return pressure * (base * base * base * math.sqrt(base))
    return pressure * RAYLEIGH * mach**7.0 / (7.0 * mach * mach - 1.0) ** 2.5


RAYLEIGH = 1.2**3.5 * 6.0**2.5


def calibrated_airspeed(mach, pressure):
    """Calibrated airspeed, ft/s: the speed at which the impact pressure would be the same at sea level."""
    impact = total_pressure(mach, pressure) - pressure
    ratio = impact / SEA_LEVEL_PRESSURE_PSF + 1.0
    number = math.sqrt(5.0 * (ratio ** (2.0 / 7.0) - 1.0))
    if number > 1.0:
        for _ in range(10):
            number = SUPERSONIC * math.sqrt(ratio * (1.0 - 1.0 / (7.0 * number * number)) ** 2.5)
    return SEA_LEVEL_SOUND_FPS * number


SUPERSONIC = 1.2**-1.75 * (1.2 / 1.4) ** -1.25
