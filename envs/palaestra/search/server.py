r"""An HTTP server of a searchable collection, of an environment, or of both, for programs in other processes.

All answers are JSON, errors ``{"error": "..."}`` with a status of 400 or more. ``POST /retrieve`` is the contract of
Search-R1's retrieval server; a single ``query`` in place of ``queries`` is answered by one list, as GEM's server does.

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

import io
import ipaddress
import json
import logging
import re
import secrets
import socket
import socketserver
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import gymnasium
import numpy as np
from gymnasium import spaces

from palaestra.core.files import LONGEST_QUOTE, printable, printable_error
from palaestra.core.jsonable import jsonable
from palaestra.core.rng import check_seed

if TYPE_CHECKING:
    from palaestra.search.dense import DenseIndex
    from palaestra.search.index import Index

LARGEST_BODY = 2**20
"""Bytes of a request's body."""
MOST_QUERIES = 1024
MOST_PASSAGES = 100
"""Largest ``topk``."""
DEFAULT_PASSAGES = 3
LONGEST_QUERY = 2048
"""Characters of a query that are searched: time grows with the square of its different words. Dense retrievers cut
queries much earlier, and a policy that babbles must not end its own training by an error."""
TIMEOUT_S = 30.0
POLL_S = 0.05
"""Time after which a server that is to stop does so."""

LOG = logging.getLogger(__name__)
LENGTH = re.compile("[0-9]{1,18}")
"""Value of a header Content-Length."""
TO_JSON = json.JSONEncoder().encode
KINDS = {str: "a text", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}
REQUIRED: Any = object()


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
        index: Index | DenseIndex | None = None,
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
        self._http = _HttpServer(host, port, timeout_s, self._answer)
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

    def _answer(self, method: str, path: str, body: bytes) -> str:
        """The answer to a request, in JSON.

        Raises:
            RequestError: The request cannot be answered.
        """
        if path not in self._routes:
            raise RequestError(404, f"no path {printable(path)}: there are {', '.join(self._routes)}")
        known, answer = self._routes[path]
        if method != known:
            raise RequestError(405, f"{path} takes {known}, not {method}")
        said = answer(_read_json(body) if known == "POST" else {})
        return said if isinstance(said, str) else json.dumps(said, allow_nan=False)

    def _health(self, _: dict[str, Any]) -> dict[str, Any]:
        return {
            "status": "ok",
            "passages": None if self._index is None else len(self._index),
            "environment": self._environment,
            "sessions": 0 if self._sessions is None else len(self._sessions),
        }

    def _retrieve(self, body: dict[str, Any]) -> str:
        """See the module. Names that it does not know are ignored, as Search-R1's server does."""
        assert self._index is not None
        if ("queries" in body) == ("query" in body):
            raise RequestError(400, 'give "queries", a list of texts, or "query", one text')
        queries = [_read_field(body, "query", str)] if "query" in body else _read_field(body, "queries", list)
        if wrong := [query for query in queries if not isinstance(query, str)]:
            raise RequestError(400, f'"queries" is a list of texts, got {_quoted(wrong[0])} in it')
        if len(queries) > MOST_QUERIES:
            raise RequestError(400, f"{len(queries)} queries: send at most {MOST_QUERIES} at once")
        topk = _read_field(body, "topk", int, DEFAULT_PASSAGES)
        if not 1 <= topk <= MOST_PASSAGES:
            raise RequestError(400, f'"topk" is 1 to {MOST_PASSAGES}, got {_quoted(topk)}')
        numbers, scores = self._index.search([query[:LONGEST_QUERY] for query in queries], topk)
        with_scores = _read_field(body, "return_scores", bool, False)
        # As text: `json.dumps` of all hits takes as long as their search.
        lists = [
            f"[{', '.join([self._hit(n, s if with_scores else None) for n, s in zip(*hits, strict=True) if n >= 0])}]"
            for hits in zip(numbers.tolist(), scores.tolist(), strict=True)
        ]
        result = lists[0] if "query" in body else f"[{', '.join(lists)}]"
        return f'{{"result": {result}}}'

    def _hit(self, number: int, score: float | None) -> str:
        """A passage as Search-R1's corpora have it, the title, where there is one, in quotes; and its score."""
        assert self._index is not None
        passage = self._index.passages[number]
        title, line_break, text = passage.partition("\n")
        if line_break and not (title[:1] == title[-1:] == '"'):
            passage = f'"{title}"\n{text}'
        document = f'{{"id": "{number}", "contents": {TO_JSON(passage)}}}'
        return document if score is None else f'{{"document": {document}, "score": {score!r}}}'


