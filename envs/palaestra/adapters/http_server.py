"""HTTP connections of a server of JSON: how large and slow a request may be, and how much is in work at once."""

from __future__ import annotations

import io
import ipaddress
import json
import logging
import re
import socket
import socketserver
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition
from typing import Any
from urllib.parse import urlsplit

from palaestra.core.files import printable

SMALL_BODY, BYTES_IN_WORK = 2**16, 2**27
"""Bytes of a body that never waits, and of all larger ones that are in work."""
LARGEST_OTHER = 2**20
"""Bytes of the body of a request for whose path nothing else is said."""
RETRY_AFTER_S = 5
"""What a client that was not answered for want of room is told to wait."""
POLL_S = 0.05
"""Time after which a server that is to stop does so."""

LOG = logging.getLogger(__name__)
LENGTH = re.compile("[0-9]{1,18}")
"""Value of a header Content-Length."""
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(;[^\r\n]*)?\r?\n")


class RequestError(Exception):
    """Why a request is not answered.

    Attributes:
        status: HTTP's number of the reason.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Room:
    """A number of things that are in work at a time; who asks for more waits."""

    def __init__(self, size: int, timeout_s: float) -> None:
        self._free, self._timeout_s, self._changed = size, timeout_s, Condition()

    @contextmanager
    def taken(self, count: int) -> Iterator[None]:
        """Waits until so many are free, and takes them for a block.

        Raises:
            RequestError: They are not free in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._free >= count, self._timeout_s):
                raise RequestError(503, f"too much is in work for {self._timeout_s:g} s: send it again later")
            self._free -= count
        try:
            yield
        finally:
            with self._changed:
                self._free += count
                self._changed.notify_all()


