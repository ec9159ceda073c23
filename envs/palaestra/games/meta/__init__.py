"""Meta: families of tasks, for learning from data of some tasks how to act in others."""

from palaestra.game import Family, Preset, presets

FAMILY = Family(
    "meta",
    rows=(
        *presets(
            "palaestra.games.meta.meta_point:game",
            Preset("palaestra/MetaPoint-v0", "a point walks to one of 50 goals that only its rewards tell"),
        ),
        *presets(
            "palaestra.games.meta.meta_direction:game",
            Preset("palaestra/MetaDirection-v0", "a body is paid for its velocity along one of 50 hidden directions"),
        ),
    ),
    order=9,
    speed=[("palaestra/MetaPoint-v0", "random", 1e6)],
)
