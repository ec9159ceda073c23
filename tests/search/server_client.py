"""A client of the retrieval server, for its tests."""

import http.client
import json
import socket
from collections.abc import Callable
from typing import Any

from palaestra.adapters.retrieval_server import Server

TITLES = ["Cats", "Dogs", '"Heroes"', "Empty"]
TEXTS = ["A cat sat on the mat.", "Dogs bark at a cat,\nat night \u2014 \U0001f415.", "A song about a cat.", ""]


class Client:
    """One connection to a server.

    Attributes:
        told: Headers of the last answer.
    """

    told: http.client.HTTPMessage

    def __init__(self, server: Server) -> None:
        self.host, port = server.address.removeprefix("http://").rsplit(":", 1)
        self.port = int(port)
        self.connection = http.client.HTTPConnection(self.host, self.port, timeout=10)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        self.connection.request(method, path, content, {name.replace("_", "-"): text for name, text in headers.items()})
        answer = self.connection.getresponse()
        self.told = answer.headers
        assert answer.headers["Content-Type"] == "application/json"
        assert not [name for name in answer.headers if name.startswith("Access-Control")]
        return answer.status, json.loads(answer.read())

    def post(self, path: str, **body: Any) -> Any:
        status, answer = self.send("POST", path, body)
        assert status == 200, answer
        return answer

    def refusal(self, status: int, path: str, body: Any, **headers: str) -> str:
        given, answer = self.send("POST", path, body, **headers)
        assert given == status, answer
        assert answer.keys() == {"error"}
        return answer["error"]

    def raw(self, request: bytes) -> bytes:
        """All that is answered to these bytes until the server ends the connection."""
        with socket.create_connection((self.host, self.port), timeout=10) as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))


Connect = Callable[[Server], Client]