class HttpServer(ThreadingHTTPServer):
    """Threads that answer connections; knows the connections, to end them."""

    request_queue_size = 128
    allow_reuse_port = False

    def __init__(
        self,
        address: tuple[str, int],
        timeout_s: float,
        answer: Callable[[str, str, bytes], Iterator[str]],
        at_once: int,
        largest: Mapping[str, int],
    ) -> None:
        """Takes the port.

        Args:
            address: Host and port.
            timeout_s: Time in which a client must send a request and take its answer.
            answer: Gives the parts of the answer to a method, a path and a body.
            at_once: Requests with a body that are in work.
            largest: Bytes of bodies by path.

        Raises:
            OSError: The port is taken, or there is no such port or host.
        """
        (host, port), self.timeout_s, self.answer, self.largest = address, timeout_s, answer, largest
        self.requests, self.bytes = _Room(at_once, timeout_s), _Room(BYTES_IN_WORK, timeout_s)
        self._connections: set[Any] = set()
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise OSError(f"cannot listen at {host}:{port} ({error}): give another port, 0 for a free one") from error
        name, taken = self.server_address[:2]
        self.address = f"[{name!s}]:{taken}" if ":" in str(name) else f"{name!s}:{taken}"
        self.is_local = is_local(self.address)

    def server_bind(self) -> None:
        """Without the look-up of the host's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Notes the connection."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forgets the connection."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        """Ends all connections, whatever they wait for."""
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
    server: HttpServer  # pyright: ignore[reportIncompatibleVariableOverride]

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
        self._left_s = self.server.timeout_s
        try:
            length = self._body_length(path)
            with ExitStack() as held:
                if length > SMALL_BODY:
                    self._wait_for_room(length, held)
                body = self._read_body(length)
                self._check_sender()
                with self.server.requests.taken(1 if self.command == "POST" else 0):
                    self._send_parts(self.server.answer(self.command, path, body))
        except RequestError as error:
            self._send(error.status, json.dumps({"error": str(error)}))
        except OSError:  # the connection
            raise
        except Exception as error:
            LOG.exception("%s %s", self.command, path)
            self._send(500, json.dumps({"error": f"{type(error).__name__}: the server's log says more"}))

    def _wait_for_room(self, length: int, held: ExitStack) -> None:
        """Waits until a large body has room; from then on it has its own time.

        Raises:
            RequestError: There was none in time; the connection ends with the answer.
        """
        try:
            held.enter_context(self.server.bytes.taken(length))
        except RequestError:
            self.close_connection = True
            self._input.deadline = time.monotonic() + self.server.timeout_s
            self._skip(length)
            raise
        self._input.deadline = time.monotonic() + self.server.timeout_s

    def _send_parts(self, parts: Iterator[str]) -> None:
        """Sends an answer; in chunks where it is of several parts, of which two are in memory at a time."""
        part, following = next(parts), next(parts, None)
        if following is None or self.command == "HEAD":
            self._send(200, part)
            return
        is_chunked = self.request_version != "HTTP/1.0"
        self.close_connection = self.close_connection or not is_chunked  # whose answers end with the connection
        self._write(self._head(200, "Transfer-Encoding: chunked\r\n" if is_chunked else ""))
        try:
            while part is not None:
                self._write(f"{len(part):x}\r\n{part}\r\n" if is_chunked else part)
                part, following = following, None if following is None else next(parts, None)
        except OSError:
            raise
        except Exception:
            LOG.exception("%s", self.path)  # an answer without its end is none
            self.close_connection = True
            return
        self._write("0\r\n\r\n" if is_chunked else "")

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _handle

    def _body_length(self, path: str) -> int:
        """Bytes of the body, 0 where there is none.

        Raises:
            RequestError: It has no length, or is too large; the connection then ends with the answer.
        """
        lengths = self.headers.get_all("Content-Length", [])
        if not lengths and "Transfer-Encoding" not in self.headers:
            return 0
        end_after, self.close_connection = self.close_connection, True
        if len(lengths) != 1 or "Transfer-Encoding" in self.headers:
            if not lengths:
                self._skip_chunks()
            raise RequestError(411, "give the length of the body in one header Content-Length")
        if not LENGTH.fullmatch(lengths[0]):
            raise RequestError(400, f"Content-Length is a number of bytes, got {printable(lengths[0])}")
        length, most = int(lengths[0]), self.server.largest.get(path, LARGEST_OTHER)
        if length > most:
            self._skip(length)
            raise RequestError(413, f"the body has {lengths[0]} bytes: send at most {most}")
        self.close_connection = end_after
        return length

    def _skip(self, length: int) -> bool:
        """Reads so many bytes of a body: who is still sending would not read the answer. False if they do not come."""
        try:
            while length > 0 and (part := self.rfile.read1(min(length, SMALL_BODY))):
                length -= len(part)
        except TimeoutError as error:
            raise self._too_late() from error
        return length == 0

    def _skip_chunks(self) -> None:
        """Reads a chunked body to its end, or up to what is no chunk."""
        try:
            while match := CHUNK.fullmatch(self.rfile.readline(SMALL_BODY)):
                if not self._skip(int(match[1], 16)):
                    return
                if int(match[1], 16) == 0:
                    while self.rfile.readline(SMALL_BODY).strip():
                        pass
                    return
                self.rfile.readline(3)
        except TimeoutError as error:
            raise self._too_late() from error

    def _too_late(self) -> RequestError:
        self.close_connection = True
        return RequestError(408, f"the body did not come within {self.server.timeout_s:g} s")

    def _read_body(self, length: int) -> bytes:
        """The body, so that the next request of the connection starts behind it.

        Raises:
            RequestError: It does not come; the connection then ends with the answer.
        """
        try:
            body = self.rfile.read(length) if length else b""
        except TimeoutError as error:
            raise self._too_late() from error
        if len(body) < length:
            self.close_connection = True
            raise ConnectionAbortedError
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
        if len(hosts) != 1 or not is_local(hosts[0]):
            given = printable(", ".join(hosts))
            raise RequestError(403, f"this server answers at localhost alone, the header Host says {given}")

    def _send(self, status: int, content: str) -> None:
        retry = f"Retry-After: {RETRY_AFTER_S}\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
        head = self._head(status, f"{retry}Content-Length: {len(content)}\r\n")
        self._write(head if self.command == "HEAD" else head + content)

    def _head(self, status: int, headers: str) -> str:
        next_one = "close" if self.close_connection else "keep-alive"
        return (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
            f"{headers}Connection: {next_one}\r\n\r\n"
        )

    def _write(self, text: str) -> None:
        """Sends a text; the client has the time of a request to take all of an answer."""
        began = time.monotonic()
        self.connection.settimeout(max(self._left_s, POLL_S))
        self.wfile.write(text.encode("ascii"))
        self._left_s -= time.monotonic() - began

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no request that `_handle` takes, in JSON as all answers."""
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self.close_connection, self._left_s = True, self.server.timeout_s
        self._send(status, json.dumps({"error": message or status.phrase}))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a line a request takes longer than most answers."""


def is_local(host: str) -> bool:
    """Whether a host, with or without a port, is this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
