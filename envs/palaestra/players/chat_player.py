"""A language model behind an OpenAI-compatible chat endpoint as a player: ``openai:URL#MODEL``.

Example::

    palaestra eval SearchQA-2Hop --a "openai:http://localhost:8000/v1?max_tokens=2048#Qwen/Qwen3-8B"

It plays any game whose agents read and write text (``form="text"`` where a game has it, which `evaluate`, `tournament`
and `record` give by themselves). A match of an agent is a conversation: `SYSTEM`, what the agent reads, and each reply
as a turn. All lanes are asked at the same time, ``concurrency`` of them at once.

Settings stand in the URL's query: the attributes of `ChatPlayer`, and any other field of the request
(``top_p=0.9``, ``reasoning_effort=low``). The key is that of the environment variable ``OPENAI_API_KEY``, or of the one
that ``key_from`` names. It is never written.

Thoughts are no part of a turn: ``reasoning_content``, and what stands between ``<think>`` and ``</think>``. Records of
matches keep them, so that their pages show all that a model wrote.

``tools=true`` offers what the tags of a game say as tools: a call ``search(text="..")`` is the turn
``<search>..</search>``. The first call of a reply counts.

Each reply is appended to ``file`` at once, by what was asked and the seed of the match, and is taken from there when it
would be asked again: after a kill, an error or an interruption the same command goes on; records and pages of matches
ask nothing twice. Another temperature, model or URL asks anew.

Too many requests (429, whose Retry-After is kept), failures of the endpoint (500 and more), lost connections, replies
that are late or are none are tried again ``retries`` times. Where a conversation outgrows the model's context, the rest
of its turns are empty; so is a reply without content.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, ClassVar
from urllib.parse import parse_qsl

import numpy as np

from palaestra.console import nearest
from palaestra.game import AgentView, Game, Role
from palaestra.players.chat_answers import Answers, answers_of, asked_last, key_of
from palaestra.players.chat_endpoint import (
    Call,
    ContextOverflowError,
    Endpoint,
    EndpointError,
    Reply,
    at_once,
)
from palaestra.players.text_views import TextTeam

PREFIX = "openai:"
SYSTEM = "Each of your messages is one turn in an environment, which answers it. Do what its first message says."
TOOLS_SYSTEM = (
    "You act in an environment by calling tools, one call a message; it answers with the result. Where its messages "
    "speak of tags such as <search> and </search>, call the tool of that name instead."
)
"""The first message of every match, the second one where there are tools."""
MOST_REPAIRS = 3
"""Replies to a position of a game that refuses turns; the agent then does nothing."""
ONE_CALL = "Only the first call of a message counts."

Message = dict[str, Any]
Conversation = tuple[tuple[Message, ...], bool]
"""Its messages, and whether it has outgrown the model's context."""
Agent = tuple[int, int]
"""Lane, and place in the team."""


