"""Text environments in GEM.

Example::

    import gem, palaestra.adapters.gem

    palaestra.adapters.gem.register()
    env = gem.make("palaestra/SearchQA-2Hop-v1")
    envs = gem.make_vec(["palaestra/SearchQA-2Hop-v1"] * 8, seed=1)
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from copy import deepcopy
from typing import Any

from palaestra.adapters.text_session import TextSession
from palaestra.wrappers.transcript import text_ids

try:
    import gem
    from gem.envs.registration import ENV_REGISTRY
except ImportError as error:
    raise ImportError("palaestra.adapters.gem needs GEM, which is not installed: pip install gem-llm") from error


class TextEnv(gem.Env):
    """A text environment; see `text_env` for ``game_id`` and ``keywords``. The first `reset` takes ``seed``."""

    def __init__(self, game_id: str, seed: int | None = None, **keywords: Any) -> None:
        self.session = TextSession(game_id, **keywords)
        self._given, self._seed = {"game_id": game_id, **keywords}, seed

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode. Other than GEM's own environments it leaves Python's and NumPy's global seeds alone."""
        seed, self._seed = self._seed if seed is None else seed, None
        return self.session.reset(seed), self.session.info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Plays one turn; the observation is what is new."""
        text, session = self.session.say(action), self.session
        return text, session.reward, session.terminated, session.truncated, session.info

    def sample_random_action(self) -> str:
        """A random turn."""
        return self.session.env.action_space.sample()

    def spawn(self, same_state: bool = False, **kwargs: Any) -> TextEnv:
        """A copy in the same state, or a new one with other keywords and no seed but a given one."""
        return deepcopy(self) if same_state else TextEnv(**{**self._given, **kwargs})


def register(*ids: str) -> None:
    """Registers ids in GEM under their names: all of `text_ids` if none is given."""
    for id in set(ids or text_ids()) - set(ENV_REGISTRY):
        gem.register(id, "palaestra.adapters.gem:TextEnv", game_id=id)
