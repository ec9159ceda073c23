"""Evaluates a language model behind an OpenAI-compatible chat endpoint on an environment that is played as text.

    python -m palaestra_baselines.chat_eval --url http://localhost:8000/v1 --model Qwen/Qwen3-8B

A match is a conversation: a short system message (`SYSTEM`), the first observation as the user's message, each reply as
an action, and what the environment answers as the next user message. Match k has the seed ``--seed`` + k. Matches are
played side by side, one request each at a time to ``URL/chat/completions``.

Every finished match is a line of JSON, appended at once: ``seed``, ``exact_match``, ``f1``, ``reward``, ``turns``,
``malformed`` (turns that said nothing), ``cut`` (replies that ended at ``--max-tokens``), ``end`` (why it ended),
``prompt_tokens`` and ``completion_tokens`` (null where the endpoint does not tell), ``seconds`` and ``messages``. What
the environment does not measure is null. The first line of the file has the settings. The same command goes on where
it was stopped; more ``--matches``, another ``--url`` and other limits may be given then, other settings are refused.

Too many requests (429, whose Retry-After is kept), failures of the endpoint (500 and more), lost connections, replies
that are late or are none are tried again, each time after twice as long a wait. A match that fails nevertheless has no
result, is listed, and is played again by the next call. Two ends are results, as the model gave no answer:
``context_overflow``, where the conversation outgrows the model's context, and ``refused_turn``, where the environment
does not understand a text. An endpoint that cannot be reached, or refuses the key or the model, ends the run.

The exit code is 0 when all matches have a result, 1 when not, 130 when interrupted. The key is never written.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any, Self

import numpy as np

from palaestra import __version__
from palaestra.cli import one_line
from palaestra.cli.progress_bar import Progress
from palaestra.cli.typed_arguments import read_arguments
from palaestra.console import find_id, print_table
from palaestra.core.files import FileError, escaped
from palaestra.core.files.jsonable import jsonable
from palaestra.core.rng import check_seed
from palaestra.evaluation import wilson_interval
from palaestra.wrappers.transcript import Messages, text_env
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.chat_endpoint import (
    ContextOverflowError,
    Endpoint,
    EndpointError,
    MatchFailedError,
    Reply,
    StoppedError,
)
from palaestra_baselines.common.run_folder import check_numbers, differences, lock_file

SYSTEM = "Each of your messages is one turn in an environment, which answers it. Do what its first message says."
"""The system message of every match."""
POLL_S = 0.2
"""Time after which Ctrl-C is noticed where waiting for a queue cannot be interrupted."""
MOST_LISTED = 10
"""Failed matches that are listed."""
OVERFLOW, REFUSED = "context_overflow", "refused_turn"
"""Ends that the rules of no environment know; see the module."""
MARK = "chat_eval"
"""First member of the first line of a file of results."""


@dataclass
class Args:
    """Arguments.

    Attributes:
        url: Of the endpoint, up to the version: ``http://localhost:8000/v1``.
        model: Name of the model there.
        env_id: Environment that can be played as text.
        options: Keywords of the environment, ``name=value`` each.
        matches: Matches in all, those of earlier calls included.
        concurrency: Matches at the same time.
        temperature: Of sampling.
        max_tokens: Most tokens of a reply.
        seed: Of the first match; the next ones count up.
        timeout_s: Most seconds from a request to the end of its reply.
        retries: How often a request is repeated.
        file: Results (default: runs/chat/MODEL.jsonl).
        api_key_from: Name of the environment variable that holds the key; without it no key is sent.
    """

    url: str
    model: str
    env_id: str = "palaestra/SearchQA-2Hop-v1"
    options: tuple[str, ...] = ()
    matches: int = 100
    concurrency: int = 8
    temperature: float = 0.0
    max_tokens: int = 256
    seed: int = 0
    timeout_s: float = 120.0
    retries: int = 3
    file: Path | None = None
    api_key_from: str | None = None

    @property
    def path(self) -> Path:
        """Where the results are."""
        return self.file or Path("runs", "chat", f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', self.model)}.jsonl")

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the results, as JSON has it."""
        names = ("env_id", "model", "temperature", "max_tokens", "seed")
        options = sorted(self.options)
        return {**{name: getattr(self, name) for name in names}, "options": options, "palaestra": __version__}

    def check(self) -> None:
        """Looks at the numbers.

        Raises:
            ValueError: One is too small, not finite, or the last seed too large; names the option.
        """
        check_numbers(asdict(self), ("seed", "temperature", "retries"), ())
        check_seed(self.seed + self.matches - 1)


