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
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from threading import Event
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
SPEAKS_OF_CONTEXT = re.compile(r"context|too (?:long|many tokens)|maximum.{0,40}(?:length|tokens)", re.I | re.S)


class MatchFailedError(Exception):
    """A match that has no result; says why."""


class EndpointError(Exception):
    """An endpoint that will not answer the next request either; says why and what to do."""


class ContextOverflowError(Exception):
    """A conversation that is longer than the model's context."""


class StoppedError(Exception):
    """The run ends: no more requests."""


class TransientError(Exception):
    """A request that may be answered when it is repeated.

    Attributes:
        wait_s: Least time to wait before that.
        is_unreachable: Whether there was no connection.
    """

    def __init__(self, message: str, wait_s: float = 0.0, is_unreachable: bool = False) -> None:
        super().__init__(message)
        self.wait_s, self.is_unreachable = wait_s, is_unreachable


class Reply(NamedTuple):
    """What a model says.

    Attributes:
        text: The reply; nothing where all of it was thought.
        is_cut: Whether it ended at the most tokens.
        prompt_tokens: Tokens that were read; None if not told.
        completion_tokens: Tokens that were written; None if not told.
    """

    text: str
    is_cut: bool
    prompt_tokens: int | None
    completion_tokens: int | None


class Endpoint:
    """Asks for replies, each over a connection of its own; may be used by several threads.

    Attributes:
        stopped: Set when no more requests are to be sent.
    """

    def __init__(
        self, url: str, settings: Mapping[str, Any], timeout_s: float, retries: int, key_from: str | None
    ) -> None:
        """Reads the URL and the key; connects later.

        Args:
            url: Of the endpoint, up to the version: ``http://localhost:8000/v1``.
            settings: What is asked beside the messages: ``model``, ``temperature`` and the like.
            timeout_s: Most seconds from a request to the end of its reply.
            retries: How often a request is repeated.
            key_from: Name of the environment variable that holds the key; None sends no key.

        Raises:
            ValueError: No URL of http or https, or no key where one is named. The key is not repeated.
        """
        self.stopped = Event()
        self._url, self._settings, self._timeout_s, self._retries = url, dict(settings), timeout_s, retries
        self._secure, self._host, self._port, self._path = _read_url(url)
        self._headers, self._key = {"Content-Type": "application/json"}, ""
        if key_from is not None:
            self._key = os.environ.get(key_from, "").strip()
            if not self._key:
                raise ValueError("--api-key-from names an environment variable that holds the key: it is not set")
            if not (self._key.isascii() and self._key.isprintable()):
                raise ValueError("the key that --api-key-from names has characters that no header may have")
            self._headers["Authorization"] = f"Bearer {self._key}"

    def complete(self, messages: Sequence[Mapping[str, str]]) -> Reply:
        """The model's next message.

        Args:
            messages: The conversation so far, ``{"role": ..., "content": ...}`` each.

        Raises:
            MatchFailedError: This request is not answered, however often it is repeated.
            EndpointError: Nor will the next one be.
            ContextOverflowError: The conversation is too long.
            StoppedError: `stopped` was set while waiting.
        """
        body, tries = json.dumps({**self._settings, "messages": [*messages]}).encode(), self._retries + 1
        for number in range(1, tries + 1):
            if self.stopped.is_set():
                raise StoppedError
            try:
                return self._read_reply(self._post(body))
            except TransientError as error:
                wait_s = max(error.wait_s, min(FIRST_WAIT_S * 2 ** (number - 1), LONGEST_BACKOFF_S))
                if number == tries or error.wait_s > LONGEST_WAIT_S:
                    after = f" ({number} {'try' if number == 1 else 'tries'})"
                    raise (EndpointError if error.is_unreachable else MatchFailedError)(f"{error}{after}") from error
            # Not all at the same moment.
            if self.stopped.wait(wait_s * random.uniform(1.0, 1.25)):
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
                hint = f"cannot reach {self._url} ({reason}): start the server, or give another --url"
                raise TransientError(hint, is_unreachable=True) from error
            try:
                connection_socket: Any = connection.sock  # the connection forgets it where it ends with the answer
                connection.request("POST", self._path, body, self._headers)
                with closing(connection.getresponse()) as response:
                    content = _read_content(response, deadline, connection_socket)
            except TimeoutError as error:
                raise TransientError(f"no reply within {timeout_s:g} s (--timeout-s)") from error
            except (OSError, http.client.HTTPException) as error:
                raise TransientError(f"the connection was lost: {type(error).__name__}") from error
        if not 200 <= response.status < 300:
            self._refuse(response, _message_of(content))
        return content

    def _refuse(self, response: http.client.HTTPResponse, message: str) -> None:
        """Raises what an answer other than success means; see `complete`."""
        status = response.status
        text = f"status {status}: {self._quote(message)}"
        if status in (400, 413, 422) and SPEAKS_OF_CONTEXT.search(message):
            raise ContextOverflowError(text)
        if status >= 500 or status in UNTIL_LATER:
            raise TransientError(text, read_wait(response.headers.get("Retry-After", "")))
        if status in (401, 403):
            raise EndpointError(f"{text}: the key is refused: --api-key-from names the variable that holds it")
        if status == 404:
            raise EndpointError(f"{text}: no such path or model: --url ends in /v1 mostly, --model is as /models says")
        if status < 400 or status == 405:
            raise EndpointError(f"{text}: no chat endpoint: give the URL that {self._url} leads to")
        raise MatchFailedError(text)

    def _read_reply(self, content: bytes) -> Reply:
        """The first choice of a completion.

        Raises:
            TransientError: There is none.
        """
        try:
            said = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise TransientError(f"the reply is no JSON: {self._quote(content.decode(errors='replace'))}") from error
        try:
            choice = said["choices"][0]
            text, is_cut = choice["message"].get("content"), choice.get("finish_reason") == "length"
            used = said.get("usage") or {}
            counts = [used.get(name) for name in ("prompt_tokens", "completion_tokens")]
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise TransientError(f"the reply has no choices with a message: {self._quote(json.dumps(said))}") from error
        if text is not None and not isinstance(text, str):
            raise TransientError(f"the reply's content is no text: {self._quote(json.dumps(text))}")
        return Reply(text or "", is_cut, *(count if isinstance(count, int) else None for count in counts))

    def _quote(self, text: str) -> str:
        """A stranger's text for a message, in which the key is not repeated."""
        return printable(text.replace(self._key, "***") if self._key else text, LONGEST_REASON)


def _read_url(url: str) -> tuple[bool, str, int | None, str]:
    """Whether it is https, host, port and path of the endpoint's requests.

    Raises:
        ValueError: No such URL.
    """
    wanted = "--url is http://HOST:PORT/v1 or https://..., without name, password, query and fragment"
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
            raise TransientError(f"the reply has more than {LARGEST_REPLY} bytes")
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
