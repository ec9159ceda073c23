"""Matches of SearchQA in words, for its tests."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import make_batch
from palaestra.core.faces.agent_io import AgentIO
from palaestra.games.search.turn_codec import TurnCodec


def batch(lanes: int = 1, id: str = "palaestra/SearchQA-2Hop-v1", **keywords: Any) -> Any:
    """A batch whose lanes stand still when their match is over; its rules run as plain Python unless told otherwise."""
    sim = make_batch(id, lanes, **{"form": "tokens", "autoreset_mode": "off", "compiled": False, **keywords})
    sim.reset(seed=7)
    return sim


def codec_of(sim: Any) -> TurnCodec:
    return sim.game.codecs["text"]


def texts_of(sim: Any) -> Any:
    return codec_of(sim).texts


def play(sim: Any) -> np.ndarray:
    """Plays all matches to their ends; returns of the agent."""
    returns = np.zeros(sim.num_envs)
    while not (over := sim.terminated | sim.truncated).all():
        sim.step(lanes=~over)
        returns += sim.rewards[:, 0] * ~over
    return returns


def say(sim: Any, *turns: str) -> list[float]:
    """Plays turns in words in the only lane; their rewards."""
    pays = []
    for turn in turns:
        sim.step(codec_of(sim).decode(None, turn)[None, None])  # type: ignore[arg-type]
        pays.append(float(sim.rewards[0, 0]))
    return pays


def view_of(sim: Any, lane: int) -> Any:
    return AgentIO(sim, (0,)).agent_view(lane)


def files(folder: Path, passages: list[str], questions: list[dict[str, Any]]) -> dict[str, Any]:
    """The keywords of a world of files; passages have their places as ids."""
    rows = [{"id": number, "text": text} for number, text in enumerate(passages)]
    for name, table in (("passages", rows), ("questions", questions)):
        (folder / name).write_text("\n".join(map(json.dumps, table)))
    return {"world": str(folder / "passages"), "questions": str(folder / "questions")}