# -------------------------------------------------------------------------------------------------------- the matches


def make_env(args: Args) -> Messages:
    """An environment whose observations are chat messages.

    Raises:
        ValueError: It cannot be played as text; says what to name instead.
        KeyError: There is no such id.
    """
    try:
        return Messages(text_env(args.env_id, **keywords(args.options)), SYSTEM)
    except TypeError as error:
        raise ValueError(
            f"{args.env_id} is not played as text: name a SearchQA environment (palaestra list shows them), or, where "
            f"palaestra info {args.env_id} shows a codec of text, --options codec=NAME ({error})"
        ) from error


def play_match(env: Messages, seed: int, endpoint: Endpoint) -> dict[str, Any]:
    """Plays one match to its end.

    Args:
        env: As `make_env` makes it.
        seed: Of the match.
        endpoint: Who is asked for turns.

    Returns:
        A line of the file of results; see the module.

    Raises:
        MatchFailedError, EndpointError, StoppedError: See `Endpoint.complete`. The first is raised, too, where the
            first message is too long already.
    """
    began_s, replies = time.monotonic(), list[Reply]()
    messages, info = env.reset(seed=seed)
    reward, terminated, truncated, end = 0.0, False, False, ""
    while not (terminated or truncated):
        try:
            reply = endpoint.complete(messages)
        except ContextOverflowError as error:
            if not replies:
                raise MatchFailedError(f"the first message and --max-tokens do not fit: {error}") from error
            end = OVERFLOW
            break
        replies.append(reply)
        try:
            messages, paid, terminated, truncated, info = env.step(reply.text)
        except ValueError:  # how environments refuse a text that they do not understand
            messages, end = (*messages, {"role": "assistant", "content": reply.text}), REFUSED
            break
        reward += float(paid)
    measured = {name: jsonable(info.get(name)) for name in ("exact_match", "f1", "malformed")}
    return {
        "seed": seed,
        "exact_match": measured["exact_match"],
        "f1": measured["f1"],
        "reward": reward,
        "turns": len(replies),
        "malformed": measured["malformed"],
        "cut": sum(reply.is_cut for reply in replies),
        "end": end or _end_reason(env, info, terminated),
        "prompt_tokens": _sum([reply.prompt_tokens for reply in replies]),
        "completion_tokens": _sum([reply.completion_tokens for reply in replies]),
        "seconds": round(time.monotonic() - began_s, 3),
        "messages": list(messages),
    }


