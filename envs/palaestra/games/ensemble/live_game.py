"""LLMEnsemble with models of Hugging Face: the factory and the file of prompts. The rules: `live_rules`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.files import FileError, printable, read_text
from palaestra.game import Game
from palaestra.games.ensemble import live_rules as rules
from palaestra.games.ensemble.ensemble_rules import MOST_DOMAINS, PARAMETERS, roles_of
from palaestra.games.ensemble.live_models import ModelsDigest, library_version, load_expert, tokens_of_all

LARGEST = 2**25
"""Bytes of a file of prompts."""


@dataclass(frozen=True)
class LiveTexts:
    """What pictures name.

    Attributes:
        prompts: The prompts.
        answers: One each.
        tokens: Bytes of the tokens of all vocabularies.
    """

    prompts: tuple[str, ...]
    answers: tuple[str, ...]
    tokens: tuple[bytes, ...]


def live_game(options: Any) -> Game:
    """The rules of LLMEnsemble for models of Hugging Face.

    Args:
        options: Those of `palaestra.games.ensemble.llm_ensemble.game`.

    Raises:
        ValueError: No such folder, or no prompts; says what to do.
        FileError: A damaged file of prompts; names file and line.
        ImportError: transformers is missing; says how to install it.
    """
    if options.prompts is None:
        raise ValueError('live= needs prompts=: give a file of lines {"prompt": .., "answer": ..}')
    asked, answers, domains = zip(*read_prompts(options.prompts), strict=True)
    tokens = tokens_of_all([load_expert(folder) for folder in options.live])
    experts, is_one = len(options.live), options.agents == "one"
    names, domain_count = rules.script_names(experts), max(domains) + 1
    return Game(
        name="LLMEnsemble",
        roles=roles_of(options.agents, experts, domain_count),
        state=rules.state_fields(experts),
        reset=rules.reset,
        command=rules.command_one if is_one else rules.command_experts,
        evaluate=rules.evaluate,
        physics="palaestra.games.ensemble.live_engine:LiveEngine",
        physics_options={"folders": options.live, "prompts": asked, "span_tokens": options.span_tokens},
        model_digest=ModelsDigest(options.live),
        engine_version=library_version,
        observe=rules.observe_one if is_one else rules.observe_experts,
        script=rules.script_one if is_one else rules.script_experts,
        scripts=names,
        default_opponent=names[-1],
        parameters=PARAMETERS[:1],
        horizon=options.spans,
        info=rules.info_fields(domain_count),
        end_reasons=rules.END_REASONS,
        world=rules.LiveWorld(
            options.spans,
            options.span_tokens,
            domain_count,
            np.array(domains, np.int64),
            *_joined([answer.encode() for answer in answers]),
            *_joined(tokens),
        ),
        determinism="per-platform",
        render="palaestra.games.ensemble.live_render:draw",
        render_text="palaestra.games.ensemble.live_render:write",
        render_fps=1.0,
        captions=LiveTexts(asked, answers, tokens),
    )


def _joined(texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Texts one behind the other, uint8, and where each begins, int64 ``[n + 1]``."""
    starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return np.frombuffer(b"".join(texts), np.uint8), starts


def read_prompts(path: str | Path) -> list[tuple[str, str, int]]:
    """Prompts, answers and domains of a file of JSON lines.

    Raises:
        FileError: A line that is none; names file and line.
    """
    found = list[tuple[str, str, int]]()
    for number, line in enumerate(read_text(path, LARGEST).splitlines(), 1):
        if line.strip():
            found.append(_prompt_of(f"{path}, line {number}", line))
    if not found:
        raise FileError(f'{path}: has no prompts: give lines {{"prompt": .., "answer": ..}}')
    return found


def _prompt_of(place: str, line: str) -> tuple[str, str, int]:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{place}: no JSON: {printable(error)}") from None
    if not isinstance(row, dict):
        raise FileError(f'{place}: no object: give {{"prompt": .., "answer": ..}}')
    for name in ("prompt", "answer"):
        if not isinstance(row.get(name), str) or not row[name]:
            raise FileError(f"{place}: {name!r} is {printable(row.get(name))}: give a text that is not empty")
    domain = row.get("domain", 0)
    if type(domain) is not int or not 0 <= domain < MOST_DOMAINS:
        raise FileError(f"{place}: 'domain' is {printable(domain)}: give a number from 0 to {MOST_DOMAINS - 1}")
    return row["prompt"], row["answer"], domain
