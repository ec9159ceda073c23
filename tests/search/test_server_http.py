"""The HTTP of the server: requests that are no requests, too large or too slow, and answers that nobody reads."""

import http.client
import json
import socket
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from search.server_client import Client, Connect

from palaestra.adapters import http_server
from palaestra.adapters.retrieval_server import Server
from palaestra.games.search import Index


def test_health_tells_what_there_is(client: Client):
    expected = {"status": "ok", "passages": 4, "worlds": None}
    assert client.send("GET", "/health?verbose=1") == (200, expected)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "GET", "OPTIONS", "BREW"])
def test_a_wrong_method_is_refused(client: Client, method: str):
    status, answer = client.send(method, "/retrieve")
    assert status == 405
    assert method in answer["error"]


def test_an_unknown_path_is_refused_with_those_there_are(client: Client):
    assert client.refusal(404, "/search", {}) == "no path '/search': there are /health, /retrieve"
    assert "no path '/reset'" in client.refusal(404, "/reset", {})


def test_head_is_answered_without_a_body(client: Client):
    answer = client.raw(b"HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert answer.endswith(b"\r\n\r\n")


def test_a_body_that_is_too_large_is_refused_though_it_is_still_sent(client: Client):
    assert "send at most 33554432" in client.refusal(413, "/retrieve", b"x" * (2**25 + 1))
    assert "send at most 1048576" in client.refusal(413, "/nowhere", b"x" * (8 * 2**20))
    assert client.refusal(400, "/retrieve", b"x" * 2**20).startswith("the body is no JSON")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 411),
        (b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 411),
        (b"Content-Length: -2\r\n\r\n{}", 400),
        (b"Content-Length: +2\r\n\r\n{}", 400),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}", 400),
        (b"".join(b"X%d: x\r\n" % k for k in range(200)) + b"\r\n", 431),
    ],
)
def test_a_body_without_a_plain_length_ends_the_connection(client: Client, headers: bytes, status: int):
    answer = client.raw(b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\n" + headers)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nConnection: close\r\n" in answer
    assert b'{"error": ' in answer


def test_a_body_of_a_get_is_not_read_as_the_next_request(client: Client):
    inner = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(inner)
    answer = client.raw(head + inner)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b'"ok"' in answer


@pytest.mark.parametrize("host", ["localhost", "localhost:80", "127.0.0.1", "127.9.9.9:1", "[::1]:8000", "LOCALHOST"])
def test_a_request_to_this_machine_is_answered(client: Client, host: str):
    assert client.send("GET", "/health", Host=host)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "10.0.0.1", "", "[::1"]
)
def test_a_name_that_was_bound_to_this_machine_is_refused(client: Client, host: str):
    assert "the header Host says" in client.refusal(403, "/retrieve", {"query": "cat"}, Host=host)


def test_a_request_without_a_host_is_refused(client: Client):
    assert client.raw(b"GET /health HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 403 ")


def test_a_server_of_all_addresses_takes_any_host_but_no_web_page(index: Index, connect: Connect):
    with Server(index=index, host="0.0.0.0", port=0) as server:
        client = connect(server)
        assert client.send("GET", "/health", Host="training.example")[0] == 200
        assert "web pages" in client.refusal(403, "/retrieve", {"query": "cat"}, Origin="http://training.example")


@pytest.fixture
def hasty(index: Index, connect: Connect) -> Iterator[Client]:
    with Server(index=index, port=0, timeout_s=0.2) as server:
        yield connect(server)


def drip(client: Client, request: bytes) -> tuple[bytes, float]:
    """Sends a request one byte each 20 ms; the answer, and when the server had enough."""
    start = time.monotonic()
    with socket.create_connection((client.host, client.port), timeout=10) as connection, suppress(ConnectionError):
        for k in range(len(request)):
            connection.sendall(request[k : k + 1])
            connection.settimeout(0.02)
            with suppress(TimeoutError):
                return connection.recv(65536), time.monotonic() - start
    return b"", time.monotonic() - start


