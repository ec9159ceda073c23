"""Grids: battles and pursuits of tens to thousands of agents on a map of cells, with lists of neighbours."""

from palaestra.game import Family, Page, Preset, presets

FAMILY = Family(
    "grid",
    rows=(
        *presets(
            "palaestra.games.grid.grid_battle:game",
            Preset("palaestra/GridBattle-v0", "81 against 81 on a grid of 45 x 45 cells"),
            Preset(
                "palaestra/GridBattle-12-v0", "12 against 12 on a grid of 20 x 20 cells", map_size=20, red=12, blue=12
            ),
            Preset(
                "palaestra/GridBattle-Large-v0",
                "324 against 324 on a grid of 90 x 90 cells",
                map_size=90,
                red=324,
                blue=324,
            ),
            Preset(
                "palaestra/GridBattle-Huge-v0",
                "1,000 against 1,000 on a grid of 200 x 200 cells",
                map_size=200,
                red=1000,
                blue=1000,
            ),
            page=Page("GridBattle", "two armies of up to 1,024 on a grid"),
        ),
        *presets(
            "palaestra.games.grid.grid_pursuit:game",
            Preset("palaestra/GridPursuit-v0", "25 predators chase 50 prey on a grid of 45 x 45 cells"),
            Preset(
                "palaestra/GridPursuit-Blind-v0",
                "12 predators that see two cells far; three must hit a prey at once",
                map_size=28,
                predators=12,
                prey=3,
                view=2,
                radius=14,
                need=3,
                returns=True,
                hit_reward=0.1,
                horizon=60,
            ),
            Preset(
                "palaestra/GridPursuit-BlindEasy-v0",
                "12 predators that see two cells far; two must hit a prey at once",
                map_size=24,
                predators=12,
                prey=4,
                view=2,
                radius=10,
                need=2,
                returns=True,
                hit_reward=0.1,
                horizon=50,
            ),
            page=Page("GridPursuit", "predators catch prey on a grid, some only together"),
        ),
    ),
    example="palaestra/GridBattle-12-v0",
    speed=[("palaestra/GridBattle-v0", "random", 15e3), ("palaestra/GridPursuit-v0", "random", 35e3)],
)
