"""Wrappers for teams, ours and those of any PettingZoo ParallelEnv, and for text environments.

==============  ===================================================================================================
`TeamAsAgent`   a ParallelEnv with one agent a team
`SingleTeam`    a Gymnasium Env in which policies play the other teams
`SwapSides`     a Gymnasium Env that plays one match from each side
`Adversary`     an opponent that in a share of its decisions does what is worst for the learner
`SelfPlayPool`  an opponent that is one of many past policies, drawn anew for each match
`CheckZeroSum`  a ParallelEnv that raises where team rewards do not cancel
`Transcript`    a text Env that observes all that was said
`Messages`      likewise as chat messages
`teams_of`      the teams of a ParallelEnv
==============  ===================================================================================================
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palaestra.wrappers.adversary import Adversary
    from palaestra.wrappers.pool import SelfPlayPool
    from palaestra.wrappers.single_team import SingleTeam
    from palaestra.wrappers.swap_sides import SwapSides
    from palaestra.wrappers.teams import TeamAsAgent, teams_of
    from palaestra.wrappers.transcript import Messages, Transcript
    from palaestra.wrappers.zero_sum import CheckZeroSum, ZeroSumError

_HOMES = {
    "Adversary": "adversary",
    "CheckZeroSum": "zero_sum",
    "Messages": "transcript",
    "SelfPlayPool": "pool",
    "SingleTeam": "single_team",
    "SwapSides": "swap_sides",
    "TeamAsAgent": "teams",
    "Transcript": "transcript",
    "ZeroSumError": "zero_sum",
    "teams_of": "teams",
}
__all__ = [
    "Adversary",
    "CheckZeroSum",
    "Messages",
    "SelfPlayPool",
    "SingleTeam",
    "SwapSides",
    "TeamAsAgent",
    "Transcript",
    "ZeroSumError",
    "teams_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"palaestra.wrappers has no {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
