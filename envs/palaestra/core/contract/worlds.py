"""Worlds are read-only: the same arrays serve every simulation of a game, so no code may write into them.

NumPy refuses a write in Python, and numba refuses to compile a hook that assigns to a member of ``world``.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def read_only(world: Any) -> Any:
    """The world with read-only views in the place of its arrays, in tuples within tuples too.

    The arrays themselves stay as they are: one that a user handed to a factory is still the user's to write to.
    """
    if isinstance(world, np.ndarray):
        if not world.flags.writeable:
            return world
        view = world.view()
        view.flags.writeable = False
        return view
    if isinstance(world, tuple):
        members = [read_only(member) for member in world]
        return type(world)._make(members) if hasattr(world, "_fields") else tuple(members)  # type: ignore[attr-defined]
    return world
