"""A client of OpenAI-compatible chat endpoints with the standard library alone, to be used by several threads.

Too many requests (429, whose Retry-After is kept), failures of the endpoint (500 and more), lost connections, replies
that are late or are none are tried again, each time after twice as long a wait. Proxies and redirects are not followed.
The key is sent as ``Authorization: Bearer``; no error repeats it.
"""

from __future__ import annotations

import email.utils
import http.client
import json
import os
import random
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from palaestra.core.files import printable

FIRST_WAIT_S, LONGEST_BACKOFF_S = 1.0, 60.0
"""Wait before the first repetition of a request, and the longest one that doubling leads to."""
LONGEST_WAIT_S = 900.0
"""A Retry-After above it is not waited for."""
LARGEST_REPLY = 2**24
"""Bytes of a reply."""
LONGEST_REASON = 300
"""Characters of an endpoint's message that are repeated."""
UNTIL_LATER = (408, 409, 425, 429)
"""Statuses below 500 after which a request is tried again."""
FEWER, LOOK = "send fewer at once (concurrency), or later", "look at the server's log, or send it again later"
NO_ENDPOINT = "give the URL of an OpenAI-compatible chat endpoint, which ends in /v1 mostly"
"""What a user may do."""
POLL_S = 0.2
"""Time after which Ctrl-C is noticed."""
SPEAKS_OF_CONTEXT = re.compile(r"context|too (?:long|many tokens)|maximum.{0,40}(?:length|tokens)", re.I | re.S)


class EndpointError(Exception):
    """A request that an endpoint does not answer, however often it is repeated; says why and what to do."""


class ContextOverflowError(Exception):
    """A conversation that is longer than the model's context."""


class StoppedError(Exception):
    """No more requests are to be sent."""


