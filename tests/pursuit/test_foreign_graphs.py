"""Graphs of anybody: sizes are checked before work, and names reach messages escaped and cut."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palaestra.core.contract import factories
from palaestra.core.files import FileError
from palaestra.games.pursuit import families, graph_pursuit
from palaestra.games.pursuit.graphs import Graph, from_array, read

pytestmark = pytest.mark.jitless

AT_ONCE_S = 2.0
"""CPU time that a refusal may take on a slow machine; the work itself takes minutes."""
ESCAPES = "\x1b[2J\u202e"


def networkx_like(nodes: list[Any], edges: list[tuple[Any, Any]], name: str = "") -> Any:
    return SimpleNamespace(nodes=nodes, edges=edges, name=name, is_directed=lambda: False)


def nested(depth: int) -> list[Any]:
    graph: Any = "petersen"
    for _ in range(depth):
        graph = [graph]
    return graph


def in_itself() -> list[Any]:
    graph: list[Any] = ["petersen"]
    graph.append(graph)
    return graph


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ([[0, 2**62]], ("0", str(2**62))),
        (np.array([[2**63 + 5, 7]], np.uint64), ("7", str(2**63 + 5))),
        ([[240109189, 4567890123], [4567890123, 26603467]], ("26603467", "240109189", "4567890123")),
    ],
)
def test_large_numbers_are_names_of_nodes(edges: Any, labels: tuple[str, ...]):
    graph = from_array(edges)
    assert graph.labels == labels
    named = [[graph.labels[a], graph.labels[b]] for a, b in graph.edges]
    assert sorted(map(sorted, named)) == sorted(sorted(map(str, edge)) for edge in np.asarray(edges).tolist())
    assert graph.node_of(labels[-1]) == len(labels) - 1


def test_numbers_below_4096_stay_the_nodes():
    assert from_array([[0, 4095]]).nodes == 4096


@pytest.mark.check
@pytest.mark.parametrize(
    "source",
    [
        "dungeons:4096x4096",
        "streets:4096x4096",
        ["dungeons:4096x8"] * 3,
        "grid:" + "9" * 5000,
        "grid:" + "9" * 5000 + "x2",
        "tree:2x60",
        "cube:60",
        "regular:4096x" + "4" * 30,
        "x" * 10_000_000,
        ESCAPES * 1000,
        np.arange(400_000).reshape(-1, 2),
        networkx_like(list(range(5000)), []),
        networkx_like([0, 1], [(0, 1)] * 200_000),
        networkx_like([ESCAPES, "b"], [(ESCAPES, "b"), ("b", ESCAPES)]),
        networkx_like(["x" * 10_000_000, "b"], [("x" * 10_000_000, "x" * 10_000_000)], ESCAPES * 9),
        nested(2000),
        in_itself(),
    ],
    ids=range(17),
)
def test_a_graph_that_is_too_large_is_refused_at_once(source: Any):
    began = time.process_time()
    with pytest.raises(ValueError, match=r".+") as refusal:
        factories.make(graph_pursuit.game, {"graph": source})
    assert time.process_time() - began < AT_ONCE_S
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 600


def test_a_graph_of_16_million_nodes_is_refused_before_they_have_labels():
    began = time.process_time()
    with pytest.raises(ValueError, match="a graph has 1 to 4096 nodes, this one has 16000000"):
        Graph("vast", 16_000_000, np.zeros((0, 2), np.int64))
    assert time.process_time() - began < 0.1


def test_an_unknown_node_is_quoted_escaped_and_cut():
    graph = Graph(ESCAPES, 2, np.array([[0, 1]]), ("x" * 10_000_000, ESCAPES))
    for label in (ESCAPES + "?", "y" * 10_000_000):
        with pytest.raises(ValueError, match="has no node") as refusal:
            graph.node_of(label)
        assert str(refusal.value).isprintable()
        assert len(str(refusal.value)) < 400
    assert repr(graph).isprintable()


def test_a_random_regular_graph_that_is_not_found_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(families, "MOST_STUBS", 0)  # the fewest attempts: all of them take seconds
    with pytest.raises(ValueError, match="no random graph of 66 nodes was found whose nodes all have 64 neighbours"):
        read("regular:66x64")


@pytest.mark.slow
def test_hops_of_a_long_path_are_counted_in_seconds():
    began = time.process_time()
    assert read("path:4096")[0].hops[0, -1] == 4095
    assert time.process_time() - began < 10, "it took 17 s"


def test_lists_of_graphs_may_hold_lists():
    assert len(read([["petersen", ["heawood"]], "grid:2x2"])) == 3


# ---------------------------------------------------------------------------------------------------------------- files


def write_lines(path: Path) -> None:
    path.write_text("0 1\n" * 3_000_000)


def write_hub(path: Path) -> None:
    path.write_text("".join(f"{ESCAPES} n{k}\n" for k in range(65)))


def write_long_name(path: Path) -> None:
    path.write_text("x" * 5_000_000 + " " + "x" * 5_000_000)


def write_nodes(path: Path) -> None:
    path.write_text("".join(f"n{k}\n" for k in range(5000)))


def write_one_node(path: Path) -> None:
    path.write_text("alone\n")


def write_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 * 10**9)


@pytest.mark.parametrize(
    "write",
    [
        *(write_lines, write_hub, write_long_name, write_nodes, write_one_node, write_sparse),
        pytest.param(
            os.mkfifo if hasattr(os, "mkfifo") else None, marks=pytest.mark.skipif(os.name == "nt", reason="")
        ),
        Path.mkdir,
    ],
)
def test_a_file_of_anybody_is_refused_at_once_and_named(tmp_path: Path, write: Any):
    path = tmp_path / "evil.edges"
    write(path)
    began = time.process_time()
    with pytest.raises(FileError, match=r"evil\.edges") as refusal:
        graph_pursuit.game(str(path))
    assert time.process_time() - began < AT_ONCE_S
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 400
