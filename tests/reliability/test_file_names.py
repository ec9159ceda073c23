"""Whatever a file is called, every reader of files refuses it in a line that a terminal can show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaestra.core.files import FileError
from palaestra.core.files.model_folder import checked_copy
from palaestra.core.run.opponents import policy_metadata
from palaestra.games.pursuit import graphs
from palaestra.games.search import Index, corpora
from palaestra.games.skirmish import maps, ruleset
from palaestra.games.ucav.inner_loop import load_inner_loop
from palaestra.players import onnx_models, sb3_archives
from palaestra.replay import file as replay_file
from palaestra.wrappers import pool

NAME = "a\x1b[2J\x9b\u202e\u2066\r\nb\x7f\udc80"
"""It clears the screen, turns the reading direction, begins a line, and is no text."""
CONTENTS = (None, b"", b"\x00\x1b[2J\n", b"[" * 3000, b'{"\\u001b[2J": "\\u202e"}\n', b"\x1b[2J a b c d\n", b"PK\3\4")


def read_model(path: Path) -> None:
    with checked_copy(path.parent):
        pass


READERS: dict[str, Callable[[Path], Any]] = {
    "a.edges": graphs.read,
    "a.npz": replay_file.load,
    "pool.json": pool.SelfPlayPool.load,
    "map.json": maps.load,
    "rules.json": ruleset.load,
    "a.jsonl": corpora.read_passages,
    "b.json": corpora.read,
    "a.safetensors": policy_metadata,
    "b.safetensors": lambda path: load_inner_loop(str(path)),
    "a.zip": sb3_archives.read_file,
    "a.onnx": onnx_models.read_file,
    "parameters.npy": lambda path: Index.load(path.parent),
    "config.json": read_model,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_hostile_name_is_escaped_by_every_reader(reader: str, tmp_path: Path):
    path = tmp_path / NAME / f"{NAME}{reader}"
    if reader in ("parameters.npy", "config.json"):
        path = tmp_path / NAME / reader
    path.parent.mkdir()
    refusals = list[str]()
    for content in CONTENTS:
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        try:
            READERS[reader](path)
        except (FileError, OSError) as error:
            refusals.append(str(error))
    assert len(refusals) >= len(CONTENTS) - 1
    for said in refusals:
        assert said.isprintable()
        assert r"a\x1b[2J\x9b\u202e\u2066\r\nb\x7f\udc80" in said.replace("\\\\", "\\")
