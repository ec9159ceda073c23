"""Record layouts of a game: what a kernel works on (capacity) and what lies in the arrays (visible sizes)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from palaestra.core.contract.fields import (
    Choice,
    Field,
    ObservationField,
    Parameter,
    action_dtype,
    mask_dtype,
    parameter_dtype,
    record_dtype,
)
from palaestra.core.contract.game_parts import Role


def is_sized(roles: Sequence[Role], fields: Iterable[ObservationField]) -> bool:
    """Whether a role, or a table of it or among the fields, has a capacity of its own.

    Then kernels write work records that are packed into the rows that users see.
    """
    tables = [*fields, *(f for r in roles for f in r.observation)]
    capacities = [f.capacity for f in tables if f.world is None]
    capacities += [r.capacity for r in roles]
    capacities += [c.capacity for r in roles for c in r.action if isinstance(c, Choice)]
    return any(capacity is not None for capacity in capacities)


def state_dtype(owner: str, fields: Sequence[tuple], parameters: Sequence[Parameter], info: np.dtype) -> np.dtype:
    """The match record: the suite's fields, then the author's.

    Raises:
        ValueError: A field of the author has the name of one of the suite's.
    """
    shape = info["illegal"].shape
    record = parameter_dtype(parameters)
    suite = [
        ("rng", "u8"),
        ("script_rng", "u8"),
        ("assigned_player", "i8", shape),
        ("strength", "f8", shape),
        ("team", "i8", shape),
        ("parameters", record),
        *([("next_parameters", record)] if any(p.at_start for p in parameters) else []),
        ("seeded", "u1"),
        ("steps", "i8"),  # from here on a record is cleared when a match starts; what stands before outlives it
        ("current_player", "i8", shape),
        ("info", info),
        ("alive", "u1", shape),
        ("acting", "u1", shape),
        ("pending", "u1"),
    ]
    taken = {name for name, *_ in suite} & {name for name, *_ in fields}
    if taken:
        raise ValueError(f"{owner}: state fields {sorted(taken)} belong to the suite")
    return np.dtype([*suite, *fields], align=True)


def info_dtype(fields: Sequence[Field], slots: int) -> np.dtype:
    """``s.info``: the suite's fields, then the author's."""
    info = [("winner", "i8"), ("end_reason", "i8"), ("illegal", "i8", (slots,))]
    return np.dtype(info + [f.member(visible=False) for f in fields], align=True)


def actions_dtype(roles: Sequence[Role]) -> np.dtype:
    """Action records of all roles, at capacity."""
    return np.dtype([(r.name, action_dtype(r.action), (r.slots,)) for r in roles])


def observations_dtype(
    roles: Sequence[Role],
    team: Sequence[ObservationField],
    teams: int,
    lane: Sequence[ObservationField],
    visible: bool,
) -> np.dtype:
    """Observation records of all roles, of the teams and of the lane."""
    members: list[tuple] = [
        (r.name, record_dtype(r.observation, visible), (len(r.agents) if visible else r.slots,)) for r in roles
    ]
    if team:
        members.append(("team", record_dtype(team, visible), (teams,)))
    if any(f.world is None for f in lane):
        members.append(("lane", record_dtype(lane, visible)))
    return np.dtype(members)


def masks_dtype(roles: Sequence[Role], visible: bool) -> np.dtype:
    """Mask records of the roles that have choices; one unused byte if there is none."""
    members = [
        (r.name, mask_dtype(r.action, visible), (len(r.agents) if visible else r.slots,))
        for r in roles
        if any(isinstance(c, Choice) for c in r.action)
    ]
    return np.dtype(members if members else [("none", "i1")])
