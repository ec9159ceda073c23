"""The HTTP server: Search-R1's contract, sessions of environments, and what it refuses."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from search.server_client import TEXTS, Client, Connect

import palaestra
from palaestra.adapters import retrieval_server
from palaestra.adapters.retrieval_server import Server
from palaestra.games.search import Index
from palaestra.games.search.corpora import read_passages

SPOKEN, GAUGE = "search/Spoken-v0", "search/Gauge-v0"
palaestra.register(SPOKEN, "testing.broken_games:spoken", family="test")


class Gauge(gymnasium.Env):
    """Measures what it is told: text for text, a list for a list; breaks or refuses on demand."""

    action_space = spaces.Text(20, min_length=0)
    observation_space = spaces.Box(-np.inf, np.inf, (2,))
    made: ClassVar[list["Gauge"]] = []

    def __init__(self, wait: threading.Event | None = None) -> None:
        self.open, self.steps, self.wait = True, 0, wait
        self.made.append(self)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        if options == {"break": True}:
            raise RuntimeError("secret of the house")
        self.steps = 0
        return np.array([self.np_random.random(), 0]), {"seed": seed, "options": options, "when": np.int64(0)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        assert self.open
        said = action if isinstance(action, str) else f"{np.asarray(action).dtype} {np.shape(action)}"
        if said == "wait":
            assert self.wait is not None
            self.wait.wait(5)
        if said == "refuse":
            raise ValueError("say something else")
        if said == "break":
            raise RuntimeError("secret of the house")
        self.steps += 1
        reward: Any = np.nan if said == "nan" else np.float32(0.5)
        return np.array([0, self.steps]), reward, said == "end", said == "cut", {"said": said}

    def close(self) -> None:
        self.open = False


gymnasium.register(GAUGE, lambda **keywords: Gauge(**keywords), order_enforce=False)


@pytest.fixture(scope="module")
def two_sessions() -> Iterator[Server]:
    with Server(environment=GAUGE, port=0, sessions=2) as server:
        yield server


@pytest.fixture
def gauge(two_sessions: Server, connect: Connect) -> Client:
    Gauge.made.clear()
    return connect(two_sessions)


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
def test_a_query_is_searched_up_to_its_longest_length(client: Client):
    longest = retrieval_server.LONGEST_QUERY
    assert client.post("/retrieve", query="x" * (longest - 4) + " cat")["result"]
    assert not client.post("/retrieve", query="x" * (longest - 3) + " cat")["result"]


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


def test_search_r1s_own_batch_is_answered(client: Client):
    """512 prompts of 5 rollouts each ask at once; it reads ``.json()["result"]``."""
    queries = [f"cat {k} {'mat' * (k % 7)}" for k in range(2560)]
    found = client.post("/retrieve", queries=queries, topk=3, return_scores=True)["result"]
    assert len(found) == 2560
    for k in (0, 1, 255, 256, 2559):
        assert [found[k]] == client.post("/retrieve", queries=[queries[k]], topk=3, return_scores=True)["result"]
    assert client.post("/retrieve", query=queries[0], topk=3, return_scores=True)["result"] == found[0]


def test_ids_of_a_file_come_out_again(tmp_path: Path, connect: Connect):
    path = tmp_path / "corpus.jsonl"
    rows = [{"id": "Q64", "contents": "Berlin\nA capital."}, {"text": "capital"}, {"id": 7, "text": "capital capital"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    Index(read_passages(path)[0]).save(tmp_path / "saved")
    for index in (Index(read_passages(path)[0]), Index.load(tmp_path / "saved")):
        with Server(index=index, port=0) as server:
            (found,) = connect(server).post("/retrieve", queries=["capital"])["result"]
            assert sorted(hit["id"] for hit in found) == ["1", "7", "Q64"]


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


# -- environments ------------------------------------------------------------------------------------------------------


@pytest.mark.jitless
def test_a_match_in_words_is_the_one_that_gymnasium_plays(connect: Connect):
    keywords = {"compiled": False, "opponent": "strong"}
    env = gymnasium.make(SPOKEN, **keywords)
    with Server(environment=SPOKEN, keywords=keywords, port=0) as server:
        client = connect(server)
        started = client.post("/reset", seed=3)
        observation, info = env.reset(seed=3)
        session = started.pop("session")
        assert started == {"observation": observation, "info": palaestra.jsonable(info)}
        over, steps = False, 0
        while not over:
            answer = client.post("/step", session=session, action="pull -0.2")
            observation, reward, terminated, truncated, info = env.step("pull -0.2")
            assert answer == {
                "observation": observation, "reward": reward, "terminated": terminated, "truncated": truncated,
                "info": palaestra.jsonable(info),
            }  # fmt: skip
            over, steps = terminated or truncated, steps + 1
        assert steps > 1
        assert "'session'" not in client.refusal(409, "/step", {"session": session, "action": "pull 0.1"})
        assert client.post("/reset", session=session, seed=3) == {"session": session, **started}
        client.post("/step", session=session, action="pull 0.1")
        assert "is not in Text(" in client.refusal(400, "/step", {"session": session, "action": "PULL!"})
        assert "unknown option 'a'" in client.refusal(400, "/reset", {"options": {"a": 1}})
    env.close()


def test_sessions_are_independent(gauge: Client):
    first, second = (gauge.post("/reset", seed=seed)["session"] for seed in (1, 2))
    assert gauge.post("/step", session=first, action="")["observation"] == [0, 1]
    assert gauge.post("/step", session=first, action="")["observation"] == [0, 2]
    assert gauge.post("/step", session=second, action="")["observation"] == [0, 1]
    assert gauge.send("GET", "/health")[1]["sessions"] == 2


def test_a_session_plays_its_next_episode_with_seed_and_options(gauge: Client):
    started = gauge.post("/reset", seed=7, options={"level": 2})
    assert started["info"] == {"seed": 7, "options": {"level": 2}, "when": 0}
    following = gauge.post("/reset", session=started["session"])
    assert following["info"] == {"seed": None, "options": None, "when": 0}
    assert following["observation"] != started["observation"]
    assert gauge.post("/reset", session=started["session"], seed=7, options={"level": 2}) == started


@pytest.mark.parametrize(("action", "end"), [("end", "terminated"), ("cut", "truncated")])
def test_an_episode_that_is_over_takes_no_step(gauge: Client, action: str, end: str):
    session = gauge.post("/reset")["session"]
    answer = gauge.post("/step", session=session, action=action)
    assert {"terminated": False, "truncated": False} | {end: True} == {
        k: answer[k] for k in ("terminated", "truncated")
    }
    assert "POST /reset" in gauge.refusal(409, "/step", {"session": session, "action": ""})
    gauge.post("/reset", session=session)
    gauge.post("/step", session=session, action="")


def test_the_session_used_longest_ago_makes_room(gauge: Client):
    first, second = (gauge.post("/reset")["session"] for _ in range(2))
    gauge.post("/step", session=first, action="")
    third = gauge.post("/reset")["session"]
    error = gauge.refusal(404, "/step", {"session": second, "action": ""})
    assert error.startswith(f"no session '{second}': it was closed, or dropped as the oldest of more than 2")
    for session in (first, third):
        gauge.post("/step", session=session, action="")
    assert [env.open for env in Gauge.made] == [True, False, True]


def test_a_closed_session_is_gone(gauge: Client):
    session = gauge.post("/reset")["session"]
    assert gauge.post("/close", session=session) == {"session": session}
    assert not Gauge.made[0].open
    for path in ("/step", "/close", "/reset"):
        assert "no session" in gauge.refusal(
            404, path, {"session": session, **({"action": ""} if path == "/step" else {})}
        )


def test_all_environments_are_closed_at_the_end(connect: Connect):
    Gauge.made.clear()
    with Server(environment=GAUGE, port=0) as server:
        connect(server).post("/reset")
        assert [env.open for env in Gauge.made] == [False, True]
    assert [env.open for env in Gauge.made] == [False, False]


def test_an_error_of_the_environment_is_not_shown_and_ends_the_episode(gauge: Client, caplog: pytest.LogCaptureFixture):
    session = gauge.post("/reset")["session"]
    assert (
        gauge.refusal(500, "/step", {"session": session, "action": "break"})
        == "RuntimeError: the server's log says more"
    )
    assert "secret of the house" in caplog.text
    assert "POST /reset" in gauge.refusal(409, "/step", {"session": session, "action": ""})
    gauge.post("/reset", session=session)
    assert (
        gauge.refusal(500, "/step", {"session": session, "action": "nan"}) == "ValueError: the server's log says more"
    )


def test_a_reset_that_failed_started_no_episode(gauge: Client):
    session = gauge.post("/reset")["session"]
    gauge.refusal(400, "/reset", {"session": session, "seed": -1})
    gauge.post("/step", session=session, action="")
    for body in ({"session": session}, {}):
        gauge.refusal(500, "/reset", {**body, "options": {"break": True}})
    assert "POST /reset" in gauge.refusal(409, "/step", {"session": session, "action": ""})
    assert [env.open for env in Gauge.made] == [True, False]


def test_a_refusal_of_the_environment_is_told_and_the_episode_goes_on(gauge: Client):
    session = gauge.post("/reset")["session"]
    assert gauge.refusal(400, "/step", {"session": session, "action": "refuse"}) == "say something else"
    assert gauge.refusal(400, "/step", {"session": session}) == '"action" is missing'
    assert gauge.post("/step", session=session, action="")["observation"] == [0, 1]


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/reset", {"sed": 3}, "no field 'sed': there are session, seed, options"),
        ("/reset", {"seed": -1}, "seed must be an integer"),
        ("/reset", {"seed": "3"}, "seed must be an integer"),
        ("/reset", {"options": []}, '"options" is []: give an object'),
        ("/step", {"action": ""}, '"session" is missing: give a text'),
        ("/step", {"session": 3, "action": ""}, '"session" is 3: give a text'),
        ("/step", {"session": "x", "action": "", "seed": 1}, "no field 'seed'"),
        ("/close", {"session": "x", "action": ""}, "no field 'action'"),
    ],
)
def test_wrong_fields_are_refused(gauge: Client, path: str, body: Any, error: str):
    health = gauge.send("GET", "/health")
    assert error in gauge.refusal(400, path, body)
    assert gauge.send("GET", "/health") == health
    assert not any(env.open for env in Gauge.made)


@pytest.mark.parametrize(
    ("space", "action", "given"),
    [
        (spaces.Box(-1, 1, (2,)), [0.5, 1], "float32 (2,)"),
        (spaces.Box(-1, 1, ()), 0.5, "float32 ()"),
        (spaces.Box(0, 255, (2,), np.uint8), [0, 255], "uint8 (2,)"),
        (spaces.MultiDiscrete([3, 2]), [2, 1], "int64 (2,)"),
        (spaces.MultiBinary(2), [0, 1], "int8 (2,)"),
        (spaces.Discrete(3), 2, "int64 ()"),
        (spaces.Box(-1, 1, (2,)), [0.5], None),
        (spaces.Box(-1, 1, (2,)), [0.5, 1.5], None),
        (spaces.Box(-1, 1, (2,)), [0.5, True, []], None),
        (spaces.Box(-1, 1, (2,)), [True, False], None),
        (spaces.Box(-1, 1, (2,)), ["0", "1"], None),
        (spaces.Box(-1, 1, (2,)), None, None),
        (spaces.Box(-1, 1, (2,)), [0.5, 1e300], None),
        (spaces.Box(0, 255, (2,), np.uint8), [0, 256], None),
        (spaces.MultiDiscrete([3, 2]), [0.5, 1], None),
        (spaces.MultiDiscrete([3, 2]), [3, 1], None),
        (spaces.MultiDiscrete([3, 2]), [10**30, 1], None),
        (spaces.Discrete(3), [2], None),
        (spaces.Discrete(3), 3, None),
        (spaces.Discrete(3), "2", None),
        (spaces.Text(4), 3, None),
    ],
)
def test_lists_are_arrays_where_the_action_space_has_arrays(
    gauge: Client, space: spaces.Space, action: Any, given: str | None
):
    session = gauge.post("/reset")["session"]
    Gauge.made[0].action_space = space
    if given is None:
        error = gauge.refusal(400, "/step", {"session": session, "action": action})
        assert error == f"action {json.dumps(action)} is not in {space}"
    else:
        assert gauge.post("/step", session=session, action=action)["info"]["said"] == given


def test_a_waiting_step_holds_its_own_session_alone(connect: Connect):
    wait = threading.Event()
    with Server(environment=GAUGE, keywords={"wait": wait}, port=0) as server:
        client, other = connect(server), connect(server)
        slow, fast = (client.post("/reset")["session"] for _ in range(2))
        observed: dict[str, list[float]] = {}

        def step(own: Client, action: str) -> None:
            observed[action] = own.post("/step", session=slow, action=action)["observation"]

        threads = [threading.Thread(target=step, args=(connect(server), action)) for action in ("wait", "then")]
        threads[0].start()
        time.sleep(0.05)
        threads[1].start()
        assert other.post("/step", session=fast, action="")["observation"] == [0, 1]
        time.sleep(0.2)
        assert observed == {}
        wait.set()
        for thread in threads:
            thread.join()
        assert observed == {"wait": [0, 1], "then": [0, 2]}


def test_many_clients_play_at_once_and_no_more_sessions_stay_open(connect: Connect):
    Gauge.made.clear()
    with Server(environment=GAUGE, port=0, sessions=4) as server:

        def play() -> None:
            own = connect(server)
            for _ in range(5):
                session = own.post("/reset")["session"]
                status, _ = own.send("POST", "/step", {"session": session, "action": ""})
                assert status in (200, 404)

        threads = [threading.Thread(target=play) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert connect(server).send("GET", "/health")[1]["sessions"] == 4
        assert sum(env.open for env in Gauge.made) == 4
    assert not any(env.open for env in Gauge.made)
