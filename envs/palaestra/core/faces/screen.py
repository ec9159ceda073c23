"""Pictures for the faces: arrays or text without a display, a window on request."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.core.contract.rules import Game
from palaestra.core.interrupts import Importing
from palaestra.core.run.simulation import Simulation


def render_modes(game: Game, window: bool = True) -> list[str]:
    """What ``render_mode`` may be, for ``metadata``."""
    pictures = ["rgb_array", *(["human"] if window else [])] if game.render else []
    return [*pictures, *(["ansi"] if game.render_text else [])]


LIST = "_list"
"""End of a render mode that collects: ``rgb_array_list`` gives the pictures since the last call of ``render``."""


def check_render_mode(mode: str | None, known: list[str], name: str) -> str | None:
    """The mode itself.

    Raises:
        ValueError: Not one of the game's modes.
    """
    if mode is not None and mode not in known:
        raise ValueError(f"render_mode: {name} renders {' or '.join(map(repr, known)) or 'nothing'}, not {mode!r}")
    return mode


class Screen:
    """Shows a lane of a simulation; owns the window if there is one."""

    def __init__(self, game: Game) -> None:
        """Opens nothing yet."""
        self._fps = game.render_fps
        self._title = f"palaestra {game.name}"
        self._window: Any = None

    def show(self, sim: Simulation, mode: str | None, lane: int = 0) -> np.ndarray | str | None:
        """The picture for ``"rgb_array"``, the text for ``"ansi"``; for ``"human"`` it goes to the window.

        Returns:
            None for ``"human"`` and without a mode.
        """
        if mode is None:
            return None
        if mode == "ansi":
            return sim.render_text(lane)
        picture = sim.render(lane)
        if mode == "rgb_array":
            return picture
        with Importing("pygame", 'render_mode="human" needs pygame: pip install "palaestra[render]"'):
            import pygame
        size = (picture.shape[1], picture.shape[0])
        if self._window is None:
            pygame.display.init()
            self._window = pygame.display.set_mode(size)
            pygame.display.set_caption(self._title)
            self._clock = pygame.time.Clock()
        self._window.blit(pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        if pygame.display.get_driver() != "dummy":  # which shows nothing: the next picture need not wait
            self._clock.tick(self._fps)
        return None

    def close(self) -> None:
        """Closes the window; may be called twice."""
        if self._window is not None:
            with Importing("pygame"):
                import pygame

            pygame.display.quit()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy opens a window of its own."""
        return {"_fps": self._fps, "_title": self._title, "_window": None}
