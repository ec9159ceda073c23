"""Wind, gusts, the density of the air and the payload: parameters of every game of the family.

The rules write them into the aircraft records, where both flight engines read them.
"""

from __future__ import annotations

import math

from palaestra.game import Parameter, uniform
from palaestra.games.ucav.body import PERIOD_S

WEATHER = (
    Parameter("wind_north_mps", 0.0, -60.0, 60.0, "m/s", "wind: velocity of the air towards the north"),
    Parameter("wind_east_mps", 0.0, -60.0, 60.0, "m/s", "wind: velocity of the air towards the east"),
    Parameter("gust_mps", 0.0, 0.0, 20.0, "m/s", "gusts: standard deviation of each component, for each aircraft"),
    Parameter("gust_s", 2.0, 0.1, 1000.0, "s", "gusts: time in which they fall to 37 %"),
    Parameter("density_deviation", 0.0, -0.5, 0.5, "1", "density of the air above that of the standard day"),
    Parameter("payload_kg", 0.0, 0.0, 5000.0, "kg", "mass at the centre of gravity of each empty aircraft"),
)


def start_weather(s, body):
    """Puts an aircraft into its air, when a match starts."""
    p = s.parameters
    body.density_deviation, body.payload_kg = p.density_deviation, p.payload_kg
    body.wind_north_mps, body.wind_east_mps, body.wind_down_mps = p.wind_north_mps, p.wind_east_mps, 0.0
    if p.gust_mps > 0.0:
        body.wind_north_mps += p.gust_mps * normal(s)
        body.wind_east_mps += p.gust_mps * normal(s)
        body.wind_down_mps = p.gust_mps * normal(s)


def change_weather(s, body):
    """Lets the gusts of one aircraft go on for a period: a Gauss-Markov process of first order in each component."""
    p = s.parameters
    if p.gust_mps > 0.0:
        keep = math.exp(-PERIOD_S / p.gust_s)
        kick = p.gust_mps * math.sqrt(1.0 - keep * keep)
        body.wind_north_mps = p.wind_north_mps + keep * (body.wind_north_mps - p.wind_north_mps) + kick * normal(s)
        body.wind_east_mps = p.wind_east_mps + keep * (body.wind_east_mps - p.wind_east_mps) + kick * normal(s)
        body.wind_down_mps = keep * body.wind_down_mps + kick * normal(s)


def normal(s):
    """A number of the normal distribution (Box and Muller), from two draws of the match."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(s, 0.0, 1.0)))
    return radius * math.cos(2.0 * math.pi * uniform(s, 0.0, 1.0))
