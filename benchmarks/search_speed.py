"""Speed of text search: queries and making an index next to bm25s, turns of SearchQA, the HTTP server."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import gymnasium
import numpy as np

from measurement import Measurement, NotHere, ReportProgress, timed
from palaestra import registry
from palaestra.adapters.retrieval_server import Server
from palaestra.cli.measure import Benchmark, Timing, no_garbage_collection
from palaestra.games.search import Index, bm25, generator
from skirmish_speed import traced_array_bytes

SIZES = (10_000, 100_000)
"""Passages."""
SINGLE_BARS, BATCH_BARS = (2.0, 2.0), (2.0, 2.0)
NAMED_SINGLE_BARS, NAMED_BATCH_BARS = (7.0, 25.0), (9.0, 40.0)
"""Times as many queries a second as bm25s, by the size; of phrases, and of a name and a relation."""
INDEX_BAR, BYTES_BAR = 1.0, 8.0
LENGTH, QUERY_LENGTH, QUERIES, SINGLES, K = 60, 8, 2000, 200, 3
VOCABULARY, RANK_SHIFT = 50_000, 2.7
"""Word r has the share 1 / (r + 2.7) of a text (Zipf and Mandelbrot)."""
ROUNDS = 7
"""Turns of each side."""

FICTIONAL, PASSAGES = "palaestra/SearchQA-Fictional-v1", 10_000
FRESH, FRESH_SIZE = "palaestra/SearchQA-2Hop-v1", {"entities": 24, "relations": 8}
MAKING_BAR_S = 1.0
EPISODES, VECTOR_EPISODES, TEXT_LANES = 500, 8, 256
"""Episodes of one call of a single environment, and of each lane."""
TEXT_BAR, VECTOR_TEXT_BAR = 45e3, 70e3
LANES, FIXED_BAR, FRESH_BAR, MEMORY_BAR_MB = 1024, 300e3, 800e3, 20.0
BATCH, REQUESTS, SERVER_BAR = 64, 64, 20e3
"""Queries of a request, requests of a turn."""
CLIENT = """
import http.client, json, sys, time
host, bodies = json.load(sys.stdin)
connection = http.client.HTTPConnection(host)
start = time.perf_counter()
for body in bodies:
    connection.request("POST", "/retrieve", body)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        sys.exit(content.decode())
seconds = time.perf_counter() - start
print(json.dumps([seconds, len(json.loads(content)["result"])]))
"""
"""Sends requests over one connection, each after the answer to the last; the answers are read and not parsed."""


def made_up_texts(passages: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Passages of about `LENGTH` words, and queries of `QUERY_LENGTH` words that stand in one passage."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        words["".join(letters[np.minimum(rng.geometric(0.12, rng.integers(2, 11)) - 1, 25)])] = None
    names = list(words)
    shares = np.cumsum(1 / (np.arange(VOCABULARY) + RANK_SHIFT))
    ends = np.cumsum(np.maximum(rng.poisson(LENGTH, passages), QUERY_LENGTH))
    drawn = np.split(np.searchsorted(shares, rng.random(ends[-1]) * shares[-1]), ends[:-1])
    texts = [" ".join([names[i] for i in passage]).capitalize() + "." for passage in drawn]
    asked = (rng.choice(drawn[n], QUERY_LENGTH, replace=False) for n in rng.integers(0, passages, QUERIES))
    return texts, [" ".join([names[i] for i in query]).capitalize() + "?" for query in asked]


def world_texts(passages: int) -> tuple[list[str], list[str]]:
    """Passages of a world of SearchQA, and what its questions need to be searched: a name and a relation each."""
    world = generator.make_world(passages, 0, generator.Noise())
    return world.texts, world_queries(world)[:QUERIES]


def world_queries(world: generator.World) -> list[str]:
    """The searches of the paths of questions of two hops."""
    return generator.path_queries(world, generator.draw_questions(world, 0, PASSAGES, (2, 2), False, None), 0)


class Bm25s:
    """The same index by bm25s."""

    def __init__(self, texts: list[str]) -> None:
        """Makes it.

        Raises:
            NotHere: bm25s is missing.
        """
        try:
            import bm25s  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise NotHere('needs bm25s: pip install "bm25s==0.3.16"') from error
        self._tokenize = lambda t: bm25s.tokenize(t, stopwords=None, show_progress=False)  # pyright: ignore
        self._retriever = bm25s.BM25(method="lucene", k1=bm25.K1, b=bm25.B, backend="numba")
        self._retriever.index(self._tokenize(texts), show_progress=False)

    def search(self, queries: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and scores ``[Q, k]``, by one thread."""
        found = self._retriever.retrieve(self._tokenize(queries), k=k, show_progress=False)
        return found.documents, found.scores


