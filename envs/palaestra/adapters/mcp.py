"""A match as a server of the Model Context Protocol, for any agent that speaks it.

    palaestra serve SearchQA-2Hop --mcp 7 --set max_turns=6

speaks MCP on its standard input and output, as the configurations of agents name servers (``command`` and ``args``). A
process is the match of an id and a seed: its tools are ``question``, ``search`` and ``answer``. Result fields
``_meta`` hold ``reward``, ``return`` and ``done``, which clients see and models do not.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

from palaestra.adapters.text_session import TextSession
from palaestra.game import Importing

with Importing("mcp", "palaestra.adapters.mcp needs mcp 2 or later, which is not installed: pip install mcp"):
    from mcp.server.mcpserver import MCPServer
    from mcp.types import CallToolResult, TextContent


def make_server(id: str, seed: int | None = None, **keywords: Any) -> MCPServer:
    """Makes the server of one match.

    Args:
        id: See `palaestra.wrappers.transcript.text_env`, as for ``keywords``.
        seed: Of the match.
        **keywords: Of the environment.

    Returns:
        A server of the package mcp: ``server.run()`` speaks on standard input and output.
    """
    session = TextSession(id, **keywords)
    session.reset(seed)
    server = MCPServer("palaestra", instructions="Ask for the question, search for the facts, then answer it.")

    def told(text: str) -> CallToolResult:
        meta = {"reward": session.reward, "return": session.total, "done": session.is_over}
        return CallToolResult(content=[TextContent(type="text", text=text)], _meta=meta)

    def question() -> CallToolResult:
        """Tells the question to answer."""
        return told(session.question)

    def search(query: str) -> CallToolResult:
        """Searches the passages for a query."""
        return told(session.search(query))

    def answer(text: str) -> CallToolResult:
        """Answers the question with the answer alone, without a sentence around it. Nothing can be done after it."""
        return told(session.answer(text))

    for tool in (question, search, answer):
        server.add_tool(tool)
    return server
