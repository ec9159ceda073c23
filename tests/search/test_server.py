"""The HTTP server: Search-R1's contract, worlds by seed, and what it refuses."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from search.server_client import TEXTS, Client, Connect

from palaestra.adapters.retrieval_server import Server
from palaestra.cli.serve import worlds_of
from palaestra.games.search import Index
from palaestra.games.search.corpora import read_passages
from palaestra.games.search.library import MOST_WORDS
from palaestra.games.search.queries import tell_limit
from palaestra.wrappers.transcript import text_env

pytestmark = pytest.mark.check

FRESH = "palaestra/SearchQA-2Hop-v1"


# -- search ------------------------------------------------------------------------------------------------------------


@pytest.mark.jitless
def test_retrieve_answers_as_search_r1_does(client: Client, index: Index):
    queries = ["cat at night", "nothing", "cat"]
    numbers, scores = index.search(queries, 2)
    contents = ['"Cats"\nA cat sat on the mat.', f'"Dogs"\n{TEXTS[1]}', f'"Heroes"\n{TEXTS[2]}']
    documents = [{"id": str(k), "contents": contents[k]} for k in range(3)]
    found = [[(n, s) for n, s in zip(*pair, strict=True) if n >= 0] for pair in zip(numbers, scores, strict=True)]
    assert [len(hits) for hits in found] == [2, 0, 2]
    answer = client.post("/retrieve", queries=queries, topk=2, return_scores=True)
    assert answer == {"result": [[{"document": documents[n], "score": s} for n, s in hits] for hits in found]}
    answer = client.post("/retrieve", queries=[*queries[:2], "\ud800 cat"], topk=2)
    assert answer == {"result": [[documents[n] for n, _ in hits] for hits in found]}


@pytest.mark.jitless
def test_a_single_query_is_answered_by_one_list(client: Client):
    both = {"topk": 1, "return_scores": True}
    assert (
        client.post("/retrieve", query="dogs", **both)["result"]
        == (client.post("/retrieve", queries=["dogs"], **both)["result"][0])
    )


@pytest.mark.jitless
def test_the_defaults_are_three_passages_without_scores(client: Client):
    expected = client.post("/retrieve", queries=["a cat"], topk=3, return_scores=False)
    assert len(expected["result"][0]) == 3
    assert client.post("/retrieve", queries=["a cat"], topk=None, return_scores=None, user="x") == expected
    assert client.post("/retrieve", queries=[]) == {"result": []}


@pytest.mark.jitless
def test_passages_without_titles_are_answered_as_they_are(connect: Connect):
    with Server(index=Index(["a cat"]), port=0) as server:
        assert connect(server).post("/retrieve", query="cat")["result"] == [{"id": "0", "contents": "a cat"}]


@pytest.mark.jitless
def test_a_query_of_too_many_words_is_told_so_and_the_others_are_searched(client: Client):
    longest, query = "x " * (MOST_WORDS - 1) + "cat", "cat at night"
    assert client.post("/retrieve", query=longest)["result"] == client.post("/retrieve", query="cat")["result"]
    found = client.post("/retrieve", queries=[query, f"x {longest}", query], return_scores=True)["result"]
    assert found[1] == [{"document": {"id": "", "contents": f'"Refused"\n{tell_limit()}'}, "score": 0.0}]
    assert [found[0]] == [found[2]] == client.post("/retrieve", queries=[query], return_scores=True)["result"]


@pytest.mark.jitless
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, 'give "queries", a list of texts, or "query", one text'),
        ({"queries": ["cat"], "query": "cat"}, 'give "queries"'),
        ({"queries": "cat"}, '"queries" is "cat": give a list'),
        ({"queries": None}, '"queries" is missing: give a list'),
        ({"queries": ["cat", 3]}, "got 3 in it"),
        ({"query": ["cat"]}, '"query" is ["cat"]: give a text'),
        ({"queries": ["cat"] * 16385}, "16385 queries: send at most 16384 at once"),
        ({"queries": ["cat"], "topk": -1}, '"topk" is 1 to 100, got -1'),
        ({"queries": ["cat"], "topk": 101}, "got 101"),
        ({"queries": ["cat"], "topk": 1.5}, '"topk" is 1.5: give an integer'),
        ({"queries": ["cat"], "topk": "three"}, '"topk" is "three": give an integer'),
        ({"queries": ["cat"], "topk": [3]}, '"topk" is [3]: give an integer'),
        ({"queries": ["cat"], "return_scores": 2}, '"return_scores" is 2: give true or false'),
        (b'{"queries": [' + b'"",' * 600_000 + b'""]}', "the body has more than 1048576 values"),
        ({"queries": ["cat"], "topk": "x" * 1000}, "... (1002 characters)"),
        ([], "no JSON object"),
        (b"", "the body is no JSON"),
        (b'{"query": NaN}', "NaN is no number of JSON"),
        (b'{"query": "\xff"}', "the body is no JSON"),
        (b'{"query": ' + b"[" * 100_000, "the body is no JSON"),
    ],
)
def test_a_wrong_body_is_refused(client: Client, body: Any, error: str):
    assert error in client.refusal(400, "/retrieve", body)
    assert client.connection.sock is not None, "the connection goes on"


@pytest.mark.jitless
@pytest.mark.parametrize("topk", [0, False, None, "0", 3, 3.0, "3", " 3 ", "3.0", "+3"])
@pytest.mark.parametrize("with_scores", [False, 0, 0.0, "no", "False", None])
def test_values_are_taken_as_pydantic_takes_them(client: Client, topk: Any, with_scores: Any):
    expected = client.post("/retrieve", queries=["a cat"])
    assert client.post("/retrieve", queries=["a cat"], topk=topk, return_scores=with_scores) == expected


@pytest.mark.parametrize("with_scores", [True, 1, 1.0, "yes", "TRUE", "on", "t", "1"])
def test_words_for_true_are_taken(client: Client, with_scores: Any):
    (found,) = client.post("/retrieve", queries=["a cat"], topk=True, return_scores=with_scores)["result"]
    assert [hit.keys() for hit in found] == [{"document", "score"}]


def test_search_r1s_own_batch_is_answered_with_the_ids_of_the_file(tmp_path: Path, connect: Connect):
    """512 prompts of 5 rollouts each ask at once; it reads ``.json()["result"]``."""
    ids, path = [k if k % 2 else f"doc-{k}" for k in range(40)], tmp_path / "corpus.jsonl"
    path.write_text("\n".join(json.dumps({"id": id, "contents": f"Thing\nword{k} cat"}) for k, id in enumerate(ids)))
    queries = [f"word{k % 40} {'mat' * (k % 7)}" for k in range(2560)]
    with Server(index=Index(read_passages(path)[0]), port=0) as server:
        client = connect(server)
        found = client.post("/retrieve", queries=queries, topk=3, return_scores=True)["result"]
        assert [[hit["document"]["id"] for hit in hits] for hits in found] == [[ids[k % 40]] for k in range(2560)]
        for k in (0, 1, 681, 682, 2559):
            assert [found[k]] == client.post("/retrieve", queries=[queries[k]], topk=3, return_scores=True)["result"]
        assert client.post("/retrieve", query=queries[0], topk=3, return_scores=True)["result"] == found[0]


def test_ids_of_a_file_come_out_again(tmp_path: Path, connect: Connect):
    path = tmp_path / "corpus.jsonl"
    named = {"Q64": "Berlin\nA capital.", 7: "capital capital", "8": "capital", -9: "capital", '"': "capital"}
    rows = [*({"id": id, "contents": text} for id, text in named.items()), {"text": "capital"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    Index(read_passages(path)[0]).save(tmp_path / "saved")
    for index in (Index(read_passages(path)[0]), Index.load(tmp_path / "saved")):
        with Server(index=index, port=0) as server:
            (found,) = connect(server).post("/retrieve", queries=["capital"], topk=9)["result"]
            ids = [hit["id"] for hit in found]
            assert sorted(ids, key=str) == sorted([*named, "5"], key=str)


def test_threads_search_at_the_same_time(corpus: Server, connect: Connect):
    expected = connect(corpus).post("/retrieve", queries=["cat", "dogs bark"], return_scores=True)
    answers: list[Any] = []

    def ask() -> None:
        own = connect(corpus)
        answers.extend(own.post("/retrieve", queries=["cat", "dogs bark"], return_scores=True) for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 80


# -- worlds of their own -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worlds() -> Iterator[Server]:
    with Server(worlds=worlds_of(FRESH, {}), port=0) as server:
        yield server


def test_a_world_of_a_seed_is_searched_as_the_environment_searches_it(worlds: Server, connect: Connect):
    env, queries, seeds, shown = text_env(FRESH), [], [], []
    for seed in (3, 3 + 2**52, 7, 3, *range(20, 40)):
        _, info = env.reset(seed=seed)
        subject, relation, _ = info["path"][0]
        queries.append(f"{relation} of {subject}")
        seeds.append(seed)
        shown.append(env.step(f"<search>{queries[-1]}</search>")[0])
    found = connect(worlds).post("/retrieve", queries=queries, seed=seeds, return_scores=True)["result"]
    for seed, hits, text in zip(seeds, found, shown, strict=True):
        documents = [hit["document"] for hit in hits]
        titles_and_texts = [document["contents"].split("\n", 1) for document in documents]
        lines = [f"Doc {k}(Title: {title}) {said}" for k, (title, said) in enumerate(titles_and_texts, 1)]
        assert text == "\n\n<information>" + "\n".join(lines) + "</information>\n\n"
        assert all(document["id"].startswith(f"{seed}:") for document in documents)
        assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
        assert hits[0]["score"] > 0.0
    assert found[0] == found[3]


def test_one_seed_is_for_all_queries_and_more_than_fit_into_a_batch_are_searched(worlds: Server, connect: Connect):
    client = connect(worlds)
    queries = [f"{k} </search> the mayor" for k in range(70)]
    found = client.post("/retrieve", queries=queries, seed=5, topk=1)["result"]
    assert found == [client.post("/retrieve", query=queries[0], seed=5, topk=1)["result"]] * 70
    assert len(found[0]) == 1
    assert found[0][0]["id"].startswith("5:")  # passages of two worlds are told apart
    assert client.post("/retrieve", query="xyzzy", seed=5) == {"result": []}
    assert client.send("GET", "/health")[1] == {"status": "ok", "passages": None, "worlds": FRESH}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, 'give its "seed", or a list of one each query'),
        ({"seed": None}, 'give its "seed"'),
        ({"seed": [1]}, '"seed" has 1 seeds for 2 queries'),
        ({"seed": -1}, "an integer from 0 to 2**64"),
        ({"seed": [1, "2"]}, "an integer from 0 to 2**64"),
        ({"seed": True}, "an integer from 0 to 2**64"),
        ({"seed": 1, "topk": 4}, '"topk" is 1 to 3, got 4'),
    ],
)
def test_a_seed_that_is_none_is_refused(worlds: Server, connect: Connect, body: dict[str, Any], error: str):
    assert error in connect(worlds).refusal(400, "/retrieve", {"queries": ["a", "b"], **body})


def test_a_server_of_one_collection_needs_no_seed(client: Client):
    assert client.post("/retrieve", query="cat", seed="any") == client.post("/retrieve", query="cat")