@pytest.mark.parametrize("request_", [b"G" * 150, b"GET / HTTP/1.1\r\nA: " + b"x" * 150])
def test_a_request_that_comes_byte_by_byte_runs_out_of_time(hasty: Client, request_: bytes):
    answer, seconds = drip(hasty, request_)
    assert answer == b""
    assert seconds < 1.0


def test_a_body_that_comes_byte_by_byte_runs_out_of_time(hasty: Client):
    head = b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
    assert hasty.raw(head + b"{").startswith(b"HTTP/1.1 408 ")


def test_an_idle_connection_ends(hasty: Client):
    assert hasty.raw(b"") == b""


def test_leaving_a_block_frees_the_port_and_ends_connections(index: Index, connect: Connect):
    with Server(index=index, port=0) as server:
        client = connect(server)
        assert client.send("GET", "/health")[0] == 200
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        client.send("GET", "/health")
    with Server(index=index, port=client.port) as server:
        assert connect(server).send("GET", "/health")[0] == 200
    server.close()


def test_a_server_that_cannot_be_is_refused(index: Index, corpus: Server, connect: Connect):
    with pytest.raises(ValueError, match="nothing to serve"):
        Server()
    with pytest.raises(OSError, match=r"cannot listen at 127\.0\.0\.1:\d+ \(.*\): give another port"):
        Server(index=index, port=connect(corpus).port)
    with pytest.raises(OSError, match="cannot listen at"):
        Server(index=index, port=70000)


def test_a_client_of_http_1_0_reads_a_long_answer_to_its_end(client: Client):
    body = json.dumps({"queries": ["cat"] * 2000, "topk": 3}).encode()
    head = b"POST /retrieve HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    told, answer = client.raw(head + body).split(b"\r\n\r\n", 1)
    assert b"chunked" not in told
    assert len(json.loads(answer)["result"]) == 2000


@pytest.mark.check
def test_answers_that_nobody_reads_take_little_memory(connect: Connect):
    """Sixteen clients ask for 40 MB each and read nothing."""
    index = Index([f"cat {k} {'x' * 100_000}" for k in range(4)])
    body = json.dumps({"queries": ["cat"] * 100, "topk": 4}).encode()
    head = b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    with ExitStack() as stack:
        server = stack.enter_context(Server(index=index, port=0))
        first = connect(server)
        tracemalloc.start()
        stack.callback(tracemalloc.stop)
        for _ in range(16):
            connection = stack.enter_context(socket.create_connection((first.host, first.port), timeout=10))
            connection.sendall(head + body)
        assert len(first.post("/retrieve", queries=["cat"], topk=4)["result"][0]) == 4
        time.sleep(0.1)
        assert tracemalloc.get_traced_memory()[1] < 16 * 3 * 2**20


@pytest.mark.check
def test_large_bodies_wait_for_each_other_and_small_ones_do_not(
    index: Index, connect: Connect, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(http_server, "BYTES_IN_WORK", 150_000)
    with Server(index=index, port=0, timeout_s=0.5) as server:
        first, second = connect(server), connect(server)
        head = b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
        with socket.create_connection((first.host, first.port), timeout=10) as slow:
            slow.sendall(head)
            time.sleep(0.1)
            assert second.send("POST", "/retrieve", {"query": "cat"})[0] == 200
            assert second.send("POST", "/retrieve", b'{"query": "cat"}' + b" " * 99_984)[0] in (200, 503)
            assert "send it again later" in second.refusal(503, "/retrieve", b" " * (8 * 2**20))
            assert second.told["Retry-After"] == "5"
        assert second.send("POST", "/retrieve", b'{"query": "cat"}' + b" " * 99_984)[0] == 200


def test_a_chunked_body_is_refused_when_all_of_it_was_sent(client: Client):
    chunk = b"100000\r\n" + b"x" * 2**20 + b"\r\n"
    with socket.create_connection((client.host, client.port), timeout=10) as connection:
        connection.sendall(b"POST /retrieve HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(16):  # more than the buffers of a connection hold
            connection.sendall(chunk)
        connection.sendall(b"0\r\nx: y\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 411 ")
    assert answer.endswith(b'{"error": "give the length of the body in one header Content-Length"}')
