"""Replays: a match as a small file that is re-simulated and compared bitwise.

A replay holds the inputs of a match: the seeds, every action from outside, every change of a parameter or a player,
every return to a snapshot. It holds no pictures, no trajectory and no match record. The simulation plays the inputs
again under the same rules. Hashes of every state are compared::

    replay = record("palaestra/UcavDogfight-v2", {"red": "expert", "blue": "weave"}, seed=7)
    replay.save("match.npz")
    print(verify(load("match.npz")))
    for sim in frames(replay):
        print(sim.states["health"][0])

A `Recorder` records any simulation while other code drives it: a training run, a face, an adapter.

An untrusted file can be wrong, never dangerous: `load` runs nothing in it and checks sizes before memory, and
all that it holds goes through the same checks as a call of the simulation. What is wrong is a `ReplayError`.
"""

from palaestra.replay.export import to_csv, to_gif
from palaestra.replay.file import Replay, ReplayError, load
from palaestra.replay.notebook import show, watch
from palaestra.replay.page import to_html
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
    "show",
    "to_csv",
    "to_gif",
    "to_html",
    "verify",
    "watch",
]
