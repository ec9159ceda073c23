"""A chat endpoint for tests: it answers as a function says, and notes what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from palaestra.wrappers.transcript import text_env

Messages = list[dict[str, Any]]
Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]
"""Status, body (bytes as they are, all else as JSON), headers."""


def said(text: str | None, reason: str = "stop", usage: Any = None, **message: Any) -> Answer:
    """A reply."""
    choice = {"message": {"role": "assistant", "content": text, **message}, "finish_reason": reason}
    return 200, {"choices": [choice], "usage": usage}


def failing(answers: list[Answer], then: Callable[[Messages], Answer]) -> Callable[[Messages], Answer]:
    """Gives these answers first, one each."""
    return lambda messages: answers.pop(0) if answers else then(messages)


class Oracle:
    """Asks for each fact of a question's path, then gives the answer, which is wrong where the seed is odd.

    Attributes:
        turns: What it says of each question, by the first message.
    """

    def __init__(self, id: str, seeds: Sequence[int], with_tools: bool = False) -> None:
        env, self.with_tools, self.turns = text_env(id), with_tools, dict[str, list[tuple[str, str]]]()
        for seed in seeds:
            prompt, info = env.reset(seed=seed)
            searches = [("search", f"{relation} of {subject}") for subject, relation, _ in info["path"]]
            self.turns[prompt] = [*searches, ("answer", info["answers"][0] if seed % 2 == 0 else "nobody")]

    def __call__(self, messages: Messages) -> Answer:
        turn = sum(message["role"] == "assistant" for message in messages)
        verb, text = self.turns[messages[1]["content"]][turn]
        if not self.with_tools:
            return said(f"<{verb}>{text}</{verb}>", usage={"prompt_tokens": 100, "completion_tokens": 10})
        function = {"name": verb, "arguments": json.dumps({"query": text})}
        return said(None, tool_calls=[{"id": f"call_{turn}", "type": "function", "function": function}])


class Server(ThreadingHTTPServer):
    """Its threads end with the test."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: what can fail here is a client that did not wait for its reply."""


class Stub:
    """An endpoint; ``asked`` has the bodies of the requests, ``headers`` and ``times_s`` what came with them."""

    def __init__(self, answer: Callable[[Messages], Answer]) -> None:
        self.asked, self.headers, self.times_s = list[dict[str, Any]](), list[dict[str, str]](), list[float]()
        self.now, self.most, self.lock = 0, 0, threading.Lock()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with stub.lock:
                    stub.asked.append(body | {"path": self.path})
                    stub.headers.append(dict(self.headers))
                    stub.times_s.append(time.monotonic())
                    stub.now += 1
                    stub.most = max(stub.most, stub.now)
                status, content, *headers = answer(body["messages"])
                with stub.lock:
                    stub.now -= 1
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in (headers[0] if headers else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
