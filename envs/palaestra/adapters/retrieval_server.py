r"""An HTTP server of a searchable collection, of an environment, or of both, for programs in other processes.

All answers are JSON, errors ``{"error": "..."}`` with a status of 400 or more. ``POST /retrieve`` is the contract of
Search-R1's retrieval server, whose values are taken as pydantic takes them (``"topk": "3"``, 3.0, null or 0 for the
default); a single ``query`` in place of ``queries`` is answered by one list, as GEM's server does. ``id`` is that of
the corpus' file as a text, or the number of the passage where the file has none.

One request has up to `MOST_QUERIES` queries, whose first `LONGEST_QUERY` characters are searched, in a body of up to
`LARGEST_BODY` bytes (other requests: `LARGEST_STEP`), and asks for up to `MOST_PASSAGES` passages a query. A long
answer is searched, written and sent in parts (``Transfer-Encoding: chunked``), so that none is in memory as a whole. At
most `AT_ONCE` requests are in work, or one for each session if these are more, with `BYTES_IN_WORK` bytes of large
bodies; others wait for as long as a request may take, and then get status 503.

Requests and answers::

    GET  /health    {"status": "ok", "passages": 3, "environment": null, "sessions": 0}
    POST /retrieve  {"queries": ["cat"], "topk": 3, "return_scores": true}
                    {"result": [[{"document": {"id": "0", "contents": "\"Cats\"\nA cat sat."}, "score": 0.5}]]}
                    without return_scores the documents alone: {"result": [[{"id": "0", "contents": ...}]]}
    POST /reset     {"seed": 3, "options": {}}, both optional: a new session; with "session": its next episode
                    {"session": "5e1f", "observation": ..., "info": {...}}
    POST /step      {"session": "5e1f", "action": ...}
                    {"observation": ..., "reward": 0.0, "terminated": false, "truncated": false, "info": {...}}
    POST /close     {"session": "5e1f"}
                    {"session": "5e1f"}

A session is an environment of its own: requests of different sessions are answered side by side. A ValueError of an
environment is its refusal of an action or of options (status 400), another error is its failure (500).

Bound to this machine (the default), the server answers only requests that are addressed to this machine. It never
answers web pages.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock, Thread
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

from palaestra.adapters.http_server import POLL_S, HttpServer, RequestError
from palaestra.core.files import LONGEST_QUOTE, printable, printable_error
from palaestra.core.files.jsonable import jsonable
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
LONGEST_QUERY = 2048
"""Characters of a query that are searched: time grows with the square of its different words. Dense retrievers cut
queries much earlier, and a policy that babbles must not end its own training by an error."""
TIMEOUT_S = 30.0
WHOLE = re.compile(r"\s*([+-]?[0-9]{1,18})(\.0*)?\s*")
FLAGS = {word: True for word in ("1", "true", "t", "yes", "y", "on")}
FLAGS |= {word: False for word in ("0", "false", "f", "no", "n", "off")}
"""Words that pydantic takes for true and false."""
TO_JSON = json.JSONEncoder().encode
KINDS = {str: "a text", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}
REQUIRED: Any = object()


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


class Server:
    """Serves an index, an environment, or both.

    Example::

        with Server(index=Index(["The cat sat on the mat."]), port=0) as server:
            print(server.address)  # http://127.0.0.1:41234

    Attributes:
        address: ``http://host:port``.
    """

    def __init__(
        self,
        index: Searchable | None = None,
        environment: str | None = None,
        *,
        keywords: Mapping[str, Any] | None = None,
        host: str = "127.0.0.1",
        port: int = 8000,
        sessions: int = 64,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Takes the port; answers come from `serve`, or inside a ``with`` block.

        Args:
            index: What ``/retrieve`` searches.
            environment: Id of Gymnasium that ``/reset`` makes.
            keywords: Of the environment.
            host: Name or address to listen at; ``"0.0.0.0"`` lets other machines in, without any password.
            port: 0 takes a free one.
            sessions: Most sessions that are open; the one that was used longest ago makes room.
            timeout_s: Time in which a client must send a request and take its answer, and may keep a connection idle.

        Raises:
            ValueError: Neither index nor environment.
            OSError: The port is taken, or there is no such port or host.
        """
        if index is None and environment is None:
            raise ValueError("nothing to serve: give an index, an environment, or both")
        self._index, self._environment, self._sessions = index, environment, None
        self._routes: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {"/health": ("GET", self._health)}
        if index is not None:
            index.search("", 1)  # compiles the search before threads need it
            self._routes["/retrieve"] = "POST", self._retrieve
        if environment is not None:
            self._sessions = _Sessions(environment, keywords or {}, sessions)
            answers = {"/reset": self._sessions.reset, "/step": self._sessions.step, "/close": self._sessions.end}
            self._routes |= {path: ("POST", answer) for path, answer in answers.items()}
        self._http = HttpServer(
            (host, port), timeout_s, self._answer, max(AT_ONCE, sessions), {"/retrieve": LARGEST_BODY}
        )
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
        """Frees the port, ends connections and closes the environments of all sessions; may be called again."""
        if self._started:
            self._http.shutdown()
        self._http.server_close()
        self._http.end_connections()
        if self._sessions is not None:
            self._sessions.close()

    def _answer(self, method: str, path: str, body: bytes) -> Iterator[str]:
        """The answer to a request, in JSON, in parts.

        Raises:
            RequestError: The request cannot be answered.
        """
        if path not in self._routes:
            raise RequestError(404, f"no path {printable(path)}: there are {', '.join(self._routes)}")
        known, answer = self._routes[path]
        if method != known:
            raise RequestError(405, f"{path} takes {known}, not {method}")
        said = answer(_read_json(body) if known == "POST" else {})
        return iter([json.dumps(said, allow_nan=False)]) if isinstance(said, dict) else said

    def _health(self, _: dict[str, Any]) -> dict[str, Any]:
        return {
            "status": "ok",
            "passages": None if self._index is None else len(self._index),
            "environment": self._environment,
            "sessions": 0 if self._sessions is None else len(self._sessions),
        }

    def _retrieve(self, body: dict[str, Any]) -> Iterator[str]:
        """See the module. Names that it does not know are ignored, as Search-R1's server does."""
        assert self._index is not None
        if ("queries" in body) == ("query" in body):
            raise RequestError(400, 'give "queries", a list of texts, or "query", one text')
        queries = [_read_field(body, "query", str)] if "query" in body else _read_field(body, "queries", list)
        if wrong := [query for query in queries if not isinstance(query, str)]:
            raise RequestError(400, f'"queries" is a list of texts, got {_quoted(wrong[0])} in it')
        if len(queries) > MOST_QUERIES:
            raise RequestError(400, f"{len(queries)} queries: send at most {MOST_QUERIES} at once")
        topk = _read_whole(body, "topk") or DEFAULT_PASSAGES
        if not 1 <= topk <= MOST_PASSAGES:
            raise RequestError(400, f'"topk" is 1 to {MOST_PASSAGES}, got {_quoted(topk)}')
        parts = self._found([query[:LONGEST_QUERY] for query in queries], topk, _read_flag(body, "return_scores"))
        return _gathered(parts, "[", "]") if "query" not in body else _gathered(parts, "", "")

    def _found(self, queries: Sequence[str], topk: int, with_scores: bool) -> Iterator[str]:
        """The list of each query, in pieces."""
        assert self._index is not None
        separator = ""
        at_once = max(1, HITS_AT_ONCE // topk)
        for start in range(0, len(queries), at_once):
            numbers, scores = self._index.search(queries[start : start + at_once], topk)
            for hits in zip(numbers.tolist(), scores.tolist(), strict=True):
                yield f"{separator}["
                # As text: `json.dumps` of all hits takes as long as their search.
                found = [(n, s) for n, s in zip(*hits, strict=True) if n >= 0]
                for k, (number, score) in enumerate(found):
                    yield f"{', ' if k else ''}{self._hit(number, score if with_scores else None)}"
                yield "]"
                separator = ", "

    def _hit(self, number: int, score: float | None) -> str:
        """A passage as Search-R1's corpora have it, the title, where there is one, in quotes; and its score."""
        assert self._index is not None
        passage = self._index.passages[number]
        title, line_break, text = passage.partition("\n")
        if line_break and not (title[:1] == title[-1:] == '"'):
            passage = f'"{title}"\n{text}'
        ids = getattr(self._index.passages, "ids", ())  # the names of passages in their file
        document = f'{{"id": {TO_JSON(ids[number] if ids else str(number))}, "contents": {TO_JSON(passage)}}}'
        return document if score is None else f'{{"document": {document}, "score": {score!r}}}'


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


def _quoted(value: Any) -> str:
    """A value of JSON for a message, cut."""
    text = json.dumps(value)
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}... ({len(text)} characters)"


