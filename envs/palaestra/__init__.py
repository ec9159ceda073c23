"""palaestra: two-team and multi-agent environments for reinforcement learning, compiled, batched and reproducible.

Importing this package registers every environment in Gymnasium and PettingZoo::

    import gymnasium, palaestra

    env = gymnasium.make("palaestra/UcavDogfight-v2", opponent="expert")
    envs = gymnasium.make_vec("palaestra/CartPole-v0", num_envs=4096)
    batch = palaestra.make_batch("palaestra/CartPole-v0", num_envs=4096)
"""

from __future__ import annotations

from palaestra.core.interrupts import Hold, rejoin

with Hold("the import of palaestra"):
    from palaestra.core.files.jsonable import jsonable
    from palaestra.registry import make_batch, register, register_all

    register_all()
    rejoin(__name__)

__version__ = "0.1.0"
__all__ = ["__version__", "jsonable", "make_batch", "register"]
