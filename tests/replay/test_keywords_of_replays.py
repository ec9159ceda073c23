"""Keywords of ours travel: what names no file is taken from a replay of anybody, on every registered id."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from reliability.forge import forge

import palaestra
from palaestra import registry
from palaestra.replay import Recorder, Replay, ReplayError, load, record, verify
from palaestra.replay.playback import check_fits

pytestmark = pytest.mark.check

IDS = [id for id in registry.ROWS if id.startswith("palaestra/")]
WORDS: list[tuple[str, dict[str, Any]]] = [
    ("Skirmish-3m-v0", {"ruleset": "smac-4.10", "reward": "sparse"}),
    ("Skirmish-3m-v0", {"map": "27m_vs_30m", "smac_rules": True, "observation": "smac"}),
    ("SkirmishUnshaped-Maps-v0", {"maps": ["8m", "2s3z"]}),
    ("GraphPursuit-v0", {"graph": "dungeons:2x20:7", "observation": "nodes:dict"}),
    ("GraphPursuit-v0", {"graph": [[0, 1], [1, 2], [2, 0]], "exits": [0], "pursuers": 1}),
    ("GraphPursuit-v0", {"graph": ["grid:3x3", [[0, 1], [1, 2]]], "order": "alternating"}),
    ("TeamMatrix-v0", {"game": "climb", "rounds": 1}),
    ("TeamMatrix-v0", {"payoff": [[[[1.0, 0.0]] * 2] * 2] * 2, "rounds": 3}),
    ("TeamTag-v0", {"actions": "continuous", "rules": "mpe", "max_cycles": 30}),
    ("UcavDogfight-v2", {"commands": "macro", "airframe": "f16-jsbsim", "planet": "wgs84"}),
    ("UcavDogfight-v2", {"commands": "macro", "inner_loop": "pid"}),
    ("SearchQA-2Hop-v1", {"form": "text", "prompt": "Use <search> a/b.c </search>: {question}", "hops": [1, 3]}),
    ("SearchQA-2Hop-v1", {"world": "example", "retriever": "bm25"}),
    ("MathText-Arith-v1", {"form": "text", "prompt": "module:function {question}", "turns": "steps"}),
    ("LLMEnsemble-v0", {"skill": [[0.5, 0.25], [0.25, 0.5]], "mixture": [1, 3]}),
]
"""Keywords as in the guides and pages."""


def recorded(id: str, **keywords: Any) -> Replay:
    """The start of a match."""
    with closing(palaestra.make_batch(id, 1, compiled=False, **keywords)) as sim, Recorder(sim) as recorder:
        sim.reset(seed=0)
        return recorder.replay()


@pytest.mark.parametrize("id", IDS)
def test_the_keywords_of_an_id_are_taken_from_anybody(id: str):
    row = registry.row(id)
    keywords = {name: value for name, value in row.kwargs.items() if name not in registry.FACE_KEYWORDS}
    assert registry.refused_keyword(id, json.loads(json.dumps(keywords))) is None


@pytest.mark.parametrize(("id", "keywords"), WORDS)
def test_words_numbers_and_prose_are_taken_from_anybody(id: str, keywords: dict[str, Any]):
    assert registry.refused_keyword(f"palaestra/{id}", keywords) is None


@pytest.mark.parametrize(("id", "keywords"), [WORDS[k] for k in (3, 5, 7, 8, 13)])
def test_a_recording_with_such_keywords_is_loaded(tmp_path: Path, id: str, keywords: dict[str, Any]):
    recorded(f"palaestra/{id}", **keywords).save(tmp_path / "match.npz")
    check_fits(load(tmp_path / "match.npz"))


@pytest.mark.slow  # compiles each kernel
@pytest.mark.parametrize("id", IDS)
def test_a_recording_of_every_id_is_loaded_and_verified(tmp_path: Path, id: str):
    row = registry.row(id)
    keywords = {name: value for name, value in row.kwargs.items() if name not in registry.FACE_KEYWORDS}
    recorded(id, **keywords).save(tmp_path / "match.npz")
    assert verify(load(tmp_path / "match.npz")).ok


def test_an_id_that_is_registered_after_the_file_was_read_is_asked_before_it_is_made(tmp_path: Path):
    from palaestra.game import Game, Option, with_options

    @with_options(Option("level", "meadow", "which one", texts=("meadow",)))
    def late(options: Any) -> Game:
        raise AssertionError("the factory was called")

    record("palaestra/TeamPong-v0", max_cycles=1).save(tmp_path / "honest.npz")
    forge(tmp_path / "honest.npz", tmp_path / "forged.npz", {"id": "test/Late-v0", "keywords": {"level": "passwords"}})
    replay = load(tmp_path / "forged.npz")
    palaestra.register("test/Late-v0", late, family="test")
    try:
        with pytest.raises(
            ReplayError, match=r"forged\.npz: its keyword level names 'passwords'.*meadow.*--trust-paths"
        ):
            verify(replay)
    finally:
        registry.ROWS.pop("test/Late-v0")
