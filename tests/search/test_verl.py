"""`palaestra.games.search.verl` without verl: its score, its configuration, its tool with a stand-in for replies."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from palaestra.adapters.retrieval_server import Server
from palaestra.games.search import Index, verl

SCHEMA = SimpleNamespace(function=SimpleNamespace(name="search"))
TRUTH = {"target": ["Popon Cross", "the Cross"]}


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``tool(url)``: the tool as its configuration makes it."""
    for name in ("verl", "verl.tools", "verl.tools.schemas"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    vars(sys.modules["verl.tools.schemas"])["ToolResponse"] = SimpleNamespace
    return lambda url: verl.SearchTool({"type": "native", "retrieval_service_url": url, "topk": 2}, SCHEMA)


def called(tool: Any, parameters: dict[str, Any], **create_kwargs: Any) -> str:
    """What a model reads after a call, by the steps of verl's loop."""

    async def call() -> str:
        instance, _ = await tool.create(create_kwargs=create_kwargs)
        try:
            response, reward, measures = await tool.execute(instance, parameters, agent_data=None)
        finally:
            await tool.release(instance)
        assert (reward, measures) == (0.0, {})
        return response.text

    return asyncio.run(call())


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("Hm. <answer>popon cross!</answer>", 1.0),
        ("<answer>Cross</answer>", 1.0),
        ("<answer>Popon</answer>", 0.0),
        ("<answer>Popon Cross</answer> <answer>no</answer>", 0.0),
        ("Popon Cross", 0.0),
    ],
)
def test_the_score_is_the_exact_match_of_the_last_answer(text: str, points: float):
    assert verl.compute_score("any", text, TRUTH, extra_info={"index": 0}, more=1) == points


def test_the_configuration_names_the_tool_and_the_server():
    yaml: Any = pytest.importorskip("yaml")
    [entry] = yaml.safe_load(verl.tool_config("http://127.0.0.1:8000/retrieve", topk=5))["tools"]
    assert entry["class_name"] == "palaestra.games.search.verl.SearchTool"
    url = "http://127.0.0.1:8000/retrieve"
    assert entry["config"] == {"type": "native", "retrieval_service_url": url, "topk": 5}
    arguments = entry["tool_schema"]["function"]["parameters"]
    assert list(arguments["properties"]) == arguments["required"] == ["query_list"]


def test_the_tool_shows_what_a_server_finds(tool: Any):
    index = Index(["A cat sat.", "A dog barked.", "A cat ran."], titles=["One", "Two", "Three"])
    with Server(index, port=0) as server:
        made = tool(f"{server.address}/retrieve")
        assert made.name == "search"
        text = called(made, {"query_list": ["dog", "cat", "emu"]})
    dogs, cats, none = text.split("\n\n")
    assert dogs == 'Doc 1(Title: "Two") A dog barked.'
    assert sorted(line[5:] for line in cats.splitlines()) == [
        '(Title: "One") A cat sat.',
        '(Title: "Three") A cat ran.',
    ]
    assert none == "Nothing was found."


@pytest.mark.parametrize("told", [{"seed": 7}, {}])
def test_the_seed_of_a_row_is_sent_with_its_queries(told: dict[str, int], tool: Any, monkeypatch: pytest.MonkeyPatch):
    sent = []
    monkeypatch.setattr(verl, "ask", lambda url, body: sent.append((url, body)) or [[]])
    called(tool("http://here"), {"query_list": ["a"]}, **told)
    assert sent == [("http://here", {"queries": ["a"], "topk": 2, **told})]


@pytest.mark.parametrize("parameters", [{}, {"query_list": []}, {"query_list": "cat"}, {"query_list": [1]}])
def test_a_call_without_queries_is_answered_in_words(parameters: dict[str, Any], tool: Any):
    assert called(tool("http://127.0.0.1:9"), parameters) == 'Give "query_list", a list of queries.'


def test_a_server_that_does_not_answer_is_an_error(tool: Any):
    with pytest.raises(OSError, match="refused"):
        called(tool("http://127.0.0.1:9"), {"query_list": ["cat"]})


def test_without_verl_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "verl", None)
    with pytest.raises(ImportError, match=r"which is not installed: pip install verl$"):
        verl.SearchTool({"retrieval_service_url": "http://here"}, SCHEMA)
