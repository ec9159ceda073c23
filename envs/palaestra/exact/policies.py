"""Any policy as probabilities of joint actions in every position of a table.

What a policy may be: an array of probabilities; a callable on batched observations; an
`palaestra.core.run.opponents.Opponent` without memory, or with a method ``probabilities(observations, legal, acting)``
if it draws its actions; the file of a saved policy; ``"random"``; a model of Stable-Baselines3; a torch module that
gives logits or action values. Policies on observations get those that the
simulation writes, in batches of `BATCH` positions, with masks and active agents as in a match.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from palaestra.core.contract.actions import ActionTable
from palaestra.core.run.opponents import ForTeam, Opponent, OpponentSpec, resolve, split_strength
from palaestra.exact.positions import Board, PositionTable
from palaestra.game import Importing

BATCH = 8192
"""Positions that a policy is shown at once."""
SUM_TOLERANCE = 1e-4
"""How far probabilities may be from adding up to 1 (float32 softmaxes are); they are divided by their sum."""

Choose = Literal["greedy", "softmax"]


class Team:
    """The agents of a team and the positions as they see them.

    Attributes:
        agents: Names.
        sizes: Number of alternatives of each agent (the product of its choices).
    """

    def __init__(self, table: PositionTable, team: str) -> None:
        """Reads the agents' choices.

        Raises:
            ValueError: No such team.
        """
        game = table.game
        self.table, self.name, self.side = table, team, table.side(team)
        self.slots = game.teams[team]
        self.agents = [game.agents[slot] for slot in self.slots]
        words = ActionTable(game).words
        self._words = [[w for w in range(len(words)) if words[w]["agent"] == slot] for slot in self.slots]
        self.bases = [[int(words[w]["n"]) for w in own] for own in self._words]
        self.sizes = [prod(base) for base in self.bases]
        self._noops = [self._number(a, np.array([words[w]["noop"] for w in own])) for a, own in enumerate(self._words)]
        self.alternatives = self._alternatives()

    def _number(self, agent: int, choices: np.ndarray) -> Any:
        """Number of an agent's alternative from its choices ``[..., K]``."""
        return np.ravel_multi_index(np.moveaxis(choices, -1, 0), self.bases[agent])

    def _alternatives(self) -> np.ndarray:
        """Alternative of each agent in each joint action, int64 ``[J, A_team]``."""
        return np.stack(np.unravel_index(np.arange(prod(self.sizes)), self.sizes), axis=1)

    def look(self) -> Any:
        """The positions in batches: their rows in the table, and a board on which they are set up."""
        board = Board(self.table.game, self.table.parameters)
        for start in range(0, len(self.table), BATCH):
            rows = np.arange(start, min(start + BATCH, len(self.table)))
            board.write_state(self.table.numbers[rows])
            yield rows, board.sim

    def allowed(self) -> list[np.ndarray]:
        """Which alternatives each agent has, bool ``[P, m]``: the no-op alone where it does not act."""
        start, actions = self.table.action_start[self.side], self.table.actions[self.side]
        rows = np.repeat(np.arange(len(self.table)), np.diff(start))
        found = []
        for a, size in enumerate(self.sizes):
            has = np.zeros((len(self.table), size), np.bool_)
            has[rows, self.alternatives[actions, a]] = True
            found.append(has)
        return found

    def one_hot(self, given: Any) -> list[np.ndarray]:
        """Probabilities ``[n, m]`` of each agent from integer actions ``[n, A_team(, K)]``, a dict of them by role.

        Raises:
            ValueError: An action outside its range, or an array of another shape; names the agent.
        """
        out = []
        for a, chosen in enumerate(self._of_agents(given)):
            choices = np.asarray(chosen).reshape(len(chosen), -1)
            if choices.shape[1] != len(self.bases[a]):
                expected = (
                    f"[n, {len(self.agents)}]" if len(self.bases[a]) == 1 else f"[n, agents, {len(self.bases[a])}]"
                )
                raise ValueError(f"actions of {self.agents[a]} must be {expected}, got {np.shape(given)}")
            outside = (choices < 0) | (choices >= np.array(self.bases[a]))
            if outside.any():
                k = int(np.flatnonzero(outside.any(1))[0])
                raise _Outside(k, f"{self.agents[a]}: action {choices[k].tolist()} is not in [0, {self.bases[a]})")
            hot = np.zeros((len(choices), self.sizes[a]))
            hot[np.arange(len(choices)), self._number(a, choices)] = 1.0
            out.append(hot)
        return out

    def _of_agents(self, given: Any) -> list[np.ndarray]:
        """Rows of each agent of an array ``[n, A_team, ...]``, or of a dict of such arrays by role."""
        if not isinstance(given, dict):
            array = np.asarray(given)
            if array.ndim < 2 or array.shape[1] != len(self.agents):
                raise ValueError(
                    f"a policy of {self.name} must give an array [positions, {len(self.agents)}, ...], "
                    f"got shape {array.shape}"
                )
            return [array[:, a] for a in range(len(self.agents))]
        seen: dict[str, int] = {}
        rows = []
        for slot in self.slots:
            role, _ = self.table.game.role_of(slot)
            if role.name not in given:
                raise ValueError(f"a policy of {self.name} must give the role {role.name!r}, got {sorted(given)}")
            rows.append(np.asarray(given[role.name])[:, seen.get(role.name, 0)])
            seen[role.name] = seen.get(role.name, 0) + 1
        return rows

    def idle_to_noop(self, agents: list[np.ndarray], allowed: list[np.ndarray], active: np.ndarray) -> None:
        """An agent that is not to act does nothing."""
        for a, probabilities in enumerate(agents):
            idle = ~active[:, a]
            probabilities[idle] = 0.0
            probabilities[idle, self._noops[a]] = 1.0


