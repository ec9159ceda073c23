"""Robots that MuJoCo moves: running robots whose joints are divided among agents.

`palaestra.robots.engine` is the engine, `palaestra.robots.picture` draws by casting rays, without a graphics library.
"""

from palaestra.game import Page, Preset, Row, presets

ROWS: tuple[Row, ...] = presets(
    "robots",
    "palaestra.robots.ma:game",
    Preset("palaestra/MaHalfCheetah-v0", "a half cheetah runs, its two legs are agents"),
    Preset("palaestra/MaAnt-v0", "an ant runs, its four legs are agents", robot="ant"),
    Preset("palaestra/MaHopper-v0", "a hopper runs, its three joints are agents", robot="hopper"),
    Preset("palaestra/MaWalker2d-v0", "a walker runs, its two legs are agents", robot="walker2d"),
    page=Page("MaMuJoCo", "Gymnasium's running robots, each driven by several agents"),
)