def speeds(report_progress: ReportProgress) -> list[Measurement]:
    """Queries a second of text, words found in it included, next to bm25s; and the time to make the index.

    Raises:
        NotHere: bm25s is missing.
    """
    measurements = []
    Bm25s(["to find out", "whether it is here"])
    Index(["and to", "compile"]).search("to")
    for (number, size), make in itertools.product(enumerate(SIZES), (made_up_texts, world_texts)):
        named = make is world_texts
        workload = f"{size:,} passages, {'a name and a relation' if named else 'phrases'}, best {K}"
        report_progress(workload)
        texts, queries = make(size)
        build, (ours, theirs) = pairs(lambda texts=texts: Index(texts), lambda texts=texts: Bm25s(texts), 1)
        agree(ours, theirs, queries)
        few = queries[:SINGLES]
        batch, _ = pairs(lambda: ours.search(queries, K), lambda: theirs.search(queries, K), ROUNDS)  # noqa: B023
        single, _ = pairs(
            lambda: [ours.search(q, K) for q in few],  # noqa: B023
            lambda: [theirs.search(q, K) for q in few],  # noqa: B023
            ROUNDS,
        )
        single_bars, batch_bars = (NAMED_SINGLE_BARS, NAMED_BATCH_BARS) if named else (SINGLE_BARS, BATCH_BARS)
        measurements += [
            faster(f"{workload}: single queries over bm25s", single, len(few), single_bars[number]),
            faster(f"{workload}: a batch of {QUERIES} over bm25s", batch, QUERIES, batch_bars[number]),
        ]
        if named:
            continue
        postings = ours.postings
        used = (postings.passages.nbytes + postings.scores.nbytes) / len(postings.passages)
        measurements += [
            slower(f"{size:,} passages, text to index, time of bm25s", build),
            Measurement("", f"{size:,} passages, bytes a posting", used, BYTES_BAR, False),
        ]
    return measurements


def pairs(ours: Any, theirs: Any, rounds: int) -> tuple[list[tuple[float, float]], tuple[Any, Any]]:
    """CPU seconds of both in turns, and what they return."""
    if rounds > 1:
        ours()
        theirs()
    found, results = [], (None, None)
    with no_garbage_collection():
        for _ in range(rounds):
            start = time.thread_time()
            one = ours()
            middle = time.thread_time()
            other = theirs()
            found.append((middle - start, time.thread_time() - middle))
            results = one, other
    return found, results


def faster(about: str, seconds: list[tuple[float, float]], queries: int, bar: float) -> Measurement:
    """How many times more queries a second are ours: the median of the turns."""
    ours, theirs = (1e6 * min(side) / queries for side in zip(*seconds, strict=True))
    ratio = median(theirs / ours for ours, theirs in seconds)
    return Measurement("", about, ratio, bar, True, f"CPU us a query, least: {ours:.1f} to {theirs:.1f}")


def slower(about: str, seconds: list[tuple[float, float]]) -> Measurement:
    """Our share of the other's time."""
    ours, theirs = seconds[0]
    return Measurement("", about, ours / theirs, INDEX_BAR, False, f"CPU s: {ours:.2f} to {theirs:.2f}")


