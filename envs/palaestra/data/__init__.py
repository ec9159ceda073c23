"""Data sets for learning offline: complete episodes in the files of Minari, which anyone can make again, bit for bit.

::

    manifest = make_data("palaestra/SparseSpread-2-v0", "random", "data/spread-random-v0", episodes=100, seed=1)
    for episode in read_data("data/spread-random-v0"):
        print(episode.observations.shape, episode.rewards.sum())

``minari.load_dataset`` reads the same folder. `EpisodeWriter` records a loop of one's own. A data set holds what one
team sees, does and is paid. `read_data` and `verify` compare SHA-256, rules and shapes before anything is used, and
raise `DataError`. Needs the extra ``palaestra[data]``.
"""

from palaestra.data.data_maker import make_data
from palaestra.data.data_manifest import DataError, Manifest, read_manifest
from palaestra.data.data_reader import Episode, iterate_data, read_data, verify
from palaestra.data.episode_writer import EpisodeWriter

__all__ = [
    "DataError",
    "Episode",
    "EpisodeWriter",
    "Manifest",
    "iterate_data",
    "make_data",
    "read_data",
    "read_manifest",
    "verify",
]
