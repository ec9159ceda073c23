"""EPyMARL, unmodified: one team against an opponent as Tuples of Gymnasium's spaces.

EPyMARL's ``gymma`` makes any id of Gymnasium whose spaces are Tuples. Importing this module registers such an id for
each of palaestra's, with ``-tuple`` before the version; Gymnasium imports it when it precedes the id::

    python src/main.py --config=qmix --env-config=gymma with env_args.time_limit=500
        env_args.key="palaestra.adapters.epymarl:palaestra/TeamPong-tuple-v0" env_args.opponent=tracker

``time_limit`` should be the horizon of the game: below it matches are cut off before they are judged. ``gymma`` knows
neither masks nor global states; for these add `palaestra.adapters.pymarl.TeamMultiAgentEnv` to EPyMARL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from palaestra import registry
from palaestra.adapters.pymarl import TeamMultiAgentEnv
from palaestra.core.faces.attributes import RuleAttributes
from palaestra.core.faces.screen import check_render_mode, render_modes


class TupleEnv(RuleAttributes, gymnasium.Env):
    """One team: a tuple of float32 vectors is seen, a sequence of integers is done, a list of rewards is paid.

    Nothing is padded: ``gymma`` does that.

    Attributes:
        team: The `TeamMultiAgentEnv` behind it.
        n_agents: Members of the team.
    """

    metadata: dict[str, Any] = registry.make_env.metadata  # type: ignore[attr-defined]  # gymnasium.make asks the class

    def __init__(self, game_id: str, *, render_mode: str | None = None, **keywords: Any) -> None:
        """Makes the match.

        Args:
            game_id: Registered id.
            render_mode: One of the game's, or None.
            **keywords: As for `TeamMultiAgentEnv`.
        """
        self.team = TeamMultiAgentEnv(game_id, api="epymarl", common_reward=False, **keywords)
        self.n_agents = self.team.n_agents
        game = self.team.sim.game
        self.metadata = {"render_modes": render_modes(game), "render_fps": game.render_fps}
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"], game.name)
        self.observation_space = spaces.Tuple([agent_io.observation_space for agent_io in self.team.agent_ios])
        self.action_space = spaces.Tuple([agent_io.action_space for agent_io in self.team.agent_ios])
        self._take_rules(self.team.sim)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[tuple[np.ndarray, ...], dict[str, Any]]:
        """Starts a match; see `gymnasium.Env.reset`."""
        self.team.reset(seed, options)
        super().reset(seed=seed)
        return self._observe(), {}

    def step(self, action: Sequence[Any]) -> tuple[tuple[np.ndarray, ...], Any, bool, bool, dict[str, Any]]:
        """Plays one decision; see `TeamMultiAgentEnv.step`."""
        _, rewards, terminated, truncated, info = self.team.step(action)
        return self._observe(), rewards, terminated, truncated, info

    def _observe(self) -> tuple[np.ndarray, ...]:
        return tuple(agent_io.observe_one() for agent_io in self.team.agent_ios)

    def render(self) -> Any:
        """A picture or text of the match as ``render_mode`` asks; None without one."""
        return self.team.render(self.render_mode)

    def close(self) -> None:
        """Frees the simulation and the window."""
        self.team.close()


def register_tuple(id: str) -> str:
    """Registers the `TupleEnv` of an id in Gymnasium, for ids of other packages too.

    Returns:
        Its id: ``namespace/Name-tuple-v0`` for ``namespace/Name-v0``.

    Raises:
        KeyError: No such id.
    """
    name, _, version = registry.row(id).id.rpartition("-v")
    tuple_id = f"{name}-tuple-v{version}"
    if tuple_id not in gymnasium.registry:
        gymnasium.register(
            tuple_id,
            entry_point="palaestra.adapters.epymarl:TupleEnv",
            disable_env_checker=True,  # it warns of lists of rewards
            kwargs={"game_id": id},
        )
    return tuple_id


for _id in list(registry.ROWS):
    register_tuple(_id)

__all__ = ["TupleEnv", "register_tuple"]
