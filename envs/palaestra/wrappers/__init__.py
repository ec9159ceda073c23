"""Wrappers for teams and for text environments.

==============  ===================================================================================================
`SwapSides`     a Gymnasium Env that plays one match from each side
`Adversary`     an opponent that in a share of its decisions does what is worst for the learner
`SelfPlayPool`  an opponent that is one of many past policies, drawn anew for each match
`Transcript`    a text Env that observes all that was said
`Messages`      likewise as chat messages
==============  ===================================================================================================
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palaestra.wrappers.adversary import Adversary
    from palaestra.wrappers.pool import SelfPlayPool
    from palaestra.wrappers.swap_sides import SwapSides
    from palaestra.wrappers.transcript import Messages, Transcript

_HOMES = {
    "Adversary": "adversary",
    "Messages": "transcript",
    "SelfPlayPool": "pool",
    "SwapSides": "swap_sides",
    "Transcript": "transcript",
}
__all__ = [
    "Adversary",
    "Messages",
    "SelfPlayPool",
    "SwapSides",
    "Transcript",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"palaestra.wrappers has no {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
