r"""An HTTP server of a searchable collection, or of the worlds that matches draw, for programs in other processes.

All answers are JSON, errors ``{"error": "..."}`` with a status of 400 or more. ``POST /retrieve`` is the contract of
Search-R1's retrieval server, whose values are taken as pydantic takes them (``"topk": "3"``, 3.0, null or 0 for the
default); a single ``query`` in place of ``queries`` is answered by one list, as GEM's server does. ``id`` is that of
the corpus' file as it stands there, or the number of the passage, as a text, where the file has none.

Where each match draws a world of its own, ``seed`` names it: one for all queries, or a list of one each. It is the seed
of the row that ``palaestra questions`` wrote, or of ``env.reset(seed=...)``. Servers of one collection ignore it.

A query of more words than an environment takes is not searched: its list is one document, which says so, as the
environment tells its agent. One turn of a policy that babbles does not end a batch of thousands.

One request has up to `MOST_QUERIES` queries in a body of up to `LARGEST_BODY` bytes with a ``Content-Length`` (chunked
bodies are refused with status 411), and asks for up to `MOST_PASSAGES` passages a query. A long answer is searched,
written and sent in parts (``Transfer-Encoding: chunked``), of each request two of about `PART_BYTES` at a time. At most
`AT_ONCE` requests are in work, with `BYTES_IN_WORK` bytes of large bodies, so that memory has a bound; others wait for
as long as a request may take, and then get status 503 with a ``Retry-After``.

Requests and answers::

    GET  /health    {"status": "ok", "passages": 3, "worlds": null}
    POST /retrieve  {"queries": ["cat"], "topk": 3, "return_scores": true}
                    {"result": [[{"document": {"id": "0", "contents": "\"Cats\"\nA cat sat."}, "score": 0.5}]]}
                    without return_scores the documents alone: {"result": [[{"id": "0", "contents": ...}]]}
                    in worlds of their own {"queries": ["mayor of Velka", "seat of Popon"], "seed": [3, 3]}

Bound to this machine (the default), the server answers only requests that are addressed to this machine. It never
answers web pages. Episodes of an environment over a network are played by OpenEnv's server, see
`palaestra.adapters.openenv`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from typing import Any, Protocol

import numpy as np

from palaestra.adapters.http_server import POLL_S, HttpServer, RequestError
from palaestra.core.files import LONGEST_QUOTE, printable
from palaestra.core.rng import check_seed

LARGEST_BODY = 2**25
"""Bytes of a body of ``/retrieve``. Search-R1 sends the queries of all its rollouts at once: 2,560 by its own settings,
which this holds in any language, escaped."""
MOST_MARKS = 2**20
"""Quotes, brackets and commas of a body: each may become an object of 70 bytes."""
MOST_QUERIES, HITS_AT_ONCE = 2**14, 2**11
PART_BYTES = 2**17
"""About as much of an answer is in memory."""
AT_ONCE = 64
MOST_PASSAGES = 100
"""Largest ``topk``."""
DEFAULT_PASSAGES = 3
REFUSED = "Refused"
"""Title of the document that says why a query was not searched."""
TIMEOUT_S = 30.0
WHOLE = re.compile(r"\s*([+-]?[0-9]{1,18})(\.0*)?\s*")
FLAGS = {word: True for word in ("1", "true", "t", "yes", "y", "on")}
FLAGS |= {word: False for word in ("0", "false", "f", "no", "n", "off")}
"""Words that pydantic takes for true and false."""
TO_JSON = json.JSONEncoder().encode
KINDS = {str: "a text", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}
REQUIRED: Any = object()

Hit = tuple[str | int, str, float]
"""Id, text and score of a passage."""


class Searchable(Protocol):
    """What ``/retrieve`` searches: an index that ``palaestra serve`` reads, or one of your own."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    @property
    def passages(self) -> Sequence[str]:
        """The texts, by number. Where they have names, an attribute ``ids`` of it holds these."""
        ...

    def search(self, queries: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the best passages, int ``[queries, k]``, -1 where there are no more, and their scores."""
        ...


class Worlds(Protocol):
    """What ``/retrieve`` searches where each match draws its own passages.

    Attributes:
        topk: Most passages of a search.
    """

    topk: int

    def search(self, queries: Sequence[str], seeds: Sequence[int], k: int) -> Sequence[Sequence[Hit]]:
        """The best passages of each query in the world of its seed."""
        ...


class Server:
    """Serves an index, or the worlds of an environment's matches.

    Example::

        with Server(index=Index(["The cat sat on the mat."]), port=0) as server:
            print(server.address)  # http://127.0.0.1:41234

    Attributes:
        address: ``http://host:port``.
    """

    def __init__(
        self,
        index: Searchable | None = None,
        worlds: Worlds | None = None,
        *,
        refusal: Callable[[str], str] | None = None,
        host: str = "127.0.0.1",
        port: int = 8000,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Takes the port; answers come from `serve`, or inside a ``with`` block.

        Args:
            index: What ``/retrieve`` searches.
            worlds: In its place: what ``/retrieve`` searches by seed.
            refusal: Says why a query is not searched, with an empty text for one that is. By default the method of
                this name of the index or the worlds, where there is one.
            host: Name or address to listen at; ``"0.0.0.0"`` lets other machines in, without any password.
            port: 0 takes a free one.
            timeout_s: Time in which a client must send a request and take its answer, and may keep a connection idle.

        Raises:
            ValueError: Neither index nor worlds, or both.
            OSError: The port is taken, or there is no such port or host.
        """
        if (index is None) == (worlds is None):
            raise ValueError("nothing to serve, or two things: give an index or worlds")
        self._index, self._worlds = index, worlds
        own = getattr(worlds if index is None else index, "refusal", lambda query: "")
        self._refusal: Callable[[str], str] = refusal or own
        if index is not None:
            index.search("", 1)  # compiles the search before threads need it
        self._http = HttpServer((host, port), timeout_s, self._answer, AT_ONCE, {"/retrieve": LARGEST_BODY})
        self._started = False
        self.address = f"http://{self._http.address}"

    def serve(self) -> None:
        """Answers until `close` is called in another thread, or this one is interrupted; closes then."""
        self._started = True
        try:
            self._http.serve_forever(POLL_S)
        finally:
            self.close()

    def __enter__(self) -> Server:
        """Answers in another thread until the block ends."""
        self._started = True
        Thread(target=self._http.serve_forever, args=(POLL_S,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """See `close`."""
        self.close()

    def close(self) -> None:
        """Frees the port and ends connections; may be called again."""
        if self._started:
            self._http.shutdown()
        self._http.server_close()
        self._http.end_connections()

    def _answer(self, method: str, path: str, body: bytes) -> Iterator[str]:
        """The answer to a request, in JSON, in parts.

        Raises:
            RequestError: The request cannot be answered.
        """
        routes = {"/health": "GET", "/retrieve": "POST"}
        if path not in routes:
            raise RequestError(404, f"no path {printable(path)}: there are {', '.join(routes)}")
        if method != routes[path]:
            raise RequestError(405, f"{path} takes {routes[path]}, not {method}")
        return self._retrieve(_read_json(body)) if path == "/retrieve" else iter([json.dumps(self._health())])

    def _health(self) -> dict[str, Any]:
        passages = None if self._index is None else len(self._index)
        return {"status": "ok", "passages": passages, "worlds": None if self._worlds is None else str(self._worlds)}

    def _retrieve(self, body: dict[str, Any]) -> Iterator[str]:
        """See the module. Names that it does not know are ignored, as Search-R1's server does."""
        if ("queries" in body) == ("query" in body):
            raise RequestError(400, 'give "queries", a list of texts, or "query", one text')
        queries = [_read_field(body, "query", str)] if "query" in body else _read_field(body, "queries", list)
        if wrong := [query for query in queries if not isinstance(query, str)]:
            raise RequestError(400, f'"queries" is a list of texts, got {_quoted(wrong[0])} in it')
        if len(queries) > MOST_QUERIES:
            raise RequestError(400, f"{len(queries)} queries: send at most {MOST_QUERIES} at once")
        most = MOST_PASSAGES if self._worlds is None else self._worlds.topk
        topk = _read_whole(body, "topk") or min(DEFAULT_PASSAGES, most)
        if not 1 <= topk <= most:
            raise RequestError(400, f'"topk" is 1 to {most}, got {_quoted(topk)}')
        seeds = None if self._worlds is None else _read_seeds(body, len(queries))
        parts = _written(self._found(queries, seeds, topk), _read_flag(body, "return_scores"))
        return _gathered(parts, "[", "]") if "query" not in body else _gathered(parts, "", "")

    def _found(self, queries: Sequence[str], seeds: Sequence[int] | None, topk: int) -> Iterator[Iterator[Hit]]:
        """What is found for each query, or why it was not searched."""
        at_once = max(1, HITS_AT_ONCE // topk)
        for start in range(0, len(queries), at_once):
            some = queries[start : start + at_once]
            refusals = [self._refusal(query) for query in some]
            asked = ["" if refusal else query for query, refusal in zip(some, refusals, strict=True)]
            found = self._search(asked, seeds and seeds[start : start + at_once], topk)
            for refusal, hits in zip(refusals, found, strict=True):
                yield iter([("", f'"{REFUSED}"\n{refusal}', 0.0)]) if refusal else hits

    def _search(self, queries: Sequence[str], seeds: Sequence[int] | None, topk: int) -> Iterator[Iterator[Hit]]:
        if self._worlds is not None:
            yield from map(iter, self._worlds.search(queries, seeds or (), topk))
            return
        assert self._index is not None
        passages: Any = self._index.passages
        ids = getattr(passages, "ids", ())  # the names of passages in their file
        numbers, scores = self._index.search(queries, topk)
        for hits in zip(numbers.tolist(), scores.tolist(), strict=True):
            found = ((n, s) for n, s in zip(*hits, strict=True) if n >= 0)
            yield ((ids[n] if ids else str(n), passages[n], s) for n, s in found)


def _written(found: Iterator[Iterator[Hit]], with_scores: bool) -> Iterator[str]:
    """The list of each query as JSON, in pieces; written as text, as `json.dumps` takes as long as the search."""
    separator = ""
    for hits in found:
        yield f"{separator}["
        for k, (id, passage, score) in enumerate(hits):
            document = f'{{"id": {TO_JSON(id)}, "contents": {TO_JSON(_with_title(passage))}}}'
            hit = f'{{"document": {document}, "score": {score!r}}}' if with_scores else document
            yield f"{', ' if k else ''}{hit}"
        yield "]"
        separator = ", "


def _with_title(passage: str) -> str:
    """A passage as Search-R1's corpora have it: the title, where there is one, in quotes."""
    title, line_break, text = passage.partition("\n")
    return f'"{title}"\n{text}' if line_break and not (title[:1] == title[-1:] == '"') else passage


def _gathered(pieces: Iterator[str], start: str, end: str) -> Iterator[str]:
    """The answer ``{"result": ...}`` of pieces, in parts of about `PART_BYTES`."""
    part, size = [f'{{"result": {start}'], 0
    for piece in pieces:
        part.append(piece)
        size += len(piece)
        if size >= PART_BYTES:
            yield "".join(part)
            part, size = [], 0
    yield "".join([*part, end, "}"])


def _read_json(body: bytes) -> dict[str, Any]:
    """The object that a body holds.

    Raises:
        RequestError: It holds no JSON, or another kind of value.
    """
    if len(body) > MOST_MARKS and sum(map(body.count, (b'"', b"[", b"{", b","))) > MOST_MARKS:
        raise RequestError(400, f"the body has more than {MOST_MARKS} values: send fewer at once")
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"the body is no JSON: {printable(error)}") from error
    if not isinstance(value, dict):
        raise RequestError(400, 'the body is no JSON object: send {"name": value, ...}')
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _read_field(body: dict[str, Any], name: str, kind: type, default: Any = REQUIRED) -> Any:
    """A member of a request's body; null is as if it were not there.

    Raises:
        RequestError: It is missing, or of another kind.
    """
    value = body.get(name)
    if value is None and default is not REQUIRED:
        return default
    if type(value) is not kind:
        given = "is missing" if value is None else f"is {_quoted(value)}"
        raise RequestError(400, f'"{name}" {given}: give {KINDS[kind]}')
    return value


def _read_whole(body: dict[str, Any], name: str) -> int:
    """A whole number as pydantic takes one: ``3``, ``3.0``, ``"3"``; 0 where it is null or not there.

    Raises:
        RequestError: It is none.
    """
    value = body.get(name)
    if value is None:
        return 0
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (match := WHOLE.fullmatch(value)):
        return int(match[1])
    raise RequestError(400, f'"{name}" is {_quoted(value)}: give an integer')


def _read_flag(body: dict[str, Any], name: str) -> bool:
    """True or false as pydantic takes it: ``true``, 1, ``"yes"``; false where it is null or not there.

    Raises:
        RequestError: It is neither.
    """
    value = body.get(name)
    if value is None:
        return False
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in FLAGS:
        return FLAGS[value.lower()]
    raise RequestError(400, f'"{name}" is {_quoted(value)}: give true or false')


def _read_seeds(body: dict[str, Any], count: int) -> list[int]:
    """The seed of each query.

    Raises:
        RequestError: They are missing, not one a query, or no seeds.
    """
    given = body.get("seed")
    if given is None:
        raise RequestError(400, 'each match has a world of its own here: give its "seed", or a list of one each query')
    seeds = given if isinstance(given, list) else [given] * count
    if len(seeds) != count:
        raise RequestError(400, f'"seed" has {len(seeds)} seeds for {count} queries: give one, or one each')
    try:
        return [check_seed(seed) for seed in seeds]
    except ValueError as error:
        raise RequestError(400, f'"seed": {printable(error)}') from error


def _quoted(value: Any) -> str:
    """A value of JSON for a message, cut."""
    text = json.dumps(value)
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}... ({len(text)} characters)"