def agree(ours: Index, theirs: Bm25s, queries: list[str]) -> None:
    """Both find the same scores; of equal scores bm25s may return any passage.

    Raises:
        AssertionError: They do not.
    """
    np.testing.assert_allclose(ours.search(queries, K)[1], theirs.search(queries, K)[1], rtol=1e-5)


# -- SearchQA and the server -------------------------------------------------------------------------------------------


def making(report_progress: ReportProgress) -> list[Measurement]:
    """The passages of a fixed world drawn, written and indexed; the least of the turns."""
    made_world(100)  # compiles
    seconds = []
    with no_garbage_collection():
        for _ in range(ROUNDS):
            start = time.thread_time()
            made_world(PASSAGES)
            seconds.append(time.thread_time() - start)
    return [Measurement("", f"{PASSAGES:,} passages made and indexed, CPU s", min(seconds), MAKING_BAR_S, False)]


def made_world(passages: int) -> tuple[generator.World, Index]:
    """A fixed world and its index."""
    world = generator.make_world(passages, 0, generator.Noise())
    return world, Index(world.texts)


def texts(report_progress: ReportProgress) -> list[Measurement]:
    """Turns a second of language models: the right searches and answers as text, what begins the episodes included.

    The vector resets in the step that ends an episode, so that each step of a lane is a turn.
    """
    keywords = {"form": "text", "passages": PASSAGES}
    single, vector = timed(
        text_play(gymnasium.make(FICTIONAL, **keywords)),
        vector_text_play(registry.make_vec(FICTIONAL, TEXT_LANES, autoreset_mode="same_step", **keywords)),
    )
    return [
        rate(f"SearchQA, {PASSAGES:,} passages, gymnasium.make, text", single, TEXT_BAR),
        rate(f"SearchQA, {PASSAGES:,} passages, vector env of {TEXT_LANES}, text", vector, VECTOR_TEXT_BAR),
    ]


def turns_of(path: Iterable[Sequence[str]], answers: Sequence[str]) -> list[str]:
    """What a language model writes that follows the path of a question and answers right."""
    searches = [f"<think>Who or what is the {r} of {s}?</think><search>{s} {r}</search>" for s, r, _ in path]
    return [*searches, f"<think>That is {answers[0]}.</think><answer>{answers[0]}</answer>"]


def text_play(env: gymnasium.Env) -> Benchmark:
    """Episodes of a single environment, the same in each call; their turns are written before."""
    plan = list[list[str]]()
    _, info = env.reset(seed=0)
    for _ in range(EPISODES):
        plan.append(turns_of(info["path"], info["answers"]))
        for turn in plan[-1]:
            *_, info = env.step(turn)
        assert info["exact_match"] == 1, f"{plan[-1][-1]} does not answer {info['question']!r}"
        _, info = env.reset()

    def play() -> None:
        env.reset(seed=0)
        for turns in plan:
            for turn in turns:
                env.step(turn)
            env.reset()

    return Benchmark("text", play, sum(map(len, plan)), env.close)


def vector_text_play(env: Any) -> Benchmark:
    """The same of all lanes of a vector; each question takes as many turns as the others."""
    plan, rewards = list[list[str]](), np.zeros(env.num_envs)
    _, info = env.reset(seed=0)
    for _ in range(VECTOR_EPISODES):
        of_lanes = [turns_of(*told) for told in zip(info["path"], info["answers"], strict=True)]
        for turns in zip(*of_lanes, strict=True):
            plan.append(list(turns))
            _, rewards, _, _, info = env.step(plan[-1])
        assert (rewards == 1).all(), rewards

    def play() -> None:
        env.reset(seed=0)
        for turns in plan:
            env.step(turns)

    return Benchmark("vector text", play, len(plan) * env.num_envs, env.close)


def rate(about: str, timing: Timing, bar: float) -> Measurement:
    """Turns a second of one core."""
    return Measurement("", f"{about}: turns a second", 1e9 / timing.ns, bar, True, f"us a turn: {timing.ns / 1e3:.1f}")


