"""Text environments in TextArena, as games of one player.

    textarena.register("SearchQA", "palaestra.adapters.textarena:TextEnv", game_id="palaestra/SearchQA-2Hop-v1")
    env = textarena.make("SearchQA")

What the environment says are messages of the game, and actions are messages of the player, as in TextArena's own games.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

from palaestra.adapters.text_session import TextSession

try:
    import textarena
    from textarena import ObservationType
except ImportError as error:
    raise ImportError(
        "palaestra.adapters.textarena needs TextArena, which is not installed: pip install textarena"
    ) from error


class TextEnv(textarena.Env):
    """One match. The player's reward is the return; the last info is ``game_info[0]["info"]`` too."""

    def __init__(self, game_id: str, **keywords: Any) -> None:
        """Makes the environment; see `palaestra.wrappers.transcript.text_env`."""
        self.session = TextSession(game_id, **keywords)

    def reset(self, num_players: int = 1, seed: int | None = None) -> None:
        """Starts a match. The seed is not given to TextArena, which would seed Python's global `random` with it."""
        text = self.session.reset(seed)
        self.state = textarena.SinglePlayerState(num_players)
        info = self.session.info
        self.state.reset(game_state=info, player_prompt_function=lambda player_id, game_state: text)

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        """Plays one turn."""
        state = self.state
        if state.done:
            return state.step()
        state.add_observation(action, ObservationType.PLAYER_ACTION, from_id=0, to_id=0)
        if text := self.session.say(action):
            state.add_observation(text, ObservationType.GAME_MESSAGE, to_id=0)
        state.game_state = state.step_info = self.session.info
        if self.session.is_over:
            state.set_outcome(self.session.total)
            state.game_info[0]["info"] = state.game_state
        return state.step()