class _Outside(ValueError):
    """An action outside its range, in a row of a batch."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row


def joint_policy(table: PositionTable, policy: Any, team: str, choose: Choose | None = None) -> np.ndarray:
    """Probabilities of a team's joint actions, float64 along `PositionTable.actions`.

    Args:
        table: All positions (``symmetry=False``).
        policy: See the module. Arrays are joint probabilities ``[P, J]`` or those of each agent ``[P, A_team, m]``.
        team: Team that follows it.
        choose: How a torch module's output becomes a policy: ``"greedy"`` or ``"softmax"``; for a model of
            Stable-Baselines3 ``"greedy"`` takes the likeliest action, None and ``"softmax"`` its distribution.

    Raises:
        ValueError: A symmetric table, or a policy that is none; names position, agent and what is wrong.
        TypeError: An object of another kind.
    """
    if table.symmetric:
        raise ValueError(
            "this table holds one position of those that are alike, and a policy need not play alike in them: "
            "give symmetry=False to exact.solve or exact.enumerate_positions, whichever made the table"
        )
    if choose not in (None, "greedy", "softmax"):
        raise ValueError(f'choose must be "greedy" or "softmax", got {choose!r}')
    side = Team(table, team)
    if isinstance(policy, str) and policy == "random":
        counts = np.diff(table.action_start[side.side])
        return np.repeat(1.0 / counts, counts)
    if isinstance(policy, np.ndarray | list):
        return _from_array(side, np.asarray(policy))
    ask = _asker(side, policy, choose)
    allowed = side.allowed()
    agents = [np.empty((len(table), size)) for size in side.sizes]
    joint = np.empty((len(table), len(side.alternatives)))
    active = np.empty((len(table), len(side.agents)), np.bool_)
    is_joint = False
    for rows, sim in side.look():
        try:
            given = ask(sim)
        except _Outside as error:
            raise ValueError(f"{table.describe(int(rows[error.row]))}, {error}") from error
        is_joint = isinstance(given, np.ndarray)
        if is_joint:
            if given.shape != (len(rows), joint.shape[1]):
                raise ValueError(f"a policy of {team} must give {_expected(side)}, got shape {given.shape}")
            joint[rows] = given
            continue
        for a, part in enumerate(given):
            if part.shape != (len(rows), side.sizes[a]):
                raise ValueError(
                    f"{side.agents[a]}: probabilities must be [n, {side.sizes[a]}], got {part.shape} "
                    f"for {len(rows)} positions"
                )
            agents[a][rows] = part
        active[rows] = (sim.alive & sim.acting)[:, list(side.slots)]
    if is_joint:
        return _from_joint(side, joint)
    side.idle_to_noop(agents, allowed, active)
    return _from_agents(side, agents, allowed)


def _expected(side: Team) -> str:
    count, joints = len(side.agents), len(side.alternatives)
    probabilities = f"probabilities [n, {count}, {max(side.sizes)}]"
    return f"integer actions [n, {count}], {probabilities} or those of joint actions [n, {joints}]"


def _from_agents(side: Team, agents: list[np.ndarray], allowed: list[np.ndarray]) -> np.ndarray:
    """Joint probabilities of agents that choose independently.

    Raises:
        ValueError: Not a distribution over what is legal; names position and agent.
    """
    table = side.table
    start, actions = table.action_start[side.side], table.actions[side.side]
    rows = np.repeat(np.arange(len(table)), np.diff(start))
    flat = np.ones(len(actions))
    for a, probabilities in enumerate(agents):
        checked = _distribution(probabilities, allowed[a], table, side.agents[a])
        flat *= checked[rows, side.alternatives[actions, a]]
    return flat


def _distribution(given: np.ndarray, allowed: np.ndarray, table: PositionTable, owner: str) -> np.ndarray:
    """Rows that add up to 1.

    Raises:
        ValueError: They are no distributions over what is allowed.
    """

    def refuse(bad: np.ndarray, text: Callable[[int, Any], str]) -> None:
        if bad.any():
            p = int(np.flatnonzero(bad.any(1))[0])
            raise ValueError(f"{table.describe(p)}, {owner}: {text(p, np.flatnonzero(bad[p]).tolist())}")

    refuse(~np.isfinite(given), lambda p, k: f"probability of action {k[0]} is {given[p, k[0]]}")
    refuse(given < 0, lambda p, k: f"probability of action {k[0]} is negative: {given[p, k[0]]:g}")
    refuse((given > 0) & ~allowed, lambda p, k: f"action {k[0]} is illegal here, its probability {given[p, k[0]]:g}")
    total = given.sum(1, keepdims=True)
    refuse(np.abs(total - 1) > SUM_TOLERANCE, lambda p, k: f"probabilities add up to {total[p, 0]:g}, not 1")
    return given / total


def _from_array(side: Team, array: np.ndarray) -> np.ndarray:
    """Probabilities given as an array: joint ``[P, J]`` or of agents ``[P, A_team, m]``.

    Raises:
        ValueError: Another shape, or no distributions.
    """
    table = side.table
    positions, joints = len(table), len(table.joint_actions[side.side])
    if array.dtype.kind not in "fiu":
        raise ValueError(f"probabilities must be numbers, got {array.dtype}")
    array = array.astype(np.float64)
    if array.shape == (positions, len(side.agents), max(side.sizes)) and array.ndim == 3:
        agents = [array[:, a, :size] for a, size in enumerate(side.sizes)]
        return _from_agents(side, agents, side.allowed())
    if array.shape != (positions, joints):
        raise ValueError(
            f"probabilities of {side.name} must be [positions, joint actions] = {(positions, joints)} or [positions, "
            f"agents, actions] = {(positions, len(side.agents), max(side.sizes))}, got {array.shape}"
        )
    return _from_joint(side, array)


def _from_joint(side: Team, array: np.ndarray) -> np.ndarray:
    """Joint probabilities of agents that may choose together, ``[P, J]``; a team with one joint action takes it.

    Raises:
        ValueError: Not a distribution over what is legal; names the position.
    """
    table = side.table
    start, actions = table.action_start[side.side], table.actions[side.side]
    rows = np.repeat(np.arange(len(table)), np.diff(start))
    allowed = np.zeros(array.shape, np.bool_)
    allowed[rows, actions] = True
    forced = np.diff(start) == 1
    array = np.where(forced[:, None], allowed, array)
    return _distribution(array, allowed, table, f"{side.name} ({', '.join(side.agents)})")[rows, actions]


# -- policies on observations
# -------------------------------------------------------------------------------------------


def _asker(side: Team, policy: Any, choose: Choose | None) -> Callable[[Any], Any]:
    """``ask(sim)``: probabilities of each agent, a list of ``[n, m]``, in the positions on a simulation.

    Raises:
        ValueError: A script, a policy with memory, or a module without ``choose``.
        TypeError: An object of another kind.
    """
    game, team = side.table.game, side.name
    if isinstance(policy, str | Path):
        name, _ = split_strength(game, str(policy))
        if name in (*game.scripts, *game.mixtures):
            raise ValueError(
                f"the script {policy!r} draws at random inside the rules, so its probabilities are not known: give a "
                "policy that is a function of observations, or an array of probabilities"
            )
        policy = resolve(game, team, policy)
    elif isinstance(policy, ForTeam):
        policy = policy.for_team(game, team)
    model = getattr(policy, "policy", None)
    if hasattr(model, "get_distribution"):
        return lambda sim: _ask_sb3(side, model, choose, sim)
    if any(kind.__module__.startswith("torch.nn.") for kind in type(policy).__mro__):
        if choose is None:
            raise ValueError(
                'a torch module\'s output may be logits or action values: give choose="softmax" or choose="greedy"'
            )
        return lambda sim: _ask_module(side, policy, choose, sim)
    if hasattr(policy, "probabilities"):
        return lambda sim: _agents_of(side, policy.probabilities(*_position(side, sim)))
    if isinstance(policy, Opponent):
        if policy.memory_size:
            raise ValueError(
                f"the policy of {team} remembers {policy.memory_size} numbers: what it does is no function of the "
                "position"
            )
        return lambda sim: _ask_opponent(side, policy, sim)
    if callable(policy):
        return lambda sim: _agents_of(side, policy(sim.team_view(team, "observations")))
    raise TypeError(f"a policy is an array, a callable, an Opponent, a model or a file, got {type(policy).__name__}")


def _position(side: Team, sim: Any) -> tuple[Any, Any, np.ndarray]:
    """Observations, masks and active agents, as an opponent gets them."""
    acting = (sim.alive & sim.acting)[:, list(side.slots)]
    return sim.team_view(side.name, "observations"), sim.team_view(side.name, "legal"), acting


def _rows(side: Team, sim: Any) -> np.ndarray:
    """What the agents see, ``[n, A_team, size]``.

    Raises:
        ValueError: They see more than such rows.
    """
    seen = sim.team_view(side.name, "observations")
    if isinstance(seen, dict) or seen.dtype.names is not None:
        what = f"{', '.join(seen)} apart" if isinstance(seen, dict) else "numbers of several kinds"
        raise ValueError(
            f"{side.name} sees {what}, a network is asked with one row of numbers an agent: give a callable on what "
            "sim.team_view shows"
        )
    return np.ascontiguousarray(seen)


def _legal_choices(side: Team, sim: Any) -> np.ndarray | None:
    """Alternatives of agents that have one choice of equally many each, bool ``[n, A_team, m]``, or None."""
    if sim.legal is None or any(len(own) != 1 for own in side.bases) or len(set(side.sizes)) > 1:
        return None
    table, masks = sim.action_table, sim.buffers.mask_bytes
    return np.stack([table.allowed(masks, int(table.first_word[slot])) for slot in side.slots], axis=1)


def _agents_of(side: Team, given: Any) -> Any:
    """Probabilities of each agent from what a policy has given: integer actions or probabilities."""
    if not isinstance(given, dict):
        given = np.asarray(given)
    kinds = {np.asarray(part).dtype.kind for part in (given.values() if isinstance(given, dict) else [given])}
    if kinds <= {"i", "u"}:
        return side.one_hot(given)
    if not isinstance(given, dict) and given.ndim != 3:
        return given
    return [
        np.asarray(part, np.float64)[:, : side.sizes[a]].copy() if np.ndim(part) == 2 else np.asarray(part)
        for a, part in enumerate(side._of_agents(given))
    ]


def _ask_opponent(side: Team, policy: Opponent, sim: Any) -> Any:
    """An opponent's actions; two calls must give the same ones.

    Raises:
        ValueError: They differ.
    """
    observations, legal, acting = _position(side, sim)
    n = sim.num_envs
    answers = []
    for seed in (0, 1):
        seeds = np.arange(n, dtype=np.uint64) + np.uint64(seed << 32)
        first, memory = np.zeros(n, np.bool_), np.zeros((n, 0))
        answers.append(side.one_hot(policy.act(observations, legal, acting, first, seeds, memory)))
    for a, (one, other) in enumerate(zip(*answers, strict=True)):
        if (one != other)[acting[:, a]].any():
            raise ValueError(
                f"the policy of {side.name} draws its actions: give it a method probabilities(observations, legal, "
                f"acting) -> [n, {len(side.agents)}, {max(side.sizes)}], or the probabilities themselves"
            )
    return answers[0]


def _ask_module(side: Team, module: Any, choose: Choose, sim: Any) -> list[np.ndarray]:
    """Logits or action values of a torch module on observations ``[n, A_team, size]``; illegal ones left out."""
    with Importing("torch"):
        import torch

    legal = _legal_choices(side, sim)
    with torch.no_grad():
        out = module(torch.from_numpy(_rows(side, sim)))
    scores = np.asarray(out.detach().cpu(), np.float64)
    if scores.shape != (sim.num_envs, len(side.agents), max(side.sizes)):
        raise ValueError(
            f"the module of {side.name} must give [n, {len(side.agents)}, {max(side.sizes)}], got {scores.shape}"
        )
    if legal is not None:
        scores = np.where(legal, scores, -np.inf)
    scores = scores - scores.max(2, keepdims=True)
    if choose == "greedy":
        return side.one_hot(scores.argmax(2))
    weights = np.exp(scores)
    return _agents_of(side, weights / weights.sum(2, keepdims=True))


def _ask_sb3(side: Team, model: Any, choose: Choose | None, sim: Any) -> list[np.ndarray]:
    """Distribution of a Stable-Baselines3 policy, on the whole team's observation or on each agent's."""
    with Importing("torch"):
        import torch

    observations = _rows(side, sim)
    n, count, size = observations.shape
    width = model.observation_space.shape
    if width == (count * size,):
        rows = observations.reshape(n, -1)
    elif width == (size,):
        rows = observations.reshape(n * count, size)
    else:
        raise ValueError(
            f"the model sees {width}; {side.name} sees {(count * size,)} together and {(size,)} each, so it was "
            "trained for another game or observation"
        )
    with torch.no_grad():
        found = model.get_distribution(torch.as_tensor(rows, device=model.device)).distribution
    parts = [np.asarray(d.probs.cpu(), np.float64) for d in (found if isinstance(found, list) else [found])]
    if choose == "greedy":
        parts = [np.eye(part.shape[1])[part.argmax(1)] for part in parts]
    if width == (count * size,) and count > 1:
        return _join_choices(side, parts)
    whole = parts[0]
    for part in parts[1:]:
        whole = (whole[:, :, None] * part[:, None, :]).reshape(len(whole), -1)
    return [whole.reshape(n, count, -1)[:, a] for a in range(count)]


def _join_choices(side: Team, parts: list[np.ndarray]) -> list[np.ndarray]:
    """Probabilities of each agent's alternatives from those of the single choices, agent after agent."""
    agents, taken = [], 0
    for base in side.bases:
        whole = np.ones((len(parts[0]), 1))
        for part in parts[taken : taken + len(base)]:
            whole = (whole[:, :, None] * part[:, None, :]).reshape(len(whole), -1)
        taken += len(base)
        agents.append(whole)
    return agents


Policy = OpponentSpec | np.ndarray | Any
