"""Replies of chat endpoints on the disk: what was answered is not asked again, after a kill too.

A file has a line of JSON for each reply, appended at once: ``key``, what the model was told last (``asked``), and what
it replied (the fields of `palaestra.players.chat_endpoint.Reply`). Several processes may append to one file.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from palaestra.players.chat_endpoint import Call, Reply


class Answers:
    """The replies of a file, and how many were asked for in this process.

    Attributes:
        path: The file.
        counts: ``asked``, ``kept`` (taken from the file instead), ``cut`` (ended at the most tokens), ``empty`` (said
            nothing), ``too_long`` (conversations that outgrew the context), ``read`` and ``written`` (tokens).
    """

    def __init__(self, path: Path) -> None:
        """Reads the file, if it is there; lines that were not finished, or are others, are passed over.

        Raises:
            OSError: It cannot be read.
        """
        self.path, self.counts = path, Counter[str]()
        self._replies, self._lock, self._is_whole = dict[str, Reply](), Lock(), True
        if path.exists():
            content = path.read_bytes()
            self._is_whole = content[-1:] in (b"", b"\n")
            for line in content.splitlines():
                with suppress(ValueError, KeyError, TypeError, RecursionError):
                    row = json.loads(line)
                    calls = tuple(Call(*map(str, call)) for call in row["calls"])
                    self._replies[row["key"]] = Reply(row["text"], row["thought"], calls, row["is_cut"], row["tokens"])

    def find(self, key: str) -> Reply | None:
        """The reply to a request, if it is known."""
        return self._replies.get(key)

    def add(self, key: str, asked: str, reply: Reply) -> None:
        """Appends a reply at once.

        Raises:
            OSError: It cannot be written; names the file.
        """
        line = json.dumps({"key": key, "asked": asked, **reply._asdict()})
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:  # one write: lines of several processes do not mix
                file.write(("" if self._is_whole else "\n").encode() + line.encode() + b"\n")
            self._is_whole, self._replies[key] = True, reply

    def count_reply(self, reply: Reply, **more: int) -> None:
        """Counts a reply that is played, and more."""
        read, written = reply.tokens or (0, 0)
        is_empty = not (reply.text.strip() or reply.calls)
        self.count(cut=int(reply.is_cut), empty=int(is_empty), read=read, written=written, **more)

    def count(self, **more: int) -> None:
        """Adds to the counts."""
        with self._lock:
            self.counts.update(more)

    def __str__(self) -> str:
        """What was counted, in a line."""
        c = self.counts
        text = f"{self.path}: {c['asked']} replies"
        if c["kept"]:
            text += f", {c['kept']} more were there already (another file, or none, asks anew)"
        told = (("cut", "ended at max_tokens"), ("empty", "are empty"), ("too_long", "conversations were too long"))
        text += "".join(f", {c[name]} {about}" for name, about in told if c[name])
        return text + (f", {c['read']} tokens read and {c['written']} written" if c["read"] else "")


def key_of(*parts: Any) -> str:
    """Name of a request: what decides the reply, and in which match it is asked."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def asked_last(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of the last message."""
    return str(messages[-1].get("content") or "")


_opened: dict[Path, Answers] = {}


def answers_of(path: Path) -> Answers:
    """The replies of a file, which is read once in a process."""
    if (key := path.absolute()) not in _opened:
        _opened[key] = Answers(path)
    return _opened[key]


def reports() -> list[str]:
    """A line for each file from which replies were played in this process."""
    return [str(answers) for answers in _opened.values() if answers.counts]