def _check_names(body: dict[str, Any], *known: str) -> None:
    if unknown := [name for name in body if name not in known]:
        raise RequestError(400, f"no field {printable(unknown[0])}: there are {', '.join(known)}")


class _Session:
    """An environment of one client.

    Attributes:
        lock: Held while the environment is used.
        closed: Whether it was closed.
    """

    def __init__(self, env: gymnasium.Env) -> None:
        self.lock, self.closed = Lock(), False
        self._env, self._over = env, True

    def reset(self, body: dict[str, Any]) -> dict[str, Any]:
        options = _read_field(body, "options", dict, None)
        try:
            seed = None if body.get("seed") is None else check_seed(body["seed"])
            self._over = True
            observation, info = self._env.reset(seed=seed, options=options)
        except ValueError as error:
            raise RequestError(400, printable_error(error)) from error
        self._over = False
        return {"observation": jsonable(observation), "info": jsonable(info)}

    def step(self, body: dict[str, Any]) -> dict[str, Any]:
        if "action" not in body:
            raise RequestError(400, '"action" is missing')
        if self._over:
            raise RequestError(409, "the episode is over: POST /reset with this session starts the next one")
        action = _read_action(self._env.action_space, body["action"])
        try:
            observation, reward, terminated, truncated, info = self._env.step(action)
        except ValueError as error:  # how environments refuse an action that they do not understand
            raise RequestError(400, printable_error(error)) from error
        except Exception:
            self._over = True
            raise
        self._over = bool(terminated or truncated)
        return {
            "observation": jsonable(observation),
            "reward": float(reward),
            "terminated": bool(terminated),
            "truncated": bool(truncated),
            "info": jsonable(info),
        }

    def close(self) -> None:
        with self.lock:
            if not self.closed:
                self.closed = True
                self._env.close()


