"""Serves the search in a corpus, or in the worlds of an environment, over HTTP: JSON for programs in any language.

A file of passages, the folder of a saved index, or an id with a fixed world is served by /retrieve, as Search-R1 and
its relatives ask. An id whose matches draw worlds of their own is served likewise: a request names the "seed" of each
query, which stands in the rows of palaestra questions. GET /health tells what is there. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from palaestra import registry
from palaestra.adapters.retrieval_server import Searchable, Server, Worlds
from palaestra.cli.common import add_keywords, keywords_of, natural
from palaestra.console import find_id
from palaestra.core.contract import factories
from palaestra.core.files import escaped
from palaestra.wrappers.transcript import has_text_form

ABOUT = "serve the search in a corpus over HTTP"
EXAMPLE = "palaestra serve SearchQA-Fictional"
LANES = 64
"""Worlds that are searched at the same time."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    parser.add_argument(
        "source", metavar="ID|CORPUS", help="id of an environment, a file of passages, or the folder of a saved index"
    )
    parser.add_argument(
        "--mcp", type=natural, metavar="SEED", help="speak MCP on standard input and output, as the match of this seed"
    )
    parser.add_argument("--port", type=natural, default=8000, help="0 takes a free one (default 8000)")
    parser.add_argument(
        "--host", default="127.0.0.1", help="0.0.0.0 lets other machines in, without a password (default 127.0.0.1)"
    )
    add_keywords(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: The source is nothing that can be served.
        OSError: The port is taken.
    """
    keywords = keywords_of(args)
    id = _find_environment(args.source)
    if args.mcp is not None:
        return _speak_mcp(id, args.mcp, keywords)
    if id is None and keywords:
        raise ValueError(f"--set is for environments, and {args.source} is a corpus")
    codec = None if id is None else codec_of(id, keywords)
    index = read_index(Path(args.source)) if id is None else getattr(codec, "index", None)
    worlds = worlds_of(id, keywords) if id is not None and index is None else None
    refusal = getattr(codec, "refusal", None)
    server = Server(index, worlds, refusal=refusal, host=args.host, port=args.port)
    seed = "" if worlds is None else ', "seed": 0'
    request = f"""/retrieve -d '{{"queries": ["a question"]{seed}}}'"""
    with suppress(KeyboardInterrupt):
        print(f"{id or escaped(args.source)} at {server.address}: curl {server.address}{request}", flush=True)
        server.serve()
    return 0


def _speak_mcp(id: str | None, seed: int, keywords: Mapping[str, Any]) -> int:
    """Serves one match by the Model Context Protocol.

    Raises:
        ValueError: There is no id.
        ImportError: mcp is not installed.
    """
    if id is None:
        raise ValueError("--mcp serves a match: name an environment")
    from palaestra.adapters.mcp import make_server

    with suppress(KeyboardInterrupt):
        make_server(id, seed, **keywords).run()
    return 0


def codec_of(id: str, keywords: Mapping[str, Any]) -> Any:
    """The text of an environment, whose ``index`` is what it searches; None where it has no text form."""
    if not has_text_form(id):
        return None
    return registry.make_game(id, **{**keywords, "form": "text"})[0].codecs["text"]


def worlds_of(id: str, keywords: Mapping[str, Any]) -> Worlds:
    """The worlds that the matches of an environment draw.

    Raises:
        ValueError: Nothing is searched there; says what plays it over a network.
    """
    factory: Any = registry.row(id).factory if id in registry.ROWS else None
    module = registry.offers("questions").get(factory)
    search = getattr(importlib.import_module(module), "WorldSearch", None) if module else None
    if search is None:
        raise ValueError(
            f"{id} has no passages to search. Episodes over a network are played by OpenEnv's server, for text: "
            "palaestra.adapters.openenv"
        )
    return search(registry.make_batch(id, LANES, **{**keywords, "form": "text", "autoreset_mode": "off"}))


def read_index(path: Path) -> Searchable:
    """The index of a corpus, read by the first family that knows of such.

    Raises:
        ValueError: No family does.
        FileError: It cannot be read; names the file.
    """
    for family in registry.FAMILIES.values():
        if family.corpus is not None:
            return factories.load(family.corpus)(path)
    raise ValueError("no family reads a corpus")


def _find_environment(source: str) -> str | None:
    """The id that a source names; None where it is a file or a folder."""
    try:
        return find_id(source)
    except (KeyError, ImportError) as error:
        if Path(source).exists():
            return None
        raise ValueError(f"{error.args[0]}, and no file or folder of this name") from error
