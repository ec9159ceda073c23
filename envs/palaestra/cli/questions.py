"""Writes the questions of an environment as a dataset: one JSON object a line, or Parquet, as verl and TRL read it.

A row's seed asks its question again: gymnasium.make(data_source, **extra_info["keywords"]).reset(seed=seed). Where
each match draws a world of its own, seeds follow each other, from --seed on for train, 2**51 higher for validation and
2**52 higher for test, so that no two splits share one. Elsewhere each question of the split is written once.

Which factories ask questions, and the module that finds their seeds, says `palaestra.game.Family`. Their infos hold
``question``, ``answers`` and ``path``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import IO, Any

from palaestra import registry
from palaestra.cli.common import add_id, add_keywords, keywords_of, natural, positive_count
from palaestra.cli.progress_bar import Progress
from palaestra.console import find_id
from palaestra.core.contract import factories
from palaestra.core.files import write_atomically

ABOUT = "the questions of an environment as a dataset for verl and TRL"
EXAMPLE = "palaestra questions SearchQA-2Hop --split train -n 10000 -o train.jsonl"

FIRST_SEEDS = {"train": 0, "validation": 2**51, "test": 2**52}
"""Below 2**53, so that readers that take numbers for doubles keep them, and beyond what training runs count to."""
MOST_SEEDS = 2**51
LANES = 512


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    add_id(parser)
    parser.add_argument("--split", choices=FIRST_SEEDS, default="train", help="part of the questions (default train)")
    parser.add_argument("-n", type=positive_count, default=10_000, help="most questions (default 10000)")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="file to write, - for stdout")
    parser.add_argument("--seed", type=natural, default=0, help="the first of the split's seeds (default 0)")
    parser.add_argument(
        "--format", choices=("jsonl", "parquet"), default="jsonl", help="parquet needs pyarrow (default jsonl)"
    )
    add_keywords(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: The environment asks no questions, a keyword that this command sets, or a seed of another split.
        ImportError: pyarrow is not installed.
    """
    write = FORMATS[args.format]()
    id, keywords = find_id(args.id), keywords_of(args)
    source = _source_of(id)
    for name, instead in (("form", "this command asks in text"), ("split", "say --split")):
        if name in keywords:
            raise ValueError(f"--set {name}={keywords[name]}: {instead}")
    if args.seed + args.n > MOST_SEEDS:
        raise ValueError(f"--seed {args.seed} and -n {args.n} reach into another split: their sum is at most 2**51")
    keywords = {"form": "text", **keywords}
    keywords |= source.split_keywords({**registry.row(id).kwargs, **keywords}, args.split)
    with closing(registry.make_vec(id, min(args.n, LANES), **keywords)) as env:
        seeds = source.find_seeds(env.sim, args.n, FIRST_SEEDS[args.split] + args.seed)
        with Progress("questions", len(seeds)) as progress:
            about = {"id": id, "ability": source.ABILITY, "split": args.split, "keywords": keywords}
            rows = _rows(env, seeds, about, progress)
            if args.output == "-":
                write(rows, sys.stdout.buffer)
            else:
                write_atomically(args.output, lambda file: write(rows, file))
    if len(seeds) < args.n:
        print(f"{id}: split={args.split} has fewer questions, all {len(seeds)} are written", file=sys.stderr)
    return 0


def _source_of(id: str) -> Any:
    """The module that knows the questions of an id.

    Raises:
        ValueError: It asks none.
    """
    asking = registry.offers("questions")
    factory = factories.load(registry.row(id).factory)
    for named, module in asking.items():
        if factories.load(named) is factory:
            return importlib.import_module(module)
    ids = ", ".join(row.id for row in registry.ROWS.values() if row.factory in asking)
    raise ValueError(f"{id} asks no questions: name one of {ids}")


Row = dict[str, Any]
Write = Callable[[Iterable[Row], IO[bytes]], None]


def _jsonl() -> Write:
    return lambda rows, file: file.writelines(f"{json.dumps(row)}\n".encode() for row in rows)


def _parquet() -> Write:
    """Parquet, by a library.

    Raises:
        ImportError: It is not installed.
    """
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError("--format parquet needs pyarrow, which is not installed: pip install pyarrow") from error
    return lambda rows, file: parquet.write_table(pyarrow.Table.from_pylist(list(rows)), file)


FORMATS: dict[str, Callable[[], Write]] = {"jsonl": _jsonl, "parquet": _parquet}


def _rows(env: Any, seeds: Sequence[int], about: dict[str, Any], progress: Progress) -> Iterator[Row]:
    """The dataset's rows."""
    lanes = env.num_envs
    for start in range(0, len(seeds), lanes):
        some = seeds[start : start + lanes]
        prompts, info = env.reset(seed=[*some, *[some[-1]] * (lanes - len(some))])
        for k, seed in enumerate(some):
            told = {name: info[name][k] for name in ("question", "answers", "path")}
            yield _row(start + k, seed, prompts[k], told, about)
        progress.update(start + len(some))


def _row(index: int, seed: int, prompt: str, told: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    """One question: the fields of verl's datasets, and those that TRL hands to reward functions and environments."""
    return {
        "data_source": about["id"],
        "prompt": [{"role": "user", "content": prompt}],
        "ability": about["ability"],
        "reward_model": {"style": "rule", "ground_truth": {"target": told["answers"]}},
        "extra_info": {
            "index": index,
            "split": about["split"],
            "seed": seed,
            "question": told["question"],
            "path": told["path"],
            "keywords": about["keywords"],
            "tools_kwargs": {about["ability"]: {"create_kwargs": {"seed": seed}}},  # of the tool of this name in verl
        },
        "seed": seed,
        "question": told["question"],
        "answers": told["answers"],
    }
