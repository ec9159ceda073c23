"""A Gymnasium Env that plays matches from both sides in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium

from palaestra import registry
from palaestra.core.contract.rules import teams_are_alike
from palaestra.core.faces.attributes import RuleAttributes, only_where, simulations_of
from palaestra.core.faces.masks import NO_CHOICES
from palaestra.core.rng import check_seed


class SwapSides(RuleAttributes, gymnasium.Env):
    """Plays one match as the first team, the next as the second, and so on: for games whose teams are alike.

    ``reset(seed=s)`` starts on side ``s % 2`` and the next reset plays the same seed from the other side, as
    `palaestra.evaluation` does; after that the random streams of both sides continue. ``options={"side": "blue"}``
    chooses. ``info["side"]`` is the name of the team that is played.
    """

    def __init__(
        self, make: str | Callable[..., gymnasium.Env], sides: Sequence[str] | None = None, **keywords: Any
    ) -> None:
        """Makes the environment once for each side.

        Args:
            make: A registered id, or ``make(control=team, **keywords)``.
            sides: The two teams; those of the id's game if None.
            **keywords: Passed on: ``opponent`` plays the other side.

        Raises:
            ValueError: The teams are not alike, or they cannot be determined.
            TypeError: ``control`` is given: it is what changes.
        """
        if "control" in keywords:
            raise TypeError("control= makes no sense here: the sides take turns")
        if isinstance(make, str):
            sides = sides or _teams_alike(make, keywords)
            build = lambda side: gymnasium.make(make, disable_env_checker=True, control=side, **keywords).unwrapped  # noqa: E731
        elif sides is None:
            raise ValueError('give the names of the sides: SwapSides(make, sides=("red", "blue"))')
        else:
            build = lambda side: make(control=side, **keywords)  # noqa: E731
        self.sides = tuple(sides)
        if len(self.sides) != 2:
            raise ValueError(f"sides are two teams, got {', '.join(self.sides)}")
        self.envs = tuple(build(side) for side in self.sides)
        first, second = self.envs
        if (first.observation_space, first.action_space) != (second.observation_space, second.action_space):
            raise ValueError(f"{self.sides[0]} and {self.sides[1]} do not see and do the same: sides cannot be swapped")
        self.observation_space, self.action_space = first.observation_space, first.action_space
        self.metadata, self.render_mode = first.metadata, first.render_mode
        self._next, self._pending, self._env = 0, None, first
        self._take_rules(*simulations_of(*self.envs))

    @property
    def side(self) -> str:
        """Team that is played now."""
        return self.sides[self.envs.index(self._env)]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts a match on the other side, or on that of the seed or of ``options["side"]``.

        Raises:
            ValueError: A wrong seed or side, or another option, if the environment does not know it either.
        """
        if options is not None and not isinstance(options, Mapping):
            raise ValueError(f"reset: options must be a dict or None, got {options!r}")
        seed = None if seed is None else check_seed(seed)
        own, given = dict(options or {}), seed
        side = own.pop("side", None)
        if side is not None and side not in self.sides:
            raise ValueError(f"there is no side {side!r}: choose from {', '.join(self.sides)}")
        number = self.sides.index(side) if side is not None else self._next if seed is None else seed % 2
        pending = self._pending if seed is None else (1 - number, seed)
        if seed is None and pending is not None and pending[0] == number:
            seed, pending = pending[1], None
        observation, info = self.envs[number].reset(seed=seed, options=own or None)
        super().reset(seed=given)
        self._env, self._next, self._pending = self.envs[number], 1 - number, pending
        return observation, {**info, "side": self.side}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays one decision."""
        observation, reward, terminated, truncated, info = self._env.step(action)
        return observation, float(reward), terminated, truncated, {**info, "side": self.side}

    @only_where(lambda env: hasattr(env._env.unwrapped, "action_masks"), NO_CHOICES)
    def action_masks(self) -> Any:
        """Mask of the side that is played, the name that sb3-contrib's MaskablePPO calls."""
        return self._env.unwrapped.action_masks()  # type: ignore[attr-defined]

    def render(self) -> Any:
        """Picture of the match."""
        return self._env.render()

    def close(self) -> None:
        """Closes both environments."""
        for env in self.envs:
            env.close()


def _teams_alike(id: str, keywords: dict[str, Any]) -> list[str]:
    """The two teams of a game, which must have the same roles."""
    rules = {k: v for k, v in keywords.items() if k not in (*registry.FACE_KEYWORDS, *registry.SIMULATION_KEYWORDS)}
    game, _ = registry.make_game(id, **rules)
    if not teams_are_alike(game):
        raise ValueError(f"the teams of {id} ({', '.join(game.teams)}) are not two alike: sides cannot be swapped")
    return list(game.teams)