def _read_json(body: bytes) -> dict[str, Any]:
    """The object that a body holds.

    Raises:
        RequestError: It holds no JSON, or another kind of value.
    """
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"the body is no JSON: {printable(error)}") from error
    if not isinstance(value, dict):
        raise RequestError(400, 'the body is no JSON object: send {"name": value, ...}')
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


class RequestError(Exception):
    """Why a request is not answered.

    Attributes:
        status: HTTP's number of the reason.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


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


class _HttpServer(ThreadingHTTPServer):
    """Threads that answer connections; knows the connections, to end them."""

    request_queue_size = 128
    allow_reuse_port = False

    def __init__(self, host: str, port: int, timeout_s: float, answer: Callable[[str, str, bytes], str]) -> None:
        self.timeout_s, self.answer = timeout_s, answer
        self._connections: set[Any] = set()
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise OSError(f"cannot listen at {host}:{port} ({error}): give another port, 0 for a free one") from error
        name, taken = self.server_address[:2]
        self.address = f"[{name!s}]:{taken}" if ":" in str(name) else f"{name!s}:{taken}"
        self.is_local = _is_local(self.address)

    def server_bind(self) -> None:
        """Without the look-up of the host's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """What can fail outside of an answer is the connection."""
        LOG.debug("connection of %s", client_address, exc_info=True)


class _TimedInput(io.RawIOBase):
    """What a connection receives until a deadline, however slowly it comes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.deadline = connection, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("too slow")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _HttpServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def setup(self) -> None:
        super().setup()
        self._input = _TimedInput(self.connection)
        self.rfile: Any = io.BufferedReader(self._input)

    def handle_one_request(self) -> None:
        """Waits for a request; from its first byte on, it has its own time."""
        self._input.deadline = time.monotonic() + self.server.timeout_s
        try:
            self.rfile.peek(1)
        except OSError:
            self.close_connection = True
            return
        self._input.deadline = time.monotonic() + self.server.timeout_s
        super().handle_one_request()

    def _handle(self) -> None:
        path = self.path.partition("?")[0]
        try:
            body = self._read_body()
            self._check_sender()
            status, content = 200, self.server.answer(self.command, path, body)
        except RequestError as error:
            status, content = error.status, json.dumps({"error": str(error)})
        except ConnectionError:
            raise
        except Exception as error:
            LOG.exception("%s %s", self.command, path)
            status, content = 500, json.dumps({"error": f"{type(error).__name__}: the server's log says more"})
        self._send(status, content)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _handle

    def _read_body(self) -> bytes:
        """The body, so that the next request of the connection starts behind it.

        Raises:
            RequestError: It has no length, is too large, or does not come; the connection then ends with the answer.
        """
        lengths = self.headers.get_all("Content-Length", [])
        if not lengths and "Transfer-Encoding" not in self.headers:
            return b""
        end_after, self.close_connection = self.close_connection, True
        if len(lengths) != 1 or "Transfer-Encoding" in self.headers:
            raise RequestError(411, "give the length of the body in one header Content-Length")
        if not LENGTH.fullmatch(lengths[0]):
            raise RequestError(400, f"Content-Length is a number of bytes, got {printable(lengths[0])}")
        length = int(lengths[0])
        try:
            if length > LARGEST_BODY:
                while length > 0 and (part := self.rfile.read1(LARGEST_BODY)):
                    length -= len(part)  # who is still sending would not read the answer
                raise RequestError(413, f"the body has {lengths[0]} bytes: send at most {LARGEST_BODY}")
            body = self.rfile.read(length)
        except TimeoutError as error:
            raise RequestError(408, f"the body did not come within {self.server.timeout_s:g} s") from error
        if len(body) < length:
            raise ConnectionAbortedError
        self.close_connection = end_after
        return body

    def _check_sender(self) -> None:
        """Refuses what only a web page sends: a page of another origin, or one whose name was bound to this machine.

        Raises:
            RequestError: A web page sent this.
        """
        if "Origin" in self.headers:
            raise RequestError(403, "web pages are not answered: send the request without the header Origin")
        if not self.server.is_local:
            return
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not _is_local(hosts[0]):
            given = printable(", ".join(hosts))
            raise RequestError(403, f"this server answers at localhost alone, the header Host says {given}")

    def _send(self, status: int, content: str) -> None:
        self.connection.settimeout(self.server.timeout_s)
        next_one = "close" if self.close_connection else "keep-alive"
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\nConnection: {next_one}\r\n\r\n"
        )
        self.wfile.write((head if self.command == "HEAD" else head + content).encode("ascii"))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no request that `_handle` takes, in JSON as all answers."""
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self.close_connection = True
        self._send(status, json.dumps({"error": message or status.phrase}))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a line a request takes longer than most answers."""


def _is_local(host: str) -> bool:
    """Whether a host, with or without a port, is this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