def tokens(report_progress: ReportProgress) -> list[Measurement]:
    """Turns a second of the form of numbers, by the oracle, and what its arrays take; the world's are not counted."""
    fixed, fresh = timed(token_play(FICTIONAL, passages=PASSAGES), token_play(FRESH, **FRESH_SIZE))
    size = simulation_bytes(FICTIONAL, LANES, passages=PASSAGES) / 1e6
    return [
        rate(f"SearchQA, {PASSAGES:,} passages, batch of {LANES}, tokens", fixed, FIXED_BAR),
        rate(f"SearchQA, a world of 24 entities and 8 relations each, batch of {LANES}, tokens", fresh, FRESH_BAR),
        Measurement("", f"SearchQA, batch of {LANES}, arrays beside the world, MB", size, MEMORY_BAR_MB, False),
    ]


def token_play(id: str, **keywords: Any) -> Benchmark:
    """The batch loop, the oracle as the player."""
    sim = token_batch(id, LANES, **keywords)
    sim.reset(seed=0)
    return Benchmark(id, sim.step, LANES, sim.close)


def token_batch(id: str, lanes: int, **keywords: Any) -> Any:
    """Lanes that the oracle plays, each step a turn."""
    options: dict[str, Any] = {"opponents": {"agent": "oracle"}, "autoreset_mode": "same_step"}
    return registry.make_batch(id, lanes, form="tokens", **options, **keywords)


def simulation_bytes(id: str, lanes: int, **keywords: Any) -> int:
    """What NumPy allocates for a simulation of a world that is there."""
    first = token_batch(id, 1, **keywords)  # holds the world
    first.reset(seed=0)
    tracemalloc.start()
    try:
        before = traced_array_bytes()
        sim = token_batch(id, lanes, **keywords)
        sim.reset(seed=0)
        sim.step()
        size = traced_array_bytes() - before
        sim.close()
        return size
    finally:
        tracemalloc.stop()  # it slows down whatever this process does next
        first.close()


def serving(report_progress: ReportProgress) -> list[Measurement]:
    """Queries a second over HTTP, from a client in another process; the best of the turns."""
    world, index = made_world(PASSAGES)
    queries = world_queries(world)[: BATCH * REQUESTS]
    walls, cpus = [], []
    with Server(index, port=0) as server:
        for number in range(ROUNDS):
            report_progress(f"{number + 1}/{ROUNDS}")
            wall, cpu = answered(server, queries)
            walls.append(wall)
            cpus.append(cpu)
    count = len(queries)
    about = f"/retrieve, {PASSAGES:,} passages, batches of {BATCH}"
    note = f"CPU us a query of the server: {1e6 * min(cpus) / count:.1f}"
    return [Measurement("", f"{about}: queries a second by the wall", count / min(walls), SERVER_BAR, True, note)]


def answered(server: Server, queries: Sequence[str]) -> tuple[float, float]:
    """Wall seconds that a client waits for the answers to all queries, and CPU seconds of this process.

    Raises:
        RuntimeError: A request is refused, or a query is not answered; says why.
    """
    batches = [queries[start : start + BATCH] for start in range(0, len(queries), BATCH)]
    bodies = [json.dumps({"queries": batch, "topk": K, "return_scores": True}) for batch in batches]
    sent = json.dumps([server.address.removeprefix("http://"), bodies])
    cpu = time.process_time()
    client = subprocess.run([sys.executable, "-c", CLIENT], input=sent, capture_output=True, text=True, check=False)
    cpu = time.process_time() - cpu
    if client.returncode:
        raise RuntimeError(f"/retrieve: {client.stderr.strip()}")
    wall, lists = json.loads(client.stdout)
    if lists != len(batches[-1]):
        raise RuntimeError(f"/retrieve: {lists} answers to {len(batches[-1])} queries")
    return wall, cpu
