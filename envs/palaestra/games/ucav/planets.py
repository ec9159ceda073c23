"""What the aircraft fly around, in the units of JSBSim, and how its angles become metres of the flat map of a match."""

from __future__ import annotations

from dataclasses import dataclass

MAP_ALTITUDE_M = 5_000.0
"""Height at which a metre of the map is a metre of air."""


@dataclass(frozen=True)
class Planet:
    """A planet.

    Attributes:
        about: What it is, for pages.
        asset: Its planet file for JSBSim among our assets; None where JSBSim's own Earth is meant.
        equator_m: Radius at the equator.
        eccentricity_squared: Of its ellipsoid.
        equator_ft: Radius at the equator as JSBSim has it.
        pole_ft: Radius at the poles as JSBSim has it.
        mass: Gravitational parameter, ft^3/s^2.
        flattening: Second zonal harmonic of gravity, J2.
        rotation: rad/s.
    """

    about: str
    asset: str | None
    equator_m: float
    eccentricity_squared: float
    equator_ft: float
    pole_ft: float
    mass: float
    flattening: float
    rotation: float

    @property
    def north_m_per_rad(self) -> float:
        """Metres of the map in a radian of latitude, at latitude 0 and `MAP_ALTITUDE_M`."""
        return self.equator_m * (1.0 - self.eccentricity_squared) + MAP_ALTITUDE_M

    @property
    def east_m_per_rad(self) -> float:
        """Metres of the map in a radian of longitude, at latitude 0 and `MAP_ALTITUDE_M`."""
        return self.equator_m + MAP_ALTITUDE_M


RADIUS_M, RADIUS_FT = 6_378_137.0, 6_378_137.0 / 0.3048
EARTH_MASS = 14.0764417572e15

PLANETS = {
    "still": Planet(
        "a sphere that does not turn: flights depend on neither heading nor place",
        *("ucav/still.xml", RADIUS_M, 0.0, RADIUS_FT, RADIUS_FT, EARTH_MASS, 0.0, 0.0),
    ),
    "wgs84": Planet(
        "the Earth: WGS-84 ellipsoid (NIMA TR8350.2), turning",
        *(None, RADIUS_M, 6.694379990141e-3, 20_925_646.32546, 20_855_486.5951, EARTH_MASS, 1.08262982e-3, 7.292115e-5),
    ),
}
"""Words of ``planet=``; the numbers in feet are those of JSBSim."""