def _read_action(space: spaces.Space, value: Any) -> Any:
    """An action of JSON as the space has it; lists become arrays.

    Raises:
        RequestError: It is not in the space.
    """
    action = value
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        action = None
        with suppress(ValueError), np.errstate(all="ignore"):  # lists of different lengths are no array
            array = np.asarray(value)
            cast = array.astype(space.dtype) if array.dtype.kind in "iuf" else None
            if cast is not None and (cast.dtype.kind == "f" or np.array_equal(cast, array)):
                action = cast
    if action is None or not space.contains(action):
        raise RequestError(400, f"action {_quoted(value)} is not in {space}")
    return action


class _Sessions:
    """The sessions of a server, the one that was used longest ago first."""

    def __init__(self, id: str, keywords: Mapping[str, Any], most: int) -> None:
        self._make = partial(gymnasium.make, id, disable_env_checker=True, **keywords)
        self._most, self._open = most, OrderedDict[str, _Session]()
        self._lock, self._making = Lock(), Lock()
        self._make().close()  # what is wrong with id or keywords shows at once; and kernels are compiled

    def __len__(self) -> int:
        return len(self._open)

    def reset(self, body: dict[str, Any]) -> dict[str, Any]:
        _check_names(body, "session", "seed", "options")
        if body.get("session") is not None:
            with self._held(body) as session:
                return {"session": body["session"], **session.reset(body)}
        with self._making:
            session = _Session(self._make())
        try:
            answer = session.reset(body)
        except BaseException:
            session.close()
            raise
        name, dropped = secrets.token_hex(16), []
        with self._lock:
            self._open[name] = session
            while len(self._open) > self._most:
                dropped.append(self._open.popitem(last=False)[1])
        for other in dropped:
            other.close()
        return {"session": name, **answer}

    def step(self, body: dict[str, Any]) -> dict[str, Any]:
        _check_names(body, "session", "action")
        with self._held(body) as session:
            return session.step(body)

    def end(self, body: dict[str, Any]) -> dict[str, Any]:
        _check_names(body, "session")
        with self._held(body) as session:
            self._open.pop(body["session"], None)
        session.close()
        return {"session": body["session"]}

    def close(self) -> None:
        with self._lock:
            sessions = list(self._open.values())
            self._open.clear()
        for session in sessions:
            session.close()

    @contextmanager
    def _held(self, body: dict[str, Any]) -> Iterator[_Session]:
        """The session that a body names, locked."""
        name = _read_field(body, "session", str)
        with self._lock:
            session = self._open.get(name)
            if session is not None:
                self._open.move_to_end(name)
        if session is not None:
            with session.lock:
                if not session.closed:
                    yield session
                    return
        why = f"closed, or dropped as the oldest of more than {self._most}"
        raise RequestError(404, f"no session {printable(name)}: it was {why}: POST /reset starts one")
