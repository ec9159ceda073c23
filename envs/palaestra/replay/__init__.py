"""Replays: a match as a small file that plays itself again, to the bit, and proves it.

A replay holds no pictures and no trajectory but what came from outside: where each match began, every action, every
change of a parameter or a player. The simulation plays it again under the same rules, and a hash of every state says
that it is the same match::

    replay = record("palaestra/UcavDogfight-v0", {"red": "expert", "blue": "novice"}, seed=7)
    replay.save("match.npz")
    print(verify(load("match.npz")))
    for sim in frames(replay):
        print(sim.states["health"][0])

A `Recorder` hears any simulation while something else plays it: a training run, a face, an adapter.
"""

from palaestra.replay.export import to_csv, to_gif
from palaestra.replay.file import Replay, ReplayError, load
from palaestra.replay.playback import Verification, frames, verify
from palaestra.replay.recording import Recorder, record

__all__ = [
    "Recorder",
    "Replay",
    "ReplayError",
    "Verification",
    "frames",
    "load",
    "record",
    "to_csv",
    "to_gif",
    "verify",
]
