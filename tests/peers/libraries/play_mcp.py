# pyright: reportMissingImports=false
"""MCP: matches as servers, in this process and over the standard input and output of another one."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import mcp
from peers.libraries.search_turns import ID, MATCHES, check_returns, played_alone
from peers.libraries.trials import main, trial

from palaestra.adapters.mcp import make_server
from palaestra.wrappers.transcript import text_env


def called(turn: str) -> tuple[str, dict[str, str]]:
    """The call of a tool that a turn is."""
    tool = turn[1 : turn.index(">")]
    text = turn[turn.index(">") + 1 : turn.rindex("</")]
    return tool, {{"search": "query", "answer": "text"}[tool]: text}


async def played(server: Any, seed: int) -> float:
    """The return of a match that a client plays; all that is told is what the environment says alone."""
    said, texts, _ = played_alone(seed)
    async with mcp.Client(server) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["question", "search", "answer"]
        asked = await client.call_tool("question", {})
        assert asked.content[0].text == text_env(ID).reset(seed=seed)[1]["question"]
        result = asked
        for turn, text in zip(said, texts[1:], strict=True):
            assert not result.meta["done"]
            result = await client.call_tool(*called(turn))
            assert (result.is_error, result.content[0].text) == (False, text)
        assert result.meta["done"]
        refused = await client.call_tool("answer", {"text": "again"})
        assert refused.is_error
        assert "the episode is over" in refused.content[0].text
        return result.meta["return"]


@trial("adapter", f"adapters.mcp: {MATCHES} matches, a server each")
def _() -> str:
    returns = [asyncio.run(played(make_server(ID, seed), seed)) for seed in range(MATCHES)]
    return check_returns(returns, [played_alone(seed)[2] for seed in range(MATCHES)])


@trial("adapter", "palaestra serve --mcp: a match over standard input and output")
def _() -> None:
    arguments = ["-m", "palaestra", "serve", "SearchQA-2Hop", "--mcp", "4"]
    started = mcp.StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ})
    server = mcp.stdio_client(started)
    assert asyncio.run(played(server, 4)) == played_alone(4)[2]


if __name__ == "__main__":
    main("mcp")