def _end_reason(env: Messages, info: Mapping[str, Any], terminated: bool) -> str:
    """The name that the rules give to the end of a match."""
    sim = getattr(env.unwrapped, "sim", None)
    if sim is None or "end_reason" not in info:
        return "terminated" if terminated else "truncated"
    return sim.game.end_reason(int(info["end_reason"]))


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def play_matches(
    envs: Sequence[Messages], seeds: Sequence[int], endpoint: Endpoint
) -> Generator[tuple[int, dict[str, Any] | MatchFailedError]]:
    """Plays matches side by side, each environment in a thread of its own, and closes the environments.

    Yields:
        Seed, and the line of the match or why it has none, in the order in which they end. When the generator is closed
        before its end, no more requests are sent, and those on their way are forgotten.

    Raises:
        EndpointError: See `Endpoint.complete`.
    """
    waiting, done = SimpleQueue[int](), SimpleQueue[tuple[int, Any]]()
    for seed in seeds:
        waiting.put(seed)

    def work(env: Messages) -> None:
        with closing(env), suppress(Empty):
            while not endpoint.stopped.is_set():
                seed = waiting.get_nowait()
                try:
                    done.put((seed, play_match(env, seed, endpoint)))
                except StoppedError:
                    return
                except MatchFailedError as error:
                    done.put((seed, error))
                except Exception as error:
                    endpoint.stopped.set()  # at once, before this thread begins another match
                    done.put((seed, error))

    for env in envs:
        Thread(target=work, args=(env,), daemon=True).start()
    try:
        left = len(seeds)
        while left:
            with suppress(Empty):
                seed, outcome = done.get(timeout=POLL_S)
                if isinstance(outcome, Exception) and not isinstance(outcome, MatchFailedError):
                    raise outcome
                left -= 1
                yield seed, outcome
    finally:
        endpoint.stopped.set()


# -------------------------------------------------------------------------------------------------------- the results


class ResultFile:
    """The lines of finished matches, as a context manager; no second process can enter the same file.

    Attributes:
        rows: Lines by seed, those of earlier calls included.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], url: str) -> None:
        """Does nothing yet.

        Args:
            path: The file.
            settings: What decides the results.
            url: Of the endpoint, noted in a new file.
        """
        self.path, self.rows = path, dict[int, dict[str, Any]]()
        self._head: dict[str, Any] = {MARK: 1, "settings": dict(settings), "url": url}
        self._is_new = True
        self._file: IO[str]

    def __enter__(self) -> Self:
        """Opens the file and reads what is there; a last line that was not finished is removed.

        Raises:
            FileError: The file is another one, or damaged.
            ValueError: Its settings are others.
            RuntimeError: Another process writes it.
            OSError: It cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a", encoding="utf-8", newline="\n")
        try:
            try:
                lock_file(self._file)
            except OSError:
                raise RuntimeError(
                    f"another process writes {self.path}: wait until it has ended, or choose another --file"
                ) from None
            self._read(self.path.read_bytes())
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the file, and removes it where no match was finished."""
        self._file.close()
        if self._is_new:
            self.path.unlink(missing_ok=True)

    def append(self, row: dict[str, Any]) -> None:
        """Writes the line of a match at once.

        Raises:
            OSError: It cannot be written; the lines before are as they were.
        """
        lines = [self._head, row] if self._is_new else [row]
        self._file.write("".join(json.dumps(line, allow_nan=False) + "\n" for line in lines))
        self._file.flush()
        self._is_new = False
        self.rows[row["seed"]] = row

    def _read(self, content: bytes) -> None:
        first = f'{{"{MARK}":'.encode()
        if content[: len(first)] != first[: len(content)]:
            raise FileError(f"{self.path}: no results of chat_eval: choose another --file")
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                read = json.loads(line)
                if number == 1:
                    told = differences(read["settings"], self._head["settings"])
                else:
                    told, self.rows[read["seed"]] = "", read
                    _ = [read[name] for name in COLUMNS]
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                message = f"{self.path}: line {number} is no result of chat_eval: remove it, or choose another --file"
                raise FileError(message) from error
            if told:
                raise ValueError(
                    f"{self.path} has results of other settings ({told}): give those of before, or another --file"
                )
        self._is_new = not whole
        os.truncate(self._file.fileno(), len(whole))


COLUMNS = ("exact_match", "f1", "reward", "turns", "malformed", "cut", "end")
"""What the table needs of each line."""


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The figures of finished matches, as they are shown, by heading.

    Args:
        rows: Lines of the file of results, at least one.
    """
    shown, turns = {"matches": f"{len(rows)}"}, sum(row["turns"] for row in rows)
    if all(row["exact_match"] is not None for row in rows):
        right = sum(row["exact_match"] for row in rows)
        low, high = wilson_interval(right, len(rows))
        shown |= {"exact match": f"{right / len(rows):.3f}", "95 % (Wilson)": f"[{low:.3f}, {high:.3f}]"}
    if all(row["f1"] is not None for row in rows):
        shown["F1"] = f"{np.mean([row['f1'] for row in rows]):.3f}"
    shown["reward"] = f"{np.mean([row['reward'] for row in rows]):.3f}"
    shown["turns"] = f"{turns / len(rows):.2f}"
    if all(row["malformed"] is not None for row in rows):
        shown["malformed turns"] = f"{100 * sum(row['malformed'] for row in rows) / max(turns, 1):.1f}%"
    shown["cut turns"] = f"{100 * sum(row['cut'] for row in rows) / max(turns, 1):.1f}%"
    shown["too long"] = f"{sum(row['end'] == OVERFLOW for row in rows)}"
    return shown


