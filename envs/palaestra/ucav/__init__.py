"""UCAV: six-degree-of-freedom air combat on JSBSim's F-16, from following a command to a gunfight."""

from palaestra.core.catalog import Row

ROWS = (
    Row(
        "palaestra/UcavTrack-v0",
        "palaestra.ucav.track:game",
        "ucav",
        "inner loop: fly a commanded attitude, heading or load factor",
    ),
    Row(
        "palaestra/UcavPursuit-v0",
        "palaestra.ucav.pursuit:game",
        "ucav",
        "one learner hunts a scripted target",
    ),
    Row(
        "palaestra/UcavDogfight-v0",
        "palaestra.ucav.dogfight:game",
        "ucav",
        "1v1 gunfight, zero-sum",
    ),
)