@dataclass(frozen=True)
class ChatPlayer:
    """The player of a model, before it knows a game.

    Attributes:
        url: Of the endpoint, up to the version.
        model: Name of the model there.
        temperature: Of sampling; None leaves it to the endpoint.
        max_tokens: Most tokens of a reply; None likewise.
        tools: Whether the model calls tools instead of writing tags.
        concurrency: Most requests at the same time.
        timeout_s: Most seconds from a request to the end of its reply.
        retries: How often a request is repeated.
        key_from: Environment variable that holds the key; the default one may be missing.
        system: First message; None for the default.
        file: Replies; None is ``runs/chat/MODEL.jsonl``.
        body: More fields of each request.
    """

    url: str
    model: str
    temperature: float | None = 0.0
    max_tokens: int | None = 1024
    tools: bool = False
    concurrency: int = 16
    timeout_s: float = 120.0
    retries: int = 5
    key_from: str = "OPENAI_API_KEY"
    system: str | None = None
    file: str | Path | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    reads_text: ClassVar[bool] = True
    """See `palaestra.wrappers.transcript.text_keywords`."""

    def __post_init__(self) -> None:
        """Looks at the settings.

        Raises:
            ValueError: A number is out of range; names it.
        """
        for name, low in (("concurrency", 1), ("retries", 0), ("max_tokens", 1), ("temperature", 0.0)):
            value = getattr(self, name)
            if value is not None and not low <= value < 2**31:
                raise ValueError(f"{PREFIX}{self.url}#{self.model}: {name} is {low} or more, got {value}")
        if not 0.0 < self.timeout_s < 2**31:
            raise ValueError(f"{PREFIX}{self.url}#{self.model}: timeout_s is a positive number, got {self.timeout_s}")

    @property
    def name(self) -> str:
        """What to call it in tables."""
        return self.model

    @property
    def path(self) -> Path:
        """Where the replies are."""
        return Path(self.file or Path("runs", "chat", f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', self.model)}.jsonl"))

    def for_team(self, game: Game, team: str) -> ChatTeam:
        """The player of one team; see `palaestra.core.run.opponents.ForTeam`.

        Raises:
            ValueError: The game has no text, or no tools where these are asked for.
        """
        return ChatTeam(self, game, team)

    def request(self, messages: Sequence[Message], tools: Sequence[Message]) -> dict[str, Any]:
        """The body of a request."""
        own = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        if "max_completion_tokens" in self.body:
            del own["max_tokens"]
        given = {name: value for name, value in own.items() if value is not None}
        more = {"tools": [*tools]} if tools else {}
        return {"model": self.model, "messages": [*messages], **given, **more, **self.body}


def read_name(text: str) -> ChatPlayer:
    """The player of ``openai:URL#MODEL``, with settings in the URL's query.

    Raises:
        ValueError: No model or URL, or a setting that is none; says what to write.
    """
    address, _, model = text.removeprefix(PREFIX).partition("#")
    url, _, query = address.partition("?")
    if not url or not model:
        raise ValueError(f'{text!r}: write "openai:http://HOST:PORT/v1#MODEL"; {url or "URL"}/models lists the models')
    known = {f.name: f for f in dataclasses.fields(ChatPlayer) if f.name not in ("url", "model", "body")}
    settings, body = dict[str, Any](), dict[str, Any]()
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known and (meant := nearest(name, known, 0.8)):
            raise ValueError(f"{text!r}: there is no setting {name!r}, did you mean {meant!r}?")
        (settings if name in known else body)[name] = _value(text, name, value, known.get(name))
    return ChatPlayer(url, model, **settings, body=body)


def _value(text: str, name: str, value: str, setting: Any) -> Any:
    """A value of the query: a field of the request as JSON or text, a setting as its type."""
    if setting is not None and "str" in setting.type:
        return value
    try:
        number = f"0{value}" if value.startswith(".") else value
        read = None if value in ("none", "") else json.loads(number.lower() if setting is not None else number)
    except ValueError:
        read = value
    kind = {"tools": bool, "temperature": (int, float), "timeout_s": (int, float)}.get(name, int)
    fits = type(read) is bool if kind is bool else isinstance(read, kind) and type(read) is not bool
    if setting is not None and not fits and not (read is None and "None" in setting.type):
        raise ValueError(f"{text!r}: {name} is {setting.type}, got {value!r}")
    return read


class ChatTeam:
    """The player of a team, an `palaestra.core.run.opponents.Opponent`; each agent has a conversation of its own.

    Attributes:
        memory_size: One number an agent: which conversation it is in.
        policy_outputs: ``turn``: what the model wrote, as it is kept in records of matches.
    """

    def __init__(self, player: ChatPlayer, game: Game, team: str) -> None:
        """See `ChatPlayer.for_team`."""
        self.player, self.name = player, player.name
        is_named = player.key_from != ChatPlayer.key_from
        self._endpoint = Endpoint(player.url, player.timeout_s, player.retries, player.key_from, is_named)
        self._team = TextTeam(game, team)
        self._tools = {role.name: self._tools_of(role) for _, role, _ in self._team.places}
        system = player.system or (TOOLS_SYSTEM if player.tools else SYSTEM)
        self._conversations: list[Conversation] = [(({"role": "system", "content": system},), False)]
        self.memory_size = len(self._team.places)
        self.policy_outputs = dict[str, np.ndarray]()

    def _tools_of(self, role: Role) -> list[Message]:
        """The tools of a role as requests have them; none without ``tools``."""
        player, tools = self.player, getattr(self._team.codec, "tools", None)
        if not player.tools:
            return []
        if tools is None:
            raise ValueError(f"{PREFIX}{player.url}#{player.model}: this game has no tools: leave tools=true out")
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        return [
            {"type": "function", "function": {"name": name, "description": about, "parameters": text}}
            for name, about in tools(role).items()
        ]

    @property
    def _answers(self) -> Answers:
        return answers_of(self.player.path)

    def __deepcopy__(self, memo: dict) -> ChatTeam:
        """Copies of a simulation share their players."""
        return self

    def act(
        self,
        observations: Any,
        legal: Any,
        acting: np.ndarray,
        first: np.ndarray,
        seeds: np.ndarray,
        memory: np.ndarray,
    ) -> Any:
        """See `palaestra.core.run.opponents.Opponent`.

        Raises:
            ValueError: The endpoint does not answer; names it, why, and what to do. What was answered is kept.
        """
        codec, turns, decoded = self._team.codec, np.full(acting.shape, "", object), dict[Agent, Any]()
        views, waiting = dict[Agent, AgentView](), dict[Agent, Sequence[Message]]()
        for lane, place in np.argwhere(acting).tolist():
            view = views[lane, place] = self._team.view(place, lane, observations, legal)
            messages, is_over = self._conversations[int(memory[lane, place])]
            if not is_over:
                waiting[lane, place] = _told(messages, codec.encode(view))
                continue
            with suppress(ValueError):  # what is refused is nothing, too
                decoded[lane, place] = codec.decode(view, "")
        for _ in range(MOST_REPAIRS):
            replies, refused = self._ask(waiting, seeds), dict[Agent, Sequence[Message]]()
            for at, reply in replies.items():
                said = [*waiting[at], _said(reply or Reply(""))]
                memory[at] = len(self._conversations)
                self._conversations.append((tuple(said), reply is None))
                turns[at] = f"{turns[at]}\n{_raw(reply or Reply(''))}".lstrip("\n")
                try:
                    decoded[at] = codec.decode(views[at], _turn(reply or Reply("")))
                except ValueError as error:  # how games refuse a text that they do not understand
                    if reply is not None:
                        refused[at] = _told(said, str(error))
            waiting = refused
        self.policy_outputs = {"turn": turns}
        return self._team.actions(decoded, len(acting))

    def _ask(self, conversations: Mapping[Agent, Sequence[Message]], seeds: np.ndarray) -> dict[Agent, Reply | None]:
        """The reply to each conversation; None to one that is too long."""
        answers, player = self._answers, self.player
        replies, unknown = dict[Agent, Reply | None](), dict[Agent, Callable[[Event], Reply | None]]()
        for (lane, place), messages in conversations.items():
            slot, role, _ = self._team.places[place]
            body = player.request(messages, self._tools[role.name])
            key = key_of(player.url, body, int(seeds[lane]), slot)
            known = answers.find(key)
            if known is not None:
                replies[lane, place] = known
                answers.count_reply(known, kept=1)
            else:
                unknown[lane, place] = partial(self._complete, key, body)
        try:
            return replies | at_once(unknown, player.concurrency)
        except EndpointError as error:
            kept = f"what was answered is in {player.path}, the same call goes on from there"
            raise ValueError(f"{PREFIX}{player.model} at {error}; {kept}") from error

    def _complete(self, key: str, body: dict[str, Any], stopped: Event) -> Reply | None:
        """Asks, and keeps the reply."""
        answers = self._answers
        try:
            reply = self._endpoint.complete(body, stopped)
        except ContextOverflowError as error:
            if len(body["messages"]) == 2:
                raise EndpointError(f"{error}: the first message does not fit: lower max_tokens") from error
            answers.count(too_long=1)
            return None
        answers.add(key, asked_last(body["messages"]), reply)
        answers.count_reply(reply, asked=1)
        return reply


# -- conversations -----------------------------------------------------------------------------------------------------


def _told(messages: Sequence[Message], text: str) -> list[Message]:
    """A conversation with what the agent reads now: the results of its calls, or a message of the user."""
    calls = messages[-1].get("tool_calls") or []
    if not calls:
        return [*messages, {"role": "user", "content": text}]
    contents = [text, *[ONE_CALL] * (len(calls) - 1)]
    results = [{"role": "tool", "tool_call_id": c["id"], "content": t} for c, t in zip(calls, contents, strict=True)]
    return [*messages, *results]


def _said(reply: Reply) -> Message:
    """A reply as a message; without its thoughts where the server took them out."""
    calls = [_function_call(call) for call in reply.calls]
    return {"role": "assistant", "content": reply.text, **({"tool_calls": calls} if calls else {})}


def _function_call(call: Call) -> Message:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _turn(reply: Reply) -> str:
    """The turn of a reply: its content without thoughts, and its first call with tags."""
    *thoughts, said = reply.text.split("</think>")  # which the prompt may have opened
    said = "".join(text.partition("<think>")[0] for text in thoughts if "<think>" in text) + said
    if not reply.calls:
        return said
    _, name, arguments = reply.calls[0]
    try:
        (value,) = json.loads(arguments).values()
    except (ValueError, AttributeError, RecursionError):
        return ""
    return f"{said.replace('<', ' ')}<{name}>{value}</{name}>"


def _raw(reply: Reply) -> str:
    """All that a model wrote, thoughts and calls included."""
    thought = f"<think>{reply.thought}</think>\n" if reply.thought else ""
    return "\n".join([f"{thought}{reply.text}", *(f"{call.name}({call.arguments})" for call in reply.calls)]).strip()
