"""Parts of flight control systems and engines that remember something: kernel functions, one call a frame.

Each takes what it remembers as numbers and returns it anew, after JSBSim 1.3 (`FGKinemat`, `FGPID`, `FGFilter`,
`FGTurbine`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

EPSILON = 2.220446049250313e-16


def kinematic(numbers, first, count, target, output, dt):
    """Position of an actuator that moves through given positions in given times.

    Args:
        numbers: All numbers of the airframe.
        first: Where ``count`` positions begin, rising, followed by the ``count`` times, s, that the way to each takes.
        count: Positions.
        target: Where it shall go.
        output: Where it is.
        dt: Time for the way, s.
    """
    target = min(max(target, numbers[first]), numbers[first + count - 1])
    left = dt
    while left > 0.0 and abs(target - output) > 2.0 * EPSILON * max(abs(target), abs(output)):
        k = 1
        while k < count - 1 and (numbers[first + k] < output if target < output else numbers[first + k] <= output):
            k += 1
        seconds = numbers[first + count + k]
        if seconds <= 0.0:
            return target
        low, high = numbers[first + k - 1], numbers[first + k]
        rate = (high - low) / seconds
        near = min(max(target, low), high)
        needed = abs((near - output) / rate)
        if left < needed:
            return output + left * rate if output < target else output - left * rate
        output = near
        left -= needed
    return output


def integral(total, value, before, trigger, ki, dt):
    """Integral of a PID controller: two-step Adams-Bashforth while the trigger is 0; a negative trigger empties it."""
    if trigger < 0.0:
        return 0.0
    if abs(trigger) < 1e-6:
        return total + ki * dt * (1.5 * value - 0.5 * before)
    return total


def seek(value, target, up, down):
    """A value moved towards its target, by at most ``up`` or ``down``."""
    if value > target:
        return max(value - down, target)
    if value < target:
        return min(value + up, target)
    return value


class Turbine(NamedTuple):
    """What a turbine remembers.

    Attributes:
        n1: Speed of the fan, percent.
        n2: Speed of the core, percent.
        share: Core speed between idle (0) and full (1) when it last ran.
        fuel_flow: lb/h.
        augmented: Whether the afterburner burnt in the last frame.
        thrust: lbf.
    """

    n1: float
    n2: float
    share: float
    fuel_flow: float
    augmented: float
    thrust: float


class Speeds(NamedTuple):
    """Speeds of a turbine, percent.

    Attributes:
        idle_n1: Of the fan at idle.
        idle_n2: Of the core at idle.
        full_n1: Of the fan at military power.
        full_n2: Of the core at military power.
        delay: Inverse time of the spool-up, percent/s, at sea level.
        falling_n1: Factor on the rate at which the fan slows down.
        falling_n2: Factor on the rate at which the core slows down.
    """

    idle_n1: float
    idle_n2: float
    full_n1: float
    full_n2: float
    delay: float
    falling_n1: float
    falling_n2: float


def spool_rate(share, density_ratio, delay):
    """Rate at which a spool gains speed, percent/s: slow near idle, faster in thin air."""
    rest = 1.0 - min(1.0, share + 0.1)
    return delay / (1.0 + 3.0 * rest * rest * rest + (1.0 - density_ratio))


def run_turbine(turbine, speeds, lever, density_ratio, dt):
    """Spool speeds after a frame with the throttle lever at 0 (idle) to 1 (military power)."""
    rate = spool_rate(turbine.share, density_ratio, speeds.delay) * dt
    span_1, span_2 = speeds.full_n1 - speeds.idle_n1, speeds.full_n2 - speeds.idle_n2
    n2 = seek(turbine.n2, speeds.idle_n2 + lever * span_2, rate, rate * speeds.falling_n2)
    n1 = seek(turbine.n1, speeds.idle_n1 + lever * span_1, rate, rate * speeds.falling_n1)
    return n1, n2, (n2 - speeds.idle_n2) / span_2


def specific_consumption(consumption, temperature, share):
    """Thrust specific fuel consumption without afterburner, lb/(h lbf), at a temperature, R."""
    return consumption * math.sqrt(temperature / 389.7) * (0.84 + (1.0 - share) * (1.0 - share))


def windmill(turbine, qbar, falling_1, falling_2, dt):
    """A turbine without fuel: the air turns it."""
    return Turbine(
        seek(turbine.n1, qbar / 10.0, (0.5 * turbine.n1 + 0.1) * dt, turbine.n1 / falling_1 * dt),
        seek(turbine.n2, qbar / 15.0, (0.5 * turbine.n2 + 0.1) * dt, turbine.n2 / falling_2 * dt),
        turbine.share,
        seek(turbine.fuel_flow, 0.0, 1000.0 * dt, 10_000.0 * dt),
        0.0,
        0.0,
    )


class Rates(NamedTuple):
    """How much fuel a turbine burns, and how fast it stops.

    Attributes:
        consumption: Thrust specific fuel consumption without afterburner, lb/(h lbf).
        burning: The same with it.
        idle_flow: Least fuel flow while it runs, lb/h.
        bleed: Share of the thrust that bleed air costs.
        windmill_n1: Factor by which the fan slows down without fuel.
        windmill_n2: Factor by which the core slows down without fuel.
    """

    consumption: float
    burning: float
    idle_flow: float
    bleed: float
    windmill_n1: float
    windmill_n2: float


def thrust_and_flow(
    turbine,
    runs,
    speeds,
    rates,
    lever,
    burner,
    idle,
    military,
    full,
    boost,
    switch,
    temperature,
    density_ratio,
    qbar,
    dt,
):
    """A turbine after a frame.

    Args:
        turbine: What it was.
        runs: 1 while it has fuel.
        speeds: Its `Speeds`.
        rates: Its `Rates`.
        lever: Throttle up to military power, in [0, 1].
        burner: Throttle beyond it, in [0, 1].
        idle: Thrust at idle here, lbf.
        military: What military power adds to it.
        full: Thrust with the afterburner.
        boost: 1 if the afterburner adds thrust in proportion to ``burner``.
        switch: 1 if it is lit at full throttle.
        temperature: Of the air, R.
        density_ratio: Of the air, to sea level.
        qbar: Dynamic pressure, lbf/ft^2.
        dt: Length of the frame, s; with 0 the thrust is what it will settle at, and nothing else changes.
    """
    if runs == 0.0 and dt > 0.0:
        return windmill(turbine, qbar, rates.windmill_n1, rates.windmill_n2, dt)
    n1, n2, share = turbine.n1, turbine.n2, lever
    if dt > 0.0:
        n1, n2, share = run_turbine(turbine, speeds, lever, density_ratio, dt)
    thrust, flow, augmented = idle + military * share * share, turbine.fuel_flow, turbine.augmented
    if augmented == 0.0 or dt == 0.0:
        wanted = thrust * specific_consumption(rates.consumption, temperature, share)
        flow = max(seek(flow, wanted, 1000.0 * dt, 10_000.0 * dt), rates.idle_flow)
        thrust *= 1.0 - rates.bleed
    if switch != 0.0:
        core = n2 if dt > 0.0 else speeds.idle_n2 + lever * (speeds.full_n2 - speeds.idle_n2)
        augmented = 1.0 if lever > 0.99 and core > 97.0 else 0.0
        if augmented != 0.0:
            thrust = full
    elif boost != 0.0:
        augmented = 1.0 if burner > 0.0 else 0.0
        if augmented != 0.0:
            thrust += burner * (full - thrust)
    if dt == 0.0:
        return Turbine(turbine.n1, turbine.n2, turbine.share, turbine.fuel_flow, turbine.augmented, thrust)
    if augmented != 0.0:
        flow = seek(flow, thrust * rates.burning, 5000.0 * dt, 10_000.0 * dt)
    return Turbine(n1, n2, share, flow, augmented, thrust)
