"""`palaestra serve`: what a word of the command line names, what is printed, and how it ends."""

import http.client
import json
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import palaestra
from palaestra.adapters.retrieval_server import Server
from palaestra.cli import serve as serve_command
from palaestra.games.search import Index
from palaestra.wrappers.transcript import text_env

pytestmark = pytest.mark.check

SPOKEN = "serve/Spoken-v0"
palaestra.register(SPOKEN, "testing.broken_games:spoken", family="test")
PASSAGES = [{"id": "7", "contents": '"Cats"\nA cat sat.'}, {"id": "8", "contents": '"Dogs"\nA dog barks.'}]

Serve = Callable[..., tuple[SimpleNamespace, list[Any]]]


@pytest.fixture
def serve(run, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """``serve(words, (path, body), ...)``: the command, interrupted after these requests; what it printed, answers."""
    requests: list[tuple[str, Any]] = []
    answers: list[Any] = []

    class Observed(Server):
        def serve(self) -> None:
            client = threading.Thread(target=ask, args=(self,))
            client.start()
            super().serve()
            client.join()
            raise KeyboardInterrupt  # as Ctrl-C does, also where a process ignores it

    def ask(server: Server) -> None:
        connection = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=10)
        try:
            connection.request("GET", "/health")
            connection.getresponse().read()
            for path, body in requests:
                connection.request("POST", path, json.dumps(body))
                answers.append(json.loads(connection.getresponse().read()))
        finally:
            connection.close()
            server.close()

    def serve(words: list[Any], *asked: tuple[str, Any]) -> tuple[SimpleNamespace, list[Any]]:
        requests.extend(asked)
        return run("serve", *words, "--port", "0"), answers

    monkeypatch.setattr(serve_command, "Server", Observed)
    return serve


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(map(json.dumps, PASSAGES)), encoding="utf-8")
    return path


def test_worlds_of_their_own_are_served_by_seed_until_it_is_interrupted(serve: Serve):
    asked = {"query": "the mayor of a place", "seed": 3}
    printed, (found, refused) = serve(["SearchQA-2Hop"], ("/retrieve", asked), ("/retrieve", {"query": "mayor"}))
    assert all(hit["id"].startswith("3:") for hit in found["result"])
    assert 'give its "seed"' in refused["error"]
    assert (printed.code, printed.err) == (0, "")
    (line,) = printed.out.splitlines()
    id, body = "palaestra/SearchQA-2Hop-v1", r"""'\{"queries": \["a question"\], "seed": 0\}'"""
    assert re.fullmatch(rf"{id} at (http://127\.0\.0\.1:\d+): curl \1/retrieve -d {body}", line)


def test_a_file_of_passages_is_served(serve: Serve, corpus: Path):
    printed, (answer,) = serve([corpus], ("/retrieve", {"query": "a cat", "topk": 1}))
    assert [document["contents"] for document in answer["result"]] == ['"Cats"\nA cat sat.']
    assert printed.code == 0
    assert printed.out.startswith(f"{corpus} at http://127.0.0.1:")
    assert "/retrieve -d '{" in printed.out


def test_a_saved_index_is_served(serve: Serve, tmp_path: Path):
    Index(["a cat", "a dog"]).save(tmp_path / "index")
    _, (answer,) = serve([tmp_path / "index"], ("/retrieve", {"queries": ["dog"]}))
    assert answer == {"result": [[{"id": "1", "contents": "a dog"}]]}


def test_what_cannot_be_served_is_refused(run, serve: Serve, refused, corpus: Path, tmp_path: Path):
    error = refused(run("serve", "CartPoll"))
    assert "no environment 'CartPoll', did you mean 'palaestra/CartPole-v0'?" in error
    assert "and no file or folder of this name" in error
    assert "no_such_module" in refused(run("serve", "no_such_module:CartPole"))
    assert "--set is for environments" in refused(serve([corpus, "--set", "a=1"])[0])
    for id in ("CartPole", "MathText-Arith", SPOKEN):
        assert "has no passages to search. Episodes over a network" in refused(run("serve", id))
    assert "'nonsense'" in refused(run("serve", "SearchQA-2Hop", "--set", "nonsense=1"))
    assert f"{tmp_path / 'parameters.npy'}: " in refused(run("serve", tmp_path))
    with Server(index=Index([]), port=0) as server:
        port = server.address.rpartition(":")[2]
        assert f"cannot listen at 127.0.0.1:{port}" in refused(run("serve", corpus, "--port", port))
    assert "cannot listen at 127.0.0.1:70000" in refused(run("serve", corpus, "--port", "70000"))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_a_file_whose_name_has_a_colon_is_no_module(serve: Serve, corpus: Path):
    path = corpus.rename(corpus.parent / "my:corpus.jsonl")
    assert serve([path], ("/retrieve", {"query": "dog"}))[1][0]["result"][0]["contents"] == '"Dogs"\nA dog barks.'


@pytest.mark.parametrize("most", [None, 4])
def test_an_environment_with_a_fixed_world_is_searched_and_refuses_the_same_queries(serve: Serve, most: int | None):
    longest = " ".join(["the wrestler Milon", *["x"] * ((most or 64) - 3)])
    asked = {"queries": [longest, f"x {longest}"], "topk": 1}
    words = [] if most is None else ["--set", f"query_words={most}"]
    _, (found,) = serve(["SearchQA-Custom", *words], ("/retrieve", asked))
    (hit,), (refusal,) = found["result"]
    assert hit["contents"].startswith('"Milon"\nMilon of Kroton')
    title, told = refusal["contents"].split("\n")
    assert (title, refusal["id"]) == ('"Refused"', "")
    env = text_env("palaestra/SearchQA-Custom-v1", **({} if most is None else {"query_words": most}))
    for query, is_told in zip(asked["queries"], (False, True), strict=True):
        env.reset(seed=0)
        assert (told in env.step(f"<search>{query}</search>")[0]) == is_told


def test_a_match_over_standard_input_and_output_needs_an_id_and_a_library(
    run, refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "palaestra.adapters.mcp", raising=False)
    assert "which is not installed: pip install mcp" in refused(run("serve", "SearchQA-2Hop", "--mcp", 7))
    assert "--mcp serves a match: name an environment" in refused(run("serve", tmp_path, "--mcp", 7))