def evaluate(args: Args) -> int:
    """Plays what is missing and prints the table.

    Returns:
        Exit code: 1 if a match failed.

    Raises:
        ValueError, KeyError, OSError, RuntimeError: See `Args.check`, `Endpoint`, `make_env` and `ResultFile`.
        EndpointError: See `Endpoint.complete`.
    """
    args.check()
    args.env_id = find_id(args.env_id)
    asked = {"model": args.model, "temperature": args.temperature, "max_tokens": args.max_tokens}
    endpoint = Endpoint(args.url, asked, args.timeout_s, args.retries, args.api_key_from)
    failures = dict[int, MatchFailedError]()
    envs = [make_env(args)]
    seeds = range(args.seed, args.seed + args.matches)
    with ResultFile(args.path, args.settings, args.url) as file:
        rows = [file.rows[seed] for seed in seeds if seed in file.rows]
        missing = [seed for seed in seeds if seed not in file.rows]
        envs += [make_env(args) for _ in range(min(args.concurrency, len(missing)) - 1)]
        with (
            Progress("matches", args.matches, len(rows), title=args.model) as progress,
            closing(play_matches(envs, missing, endpoint)) as outcomes,
        ):
            for seed, outcome in outcomes:
                if isinstance(outcome, MatchFailedError):
                    failures[seed] = outcome
                else:
                    file.append(outcome)
                    rows.append(outcome)
                told = {name: mean for name in ("exact_match", "reward") if (mean := _mean(rows, name)) is not None}
                progress.update(len(rows), **told, failed=len(failures))
    if rows:
        figures = {**summary(rows), "failed": f"{len(failures)}"}
        print_table([[*figures.values()]], [*figures])
        print(f"{args.path} has every match")
    _list_failures(failures)
    return int(bool(failures))


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [row[name] for row in rows if row[name] is not None]
    return sum(values) / len(values) if values else None


def _list_failures(failures: Mapping[int, MatchFailedError]) -> None:
    for seed, error in [*failures.items()][:MOST_LISTED]:
        print(f"seed {seed} failed: {escaped(str(error))}", file=sys.stderr)
    if len(failures) > MOST_LISTED:
        print(f"... and {len(failures) - MOST_LISTED} more", file=sys.stderr)
    if failures:
        print("the same command plays the failed matches again", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluates.

    Args:
        argv: Words of the command line; those of the process if None.

    Returns:
        Exit code; see the module.
    """
    program = "python -m palaestra_baselines.chat_eval"
    args = read_arguments(Args, argv, program, (__doc__ or "").partition("\n")[0])
    try:
        return evaluate(args)
    except KeyboardInterrupt:
        kept = f"finished matches are in {args.path}" if args.path.exists() else "no match was finished"
        print(f"interrupted: {kept}; the same command goes on", file=sys.stderr)
        return 130
    except (EndpointError, ValueError, KeyError, OSError, RuntimeError) as error:
        print(f"chat_eval: {one_line(error)}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