class TransientError(Exception):
    """A request that may be answered when it is repeated.

    Attributes:
        hint: What the user may do.
        wait_s: Least time to wait before that.
    """

    def __init__(self, message: str, hint: str, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.hint, self.wait_s = hint, wait_s


class Call(NamedTuple):
    """A call of a tool.

    Attributes:
        id: By which the endpoint knows its answer.
        name: Of the tool.
        arguments: As JSON, if the model keeps to it.
    """

    id: str
    name: str
    arguments: str


class Reply(NamedTuple):
    """What a model says.

    Attributes:
        text: The content; nothing where all of it was thought or called.
        thought: What a server took out of the content (``reasoning_content``, or ``reasoning``).
        calls: Calls of tools.
        is_cut: Whether it ended at the most tokens.
        tokens: Tokens that were read and written; None if not told.
    """

    text: str
    thought: str = ""
    calls: tuple[Call, ...] = ()
    is_cut: bool = False
    tokens: tuple[int, int] | None = None


class Endpoint:
    """Asks for replies, each over a connection of its own; may be used by several threads."""

    def __init__(self, url: str, timeout_s: float, retries: int, key_from: str, needs_key: bool = False) -> None:
        """Reads the URL and the key; connects later.

        Args:
            url: Of the endpoint, up to the version: ``http://localhost:8000/v1``.
            timeout_s: Most seconds from a request to the end of its reply.
            retries: How often a request is repeated.
            key_from: Name of the environment variable that may hold the key.
            needs_key: Whether it has to.

        Raises:
            ValueError: No URL of http or https, or no key in a variable that has to hold it. The key is not repeated.
        """
        self._url, self._timeout_s, self._retries, self._key_from = url, timeout_s, retries, key_from
        self._secure, self._host, self._port, self._path = _read_url(url)
        self._headers, self._key = {"Content-Type": "application/json"}, os.environ.get(key_from, "").strip()
        if needs_key and not self._key:
            raise ValueError("key_from names an environment variable that holds the key: it is not set")
        if not (self._key.isascii() and self._key.isprintable()):
            raise ValueError(f"the key in the environment variable {key_from} has characters that no header may have")
        if self._key:
            self._headers["Authorization"] = f"Bearer {self._key}"

    def complete(self, body: Mapping[str, Any], stopped: Event) -> Reply:
        """The model's next message.

        Args:
            body: The request: model, messages and settings.
            stopped: Set when no more requests are to be sent.

        Raises:
            EndpointError: This request is not answered, however often it is repeated.
            ContextOverflowError: The conversation is too long.
            StoppedError: ``stopped`` was set before an answer came.
        """
        content, tries = json.dumps(body).encode(), self._retries + 1
        for number in range(1, tries + 1):
            if stopped.is_set():
                raise StoppedError
            try:
                return self._read_reply(self._post(content))
            except TransientError as error:
                wait_s = max(error.wait_s, min(FIRST_WAIT_S * 2 ** (number - 1), LONGEST_BACKOFF_S))
                if number == tries or error.wait_s > LONGEST_WAIT_S:
                    tried = f" ({number} {'try' if number == 1 else 'tries'})"
                    raise EndpointError(f"{self._url}: {error}{tried}: {error.hint}") from error
            # Not all at the same moment.
            if stopped.wait(wait_s * random.uniform(1.0, 1.25)):
                raise StoppedError
        raise AssertionError("the last try returns or raises")

    def _post(self, body: bytes) -> bytes:
        """The content of the answer to one request; raises as `complete`, or TransientError."""
        timeout_s = self._timeout_s
        deadline = time.monotonic() + timeout_s
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        with closing(kind(self._host, self._port, timeout=timeout_s)) as connection:
            try:
                connection.connect()
            except OSError as error:
                reason = error.strerror or str(error) or "no answer"
                raise TransientError(f"cannot be reached ({reason})", "start the server, or give its URL") from error
            try:
                connection_socket: Any = connection.sock  # the connection forgets it where it ends with the answer
                connection.request("POST", self._path, body, self._headers)
                with closing(connection.getresponse()) as response:
                    content = _read_content(response, deadline, connection_socket)
            except TimeoutError as error:
                raise TransientError(f"no reply within {timeout_s:g} s", f"raise timeout_s, or {FEWER}") from error
            except (OSError, http.client.HTTPException) as error:
                raise TransientError(f"the connection was lost: {type(error).__name__}", LOOK) from error
        if not 200 <= response.status < 300:
            self._refuse(response, _message_of(content))
        return content

    def _refuse(self, response: http.client.HTTPResponse, message: str) -> None:
        """Raises what an answer other than success means; see `complete`."""
        status = response.status
        text = f"status {status}: {self._quote(message)}"
        if status in (400, 413, 422) and SPEAKS_OF_CONTEXT.search(message):
            raise ContextOverflowError(f"{self._url}: {text}")
        if status >= 500 or status in UNTIL_LATER:
            wait_s = read_wait(response.headers.get("Retry-After", ""))
            raise TransientError(text, FEWER if status == 429 else LOOK, wait_s)
        hint = "the request is refused: change or leave out what the message names"
        if status in (401, 403):
            hint = f"the key is refused: the environment variable {self._key_from} has to hold it"
        elif status == 404:
            hint = f"no such path or model: the URL ends in /v1 mostly, and {self._url}/models lists the models"
        elif status < 400 or status == 405:
            hint = "no chat endpoint: give the URL to which it leads"
        raise EndpointError(f"{self._url}: {text}: {hint}")

    def _read_reply(self, content: bytes) -> Reply:
        """The first choice of a completion.

        Raises:
            TransientError: There is none.
        """
        try:
            said = json.loads(content)
        except (ValueError, RecursionError) as error:
            text = self._quote(content.decode(errors="replace"))
            raise TransientError(f"the reply is no JSON: {text}", NO_ENDPOINT) from error
        try:
            choice = said["choices"][0]
            message, is_cut = choice["message"], choice.get("finish_reason") == "length"
            text, thought = message.get("content"), message.get("reasoning_content") or message.get("reasoning")
            asked = [(call.get("id"), call["function"]) for call in message.get("tool_calls") or ()]
            calls = [Call(str(id or k), f["name"], f.get("arguments") or "") for k, (id, f) in enumerate(asked)]
            used = said.get("usage") or {}
            tokens: Any = used.get("prompt_tokens"), used.get("completion_tokens")
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            text = self._quote(json.dumps(said))
            raise TransientError(f"the reply has no choices with a message: {text}", NO_ENDPOINT) from error
        texts = (text, thought, *(text for call in calls for text in call))
        if not all(part is None or isinstance(part, str) for part in texts):
            raise TransientError(f"the reply's content is no text: {self._quote(json.dumps(message))}", NO_ENDPOINT)
        known = tokens if all(type(count) is int for count in tokens) else None
        return Reply(text or "", thought or "", tuple(calls), is_cut, known)

    def _quote(self, text: str) -> str:
        """A stranger's text for a message, in which the key is not repeated."""
        return printable(text.replace(self._key, "***") if self._key else text, LONGEST_REASON)


def at_once(tasks: Mapping[Any, Callable[[Event], Any]], concurrency: int) -> dict[Any, Any]:
    """What tasks return, each in one of ``concurrency`` threads.

    Raises:
        Exception: What the first task raised that failed; no more are begun then, and those at work end.
    """
    waiting, done, stopped, results = SimpleQueue[Any](), SimpleQueue[tuple[Any, Any, Any]](), Event(), dict[Any, Any]()
    for task in tasks.items():
        waiting.put(task)

    def work() -> None:
        while not stopped.is_set():
            try:
                key, task = waiting.get_nowait()
            except Empty:
                break
            try:
                done.put((key, task(stopped), None))
            except BaseException as error:
                stopped.set()
                done.put((key, None, error))
        done.put((None, None, None))

    running = min(concurrency, len(tasks))
    for _ in range(running):
        Thread(target=work, daemon=True).start()
    failure: BaseException | None = None
    try:
        while running:
            try:
                key, result, error = done.get(timeout=POLL_S)
            except Empty:
                continue
            running -= key is None
            failure = failure or (None if isinstance(error, StoppedError) else error)
            if key is not None and error is None:
                results[key] = result
    finally:
        stopped.set()
    if failure is not None:
        raise failure
    return results


def _read_url(url: str) -> tuple[bool, str, int | None, str]:
    """Whether it is https, host, port and path of the endpoint's requests.

    Raises:
        ValueError: No such URL.
    """
    wanted = "the URL is http://HOST:PORT/v1 or https://..., without name and password"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{wanted}: {error}") from error
    has_secret = parts.username is not None or parts.query or parts.fragment  # it may hold a key: not repeated
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not parts.hostname or has_secret or not is_plain:
        raise ValueError(wanted)
    return parts.scheme == "https", parts.hostname, port, f"{parts.path.rstrip('/')}/chat/completions"


def _read_content(response: http.client.HTTPResponse, deadline: float, connection: socket.socket) -> bytes:
    """All of a body.

    Raises:
        TimeoutError: It has not ended at the deadline, a time of `time.monotonic`.
        TransientError: It is too large.
    """
    parts, size = [], 0
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0.0:
            raise TimeoutError
        connection.settimeout(left_s)
        part = response.read1(2**16)
        if not part:
            break
        parts.append(part)
        size += len(part)
        if size > LARGEST_REPLY:
            raise TransientError(f"the reply has more than {LARGEST_REPLY} bytes", NO_ENDPOINT)
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(parts)


def _message_of(content: bytes) -> str:
    """What an endpoint says of its refusal: ``{"error": {"message": ...}}`` in one of its forms, or the text itself."""
    text = content.decode(errors="replace").strip()
    with suppress(ValueError, RecursionError):
        said = json.loads(text)
        for name in ("error", "detail", "message"):
            if isinstance(said, dict) and said.get(name):
                said = said[name]
        return said if isinstance(said, str) else json.dumps(said)
    return text or "no reason is given"


def read_wait(header: str) -> float:
    """Seconds of a header Retry-After, which is a number or a date; 0 for anything else."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", header.strip()):
        return float(header)
    with suppress(ValueError, TypeError):
        return max(email.utils.parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    return 0.0
