# pyright: reportMissingImports=false
"""verifiers: text search as one of its environments, played by a script behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import ModuleType
from typing import Any

import httpx
import verifiers.v1 as vf
from peers.libraries.search_turns import ID, MATCHES, check_returns, played_alone
from peers.libraries.trials import main, trial

from palaestra.adapters.verifiers import TextEnv, TextTaskset
from palaestra.wrappers.transcript import text_env


class ChatHarness(vf.Harness[vf.HarnessConfig]):
    """A chat in this process: verifiers' own, ``null``, installs packages and starts a process for each reply."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(  # the arguments are verifiers'
        self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, mcp_urls: Any, data: vf.TaskData
    ) -> vf.ProgramResult:
        prompt = data.prompt
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt or []
        wire = [m if isinstance(m, dict) else {"role": m.role, "content": m.content} for m in messages]
        async with httpx.AsyncClient(timeout=60) as client:
            body = {"model": ctx.model, "messages": wire}
            headers = {"Authorization": f"Bearer {secret}"}
            answer = await client.post(f"{endpoint}/chat/completions", json=body, headers=headers)
        return vf.ProgramResult(exit_code=int(answer.status_code != 200), stdout="", stderr=answer.text)


def module(name: str, *classes: type) -> None:
    """Puts a module of one's own where verifiers looks for it."""
    made = ModuleType(name)
    vars(made).update({kind.__name__: kind for kind in classes}, __all__=[kind.__name__ for kind in classes])
    sys.modules[name] = made


@contextmanager
def endpoint(turns: dict[str, list[str]]) -> Any:
    """Serves a model that answers each prompt by its turns, one after the other; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
            said = sum(message["role"] == "assistant" for message in asked)
            text = turns[next(m["content"] for m in asked if m["role"] == "user")][said]
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            head = {"id": "x", "object": "chat.completion", "created": 0, "model": "script"}
            body = json.dumps({**head, "choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()


async def play(config: dict[str, Any], url: str) -> list[Any]:
    """The episodes of all tasks of an environment."""
    env = vf.load_environment(vf.resolve_env_config(config))
    context = vf.ModelContext(model="script", client=vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY"))
    async with env.serving():
        return [await env.run_episode(task, context) for task in env.taskset]


@trial("adapter", f"adapters.verifiers: {MATCHES} matches, one a task")
def _() -> str:
    module("search_qa", TextEnv, TextTaskset)
    module("chat_harness", ChatHarness)
    alone = [played_alone(seed) for seed in range(MATCHES)]
    turns = {text_env(ID).reset(seed=seed)[0]: said for seed, (said, _, _) in enumerate(alone)}
    assert len(turns) == MATCHES
    player = {"harness": {"id": "chat_harness"}, "runtime": {"type": "subprocess"}}
    taskset = {"id": "search_qa", "game": "SearchQA-2Hop", "matches": MATCHES}
    with endpoint(turns) as url:
        episodes = asyncio.run(play({"taskset": taskset, "player": player}, url))
    assert all(episode.ok for episode in episodes), [episode.errors for episode in episodes if not episode.ok][:1]
    for episode, (said, _, total) in zip(episodes, alone, strict=True):
        [trace] = episode.traces
        assert trace.num_turns == len(said)
        assert trace.metrics["exact_match"] == total, trace.metrics
    return check_returns([episode.traces[0].reward for episode in episodes], [total for _, _, total in alone])


if __name__ == "__main__":
    main("verifiers")
