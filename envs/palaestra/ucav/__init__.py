"""UCAV: six-degree-of-freedom air combat on JSBSim's F-16, from following a command to a gunfight."""

from palaestra.game import Preset, presets

ROWS = (
    *presets(
        "ucav",
        "palaestra.ucav.track:game",
        Preset("palaestra/UcavTrack-v0", "inner loop: fly a commanded attitude, heading or load factor"),
    ),
    *presets(
        "ucav",
        "palaestra.ucav.pursuit:game",
        Preset("palaestra/UcavPursuit-v0", "one learner hunts a scripted target"),
    ),
    *presets(
        "ucav",
        "palaestra.ucav.dogfight:game",
        Preset("palaestra/UcavDogfight-v0", "1v1 gunfight, zero-sum"),
    ),
)
