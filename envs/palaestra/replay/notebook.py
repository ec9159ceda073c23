"""Matches in a notebook: the page of a replay, or of the last match that an environment has played."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from palaestra.core.run.simulation import Simulation
from palaestra.replay.file import Replay, ReplayError
from palaestra.replay.page import make_page, make_page_of_last_match, title_of
from palaestra.replay.recording import Recorder


def show(replay: Replay | Sequence[Replay], *, lane: int = 0, height: int = 760) -> Shown:
    """What a notebook (Jupyter) displays as the page of one lane, ``height`` pixels high; see `to_html`."""
    return Shown(make_page(replay, lane), height)


def watch(env: Any, *, lane: int = 0, height: int = 760) -> Shown:
    """The last match of an environment that is being recorded, for a notebook; the whole page is that match.

    Nothing is recorded unless you say so, as that takes time at each step::

        env = gymnasium.make("palaestra/TeamTag-v0")
        recorder = palaestra.replay.Recorder(env.unwrapped.sim)
        ...  # env.reset(), env.step(action) until it is over
        palaestra.replay.watch(env)

    Args:
        env: An environment of any face, or the `Recorder` itself.
        lane: Which of its matches side by side.
        height: Of the page, in pixels.

    Returns:
        The page of the last match in which a decision was made, finished or not; see `Shown`.

    Raises:
        TypeError: It is none of these.
        ReplayError: It was not recorded; says how to.
    """
    recorder = env if isinstance(env, Recorder) else _recorder_of(env)
    return Shown(make_page_of_last_match(recorder.replay(), lane), height)


class Shown:
    """A page within a notebook.

    Attributes:
        title: Of the page.
        html: The page in a frame of its own, whose program reaches nothing outside of it.
    """

    def __init__(self, page: str, height: int) -> None:
        """Puts the page in a frame."""
        frame = f'sandbox="allow-scripts" width="100%" height="{int(height)}" style="border:0"'
        title = title_of(page)
        self.title = html.unescape(title)
        self.html = f'<iframe srcdoc="{html.escape(page)}" {frame} title="{title}"></iframe>'

    def __repr__(self) -> str:
        """One line, for where no notebook shows the page."""
        return f"<{self.title}; a notebook shows its page, palaestra.replay.to_html(replay, path) writes it>"

    def _repr_html_(self) -> str:
        """What Jupyter shows."""
        return self.html


def _recorder_of(env: Any) -> Recorder:
    """What records an environment."""
    bare = getattr(env, "unwrapped", env)
    sim = bare if isinstance(bare, Simulation) else getattr(bare, "sim", None)
    if not isinstance(sim, Simulation):
        given = type(env).__name__
        raise TypeError(f"watch takes an environment of palaestra's or a Recorder, not {given}; show(replay) a Replay")
    if not isinstance(sim.recorder, Recorder):
        name = "sim" if bare is env and isinstance(bare, Simulation) else "env.unwrapped.sim"
        raise ReplayError(
            f"{sim.game.name} was not recorded: write recorder = palaestra.replay.Recorder({name}) before its next "
            "reset, and play; after recorder.stop() it is watch(recorder)"
        )
    return sim.recorder
