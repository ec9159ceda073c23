"""Calibration: well-known games, equal to their originals step by step.

They are here to be measured and read, not to be won: the same rules run elsewhere, so a ratio of speeds compares the
engines alone, and a reader of the original sees how a game is written down here.
"""

from palaestra.game import Family, Preset, presets

FAMILY = Family(
    "calibration",
    rows=presets(
        "palaestra.games.calibration.cartpole:game",
        Preset("palaestra/CartPole-v0", "Gymnasium's CartPole-v1, step by step"),
    ),
    order=0,
)
