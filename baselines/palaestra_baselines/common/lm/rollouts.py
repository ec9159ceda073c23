"""Matches that a language model plays in all lanes of a batch, kept as the tokens that it sampled and read.

`play` plays all lanes a turn at a time, in columns that are the same for all lanes::

    prefix | question | turn (5) | passages (2 + 3K) | turn | passages | ... | turn

Turns are sampled, the rest is read. A lane whose match is over, or whose turn is shorter, has paddings; columns of
paddings alone are left out. `play_at_own_pace` lets each lane make its step as soon as its turn is written. Both keep
the ids that were sampled: no text is ever turned into tokens a second time.

A group is G lanes with the same seed, so with the same world and question: ``seeds=np.repeat(seeds, G)``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from palaestra import registry
from palaestra.core.contract.turn_tokens import END, PAD, TurnTokens
from palaestra.core.run.simulation import Simulation
from palaestra.game import Game
from palaestra_baselines.common.lm.tiny_model import TinyModel

UNSAID = -1
"""In place of a turn's number at tokens that belong to none."""
TEMPERATURES = {"sampled": 1.0, "temperature_0.5": 0.5, "greedy": 0.0}
"""At which exact match is measured, by column: sampled alone hides what sharpening the distribution would give."""
EVALUATION_SEED = 2**30 << 32
"""Seed of the first match of evaluations; matches of trainings have others."""


Prefix = Callable[[Simulation], torch.Tensor]
"""Gives int64 ``[N, P]`` for lanes that have just started, as `palaestra_baselines.common.lm.privileged` does."""


class Turns(Protocol):
    """What says where turns end."""

    def is_complete(self, turn: Sequence[int]) -> bool:
        """Whether a turn has ended."""
        ...


class Tokens(Turns, Protocol):
    """What both kinds of tokens have: `TurnTokens`, and `palaestra_baselines.common.lm.hf_model.TextTokens`.

    Attributes:
        turns: Most turns of a match.
    """

    turns: int

    def new_memory(self, lanes: int) -> np.ndarray:
        """See `TurnTokens`."""
        ...

    def questions(self, observations: Any, memory: np.ndarray, /) -> np.ndarray:
        """See `TurnTokens`."""
        ...

    def passages(self, observations: Any, memory: np.ndarray, /) -> np.ndarray:
        """See `TurnTokens`."""
        ...

    def actions(self, turns: np.ndarray, memory: np.ndarray, /) -> np.ndarray:
        """See `TurnTokens`."""
        ...

    def demonstration(self, records: Any, number: int) -> np.ndarray:
        """See `TurnTokens`."""
        ...


class Speaker(Protocol):
    """What plays: a model, or a script with the same calls; see `palaestra_baselines.common.lm.tiny_model`."""

    def start(self, prompts: torch.Tensor, columns: int = 0) -> None:
        """Reads prompts."""
        ...

    def sample(self, generator: torch.Generator, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        """Draws the next token of each lane."""
        ...

    def force(self, ids: torch.Tensor) -> None:
        """Reads tokens."""
        ...


class LanguageModel(Speaker, Protocol):
    """What learns."""

    def log_probs(self, ids: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """Evaluates tokens of whole sequences."""
        ...


@dataclass(frozen=True)
class Rollout:
    """N whole matches.

    Attributes:
        ids: int64 ``[N, T]``, tokens; 0 is padding.
        turn: int64 ``[N, T]``, number of the turn that a token was sampled in, `UNSAID` for tokens that were read.
        retrieved: bool ``[N, T]``, tokens of passages.
        log_probs: float32 ``[N, T]``, logarithms of the probabilities of sampled tokens when they were sampled; else 0.
        exact_match: float32 ``[N]``, 1 for a right answer; where the environment asks nothing, for a match that is won.
        returns: float32 ``[N]``, sum of the environment's rewards.
        turns: int64 ``[N]``, turns of each match.
        labels: int64 ``[N, most turns]``, the environment's ``turn_label`` of each turn; 0 after the end, and where it
            has none.
    """

    ids: torch.Tensor
    turn: torch.Tensor
    retrieved: torch.Tensor
    log_probs: torch.Tensor
    exact_match: torch.Tensor
    returns: torch.Tensor
    turns: torch.Tensor
    labels: torch.Tensor

    @property
    def sampled(self) -> torch.Tensor:
        """Bool ``[N, T]``: the loss mask, tokens that the model has sampled."""
        return self.turn != UNSAID

    def to(self, device: torch.device) -> Rollout:
        """The same matches on a device."""
        return Rollout(**{name: tensor.to(device) for name, tensor in vars(self).items()})


@torch.no_grad()
def speak(
    model: Speaker, speaking: torch.Tensor, generator: torch.Generator, temperature: float, most: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Samples a turn.

    Args:
        model: Has read what came before.
        speaking: bool ``[N]``, lanes whose match goes on.
        generator: Of the draws.
        temperature: See `Speaker.sample`.
        most: L, most tokens of a turn.

    Returns:
        Tokens int64 ``[N, L]``, paddings behind the end of a turn; logarithms of their probabilities float32
        ``[N, L]``; and the last tokens ``[N, 1]``, which the model has not read yet.
    """
    words, log_probs, k = torch.full((len(speaking), most), PAD), torch.zeros(len(speaking), most), 0
    while True:
        ids, logs = model.sample(generator, temperature)
        words[:, k], log_probs[:, k] = ids.where(speaking, PAD), logs.where(speaking, 0.0)
        speaking = speaking & (ids != END)
        if k == most - 1 or not speaking.any():
            return words, log_probs, words[:, k : k + 1]
        model.force(words[:, k : k + 1])
        k += 1


@torch.no_grad()
def play(
    model: Speaker,
    sim: Simulation,
    tokens: TurnTokens,
    seeds: np.ndarray,
    generator: torch.Generator,
    temperature: float = 1.0,
    prefix: Prefix | None = None,
) -> Rollout:
    """Plays a match in each lane, a turn at a time.

    Args:
        model: Plays.
        sim: N lanes of the token form, ``autoreset_mode="off"``.
        tokens: Translates.
        seeds: uint64 ``[N]``.
        generator: Of the draws of tokens.
        temperature: See `Speaker.sample`.
        prefix: Gives what is read before the question, see `Prefix`.
    """
    return _play(model, sim, tokens, seeds, generator, temperature, converse, prefix)


@torch.no_grad()
def play_at_own_pace(
    model: Speaker,
    sim: Simulation,
    tokens: Tokens,
    seeds: np.ndarray,
    generator: torch.Generator,
    temperature: float = 1.0,
) -> Rollout:
    """Plays a match in each lane; a lane steps as soon as its turn is complete. Arguments as of `play`."""
    return _play(model, sim, tokens, seeds, generator, temperature, converse_at_own_pace)


def _play(
    model: Speaker,
    sim: Simulation,
    tokens: Any,
    seeds: np.ndarray,
    generator: torch.Generator,
    temperature: float,
    converse: Converse,
    prefix: Prefix | None = None,
) -> Rollout:
    sim.reset(seed=seeds)
    memory = tokens.new_memory(sim.num_envs)
    prompts = torch.from_numpy(tokens.questions(rows_of(sim), memory))
    prompts = prompts if prefix is None else torch.cat([prefix(sim), prompts], 1)
    returns = np.zeros(sim.num_envs)

    def step(words: torch.Tensor, speaking: torch.Tensor) -> Outcome:
        play_turns(sim, tokens.actions(words.numpy(), memory), speaking.numpy())
        np.add(returns, sim.rewards[:, 0], out=returns)
        return outcome_of(sim), torch.from_numpy(tokens.passages(rows_of(sim), memory))

    columns, turns, labels = converse(model, prompts, tokens, tokens.turns, step, generator, temperature)
    return columns.rollout(sim, returns, turns, labels)


def play_turns(sim: Simulation, actions: np.ndarray, lanes: np.ndarray) -> None:
    """Plays actions ``[N, ...]`` of the first agent in some lanes, bool ``[N]``; opponents write over the others'."""
    sim.step(np.repeat(actions[:, None], len(sim.game.agents), 1), lanes=lanes)


def outcome_of(sim: Simulation) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether the matches of all lanes go on, bool ``[N]``, and the labels of their last turns, int64 ``[N]``."""
    labels = sim.info.get("turn_label", np.zeros(sim.num_envs)).astype(np.int64)
    return torch.from_numpy(~(sim.terminated | sim.truncated)), torch.from_numpy(labels)


Outcome = tuple[tuple[torch.Tensor, torch.Tensor], torch.Tensor]
"""What `outcome_of` returns, and what the lanes read next, int64 ``[N, L]``."""
Step = Callable[[torch.Tensor, torch.Tensor], Outcome]
"""Plays turns, int64 ``[N, L]``, in the lanes that have just ended theirs, bool ``[N]``."""
Conversation = tuple["Columns", torch.Tensor, torch.Tensor]
Converse = Callable[[Speaker, torch.Tensor, Any, int, Step, torch.Generator, float], Conversation]
"""`converse` or `converse_at_own_pace`."""


def converse(
    model: Speaker,
    prompts: torch.Tensor,
    tokens: TurnTokens,
    turns: int,
    step: Step,
    generator: torch.Generator,
    temperature: float = 1.0,
) -> Conversation:
    """Lets a model read prompts, and then take turns and read what they find; all lanes a turn at a time.

    Args:
        model: Speaks.
        prompts: int64 ``[N, P]``.
        tokens: Translates.
        turns: Most turns.
        step: See `Step`.
        generator: Of the draws of tokens.
        temperature: See `Speaker.sample`.

    Returns:
        The columns, the number of turns of each lane int64 ``[N]``, and their labels int64 ``[N, most turns]``.
    """
    columns, counts, labels = Columns(), torch.zeros(len(prompts), dtype=torch.int64), list[torch.Tensor]()
    alive, most = torch.ones(len(prompts), dtype=torch.bool), tokens.turn_size
    columns.read(prompts, retrieved=False)
    model.start(prompts, prompts.shape[1] + turns * (most + tokens.found_size))
    for turn in range(turns):
        words, log_probs, unread = speak(model, alive, generator, temperature, most)
        columns.say(words, log_probs, turn)
        (goes_on, given), found = step(words, alive)
        counts = counts + alive
        labels.append(given.where(alive, 0))
        alive = alive & goes_on
        if not alive.any():
            break
        found = found.where(alive[:, None], PAD)
        columns.read(found, retrieved=True)
        model.force(torch.cat([unread, found], 1))
    return columns, counts, torch.stack(labels, 1)


def converse_at_own_pace(
    model: Speaker,
    prompts: torch.Tensor,
    tokens: Turns,
    turns: int,
    step: Step,
    generator: torch.Generator,
    temperature: float = 1.0,
) -> Conversation:
    """As `converse`, but a lane steps as soon as its turn is complete.

    In each column a lane reads the next token of what its last turn found, or else samples one. So lanes whose turns
    and passages differ in length do not wait for each other, as they would with a real tokenizer.
    """
    lanes, columns = len(prompts), Columns()
    columns.read(prompts, retrieved=False)
    model.start(prompts)
    alive, counts = torch.ones(lanes, dtype=torch.bool), torch.zeros(lanes, dtype=torch.int64)
    labels = torch.zeros((lanes, turns), dtype=torch.int64)
    unread, said = [deque[int]() for _ in range(lanes)], [list[int]() for _ in range(lanes)]
    while alive.any():
        ids, log_probs = model.sample(generator, temperature)
        reads = torch.tensor([len(queue) > 0 for queue in unread])
        for lane in reads.nonzero()[:, 0].tolist():
            ids[lane] = unread[lane].popleft()
        ids, says = ids.where(alive, PAD)[:, None], alive & ~reads
        columns.add(ids, counts.where(says, UNSAID), reads, log_probs.where(says, 0.0))
        model.force(ids)
        for lane in says.nonzero()[:, 0].tolist():
            said[lane].append(int(ids[lane]))
        ends = torch.tensor([bool(turn) and tokens.is_complete(turn) for turn in said])
        if not ends.any():
            continue
        (goes_on, given), found = step(stacked(said), ends)
        labels[ends, counts[ends]] = given[ends]
        counts += ends
        alive &= ~ends | goes_on
        for lane in ends.nonzero()[:, 0].tolist():
            said[lane].clear()
            if alive[lane]:
                unread[lane].extend(token for token in found[lane].tolist() if token != PAD)
    return columns, counts, labels


@torch.no_grad()
def demonstrate(
    sim: Simulation, tokens: Tokens, seeds: np.ndarray, write: Callable[[Any, int], np.ndarray] | None = None
) -> Rollout:
    """Demonstrations that the environment gives, one in each lane, all lanes a turn at a time.

    Args:
        sim: N lanes, ``autoreset_mode="off"``.
        tokens: Translates.
        seeds: uint64 ``[N]``.
        write: Gives the turns by match records and number, as ``tokens.demonstration``, which is the default.

    Raises:
        ValueError: The environment has none.
    """
    columns, returns, found = Columns(), np.zeros(sim.num_envs), np.full((sim.num_envs, 1), PAD)
    sim.reset(seed=seeds)
    memory, write = tokens.new_memory(sim.num_envs), write or tokens.demonstration
    columns.read(torch.from_numpy(tokens.questions(rows_of(sim), memory)), retrieved=False)
    counts, labels = torch.zeros(sim.num_envs, dtype=torch.int64), list[torch.Tensor]()
    alive = np.ones(sim.num_envs, bool)
    while alive.any():
        number, written = len(labels), write(sim.states, len(labels))
        alive = alive & (written != PAD).any(1)
        written = np.where(alive[:, None], written, PAD)
        columns.read(torch.from_numpy(np.where(alive[:, None], found, PAD)), retrieved=True)
        columns.say(torch.from_numpy(written), torch.zeros(written.shape), number)
        play_turns(sim, tokens.actions(written, memory), alive)
        returns += np.where(alive, sim.rewards[:, 0], 0.0)
        found, counts = tokens.passages(rows_of(sim), memory), counts + torch.from_numpy(alive)
        labels.append(outcome_of(sim)[1].where(torch.from_numpy(alive), 0))
        alive = alive & ~(sim.terminated | sim.truncated)
    return columns.rollout(sim, returns, counts, torch.stack(labels, 1))


def stacked(turns: Sequence[Sequence[int]]) -> torch.Tensor:
    """Tokens of unequal numbers as int64 ``[N, L]``, paddings at their ends."""
    table = np.full((len(turns), max(1, *map(len, turns))), PAD)
    for row, turn in zip(table, turns, strict=True):
        row[: len(turn)] = turn
    return torch.from_numpy(table)


Player = Callable[[Any, Simulation, Any, np.ndarray, torch.Generator, float], Rollout]
"""`play` or `play_at_own_pace`."""


def measure_exact_match(model: Any, sim: Simulation, tokens: Any, temperature: float, player: Player = play) -> float:
    """Share of right answers to one question per lane, the same ones at each call."""
    seeds = np.arange(EVALUATION_SEED, EVALUATION_SEED + sim.num_envs, dtype=np.uint64)
    return float(player(model, sim, tokens, seeds, torch.Generator().manual_seed(0), temperature).exact_match.mean())


def measure_all(model: Any, sim: Simulation, tokens: Any, player: Player = play) -> dict[str, float]:
    """Exact match at each of `TEMPERATURES`."""
    return {name: measure_exact_match(model, sim, tokens, value, player) for name, value in TEMPERATURES.items()}


def make_batch(id: str, lanes: int, **keywords: Any) -> tuple[Simulation, Any]:
    """Lanes of the token form that wait when their match is over, and what translates them, see `tokens_of`.

    Args:
        id: Registered id.
        lanes: N.
        **keywords: Of the game.

    Raises:
        ValueError: The tiny model cannot read such a game.
    """
    sim = registry.make_batch(id, lanes, autoreset_mode="off", **{"form": "tokens", **keywords})
    return sim, tokens_of(sim.game)


def tokens_of(game: Game) -> TurnTokens:
    """What translates between a game and a tiny model: the tokens that its codec of texts has.

    Raises:
        ValueError: It has none, or not for these options.
    """
    turn_tokens = getattr(game.codecs.get("text"), "turn_tokens", None)
    if turn_tokens is None:
        raise ValueError(
            f'{game.name} has no tokens for a tiny model in this form: give form="tokens" or form="text" where it has '
            "them (SearchQA, MathText); a model of text learns by --model FOLDER"
        )
    return turn_tokens(game)


def longest_match(tokens: TurnTokens) -> int:
    """Most tokens of a match, without a prefix."""
    return tokens.question_size + tokens.turns * (tokens.turn_size + tokens.found_size) - tokens.found_size


def check_fits(model: TinyModel, tokens: TurnTokens) -> None:
    """Looks whether a model can play matches.

    Raises:
        ValueError: It has other tokens, or their matches may have more of them than it reads.
    """
    if len(model.tokens.weight) != tokens.vocabulary:
        raise ValueError(
            f"the weights are of a model with {len(model.tokens.weight)} tokens, the game has {tokens.vocabulary}: "
            "give weights that were made for it"
        )
    longest = longest_match(tokens)
    if longest > model.context:
        raise ValueError(
            f"matches of {tokens.turns} turns have up to {longest} tokens, the model reads {model.context}: take fewer "
            "or shorter turns"
        )


def rows_of(sim: Simulation) -> Any:
    """Observations of the first agent, ``[N, n]``, of a simulation of arrays; a view, valid until the next step."""
    observations: Any = sim.observations
    return observations[:, 0] if isinstance(observations, np.ndarray) else observations


class Columns:
    """The columns of a rollout while it grows."""

    def __init__(self) -> None:
        """No columns."""
        self.parts: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]] = []

    def add(self, ids: torch.Tensor, turn: torch.Tensor, retrieved: torch.Tensor, log_probs: torch.Tensor) -> None:
        """Adds a column: tokens ``[N, 1]``, and of each lane the turn, whether it is retrieved, and ``log_probs``."""
        self.parts.append((ids, turn[:, None], retrieved[:, None], log_probs[:, None]))

    def say(self, ids: torch.Tensor, log_probs: torch.Tensor, turn: int) -> None:
        """Adds tokens ``[N, L]`` that were sampled in a turn; paddings among them belong to none."""
        number = torch.full_like(ids, turn).where(ids != PAD, UNSAID)
        self.parts.append((ids, number, torch.zeros_like(ids, dtype=torch.bool), log_probs))

    def read(self, ids: torch.Tensor, retrieved: bool) -> None:
        """Adds tokens ``[N, L]`` that were read."""
        is_retrieved = (ids != PAD) & retrieved
        self.parts.append((ids, torch.full_like(ids, UNSAID), is_retrieved, torch.zeros(ids.shape)))

    def arrays(self) -> list[torch.Tensor]:
        """Tokens, turns, whether they are retrieved, and logarithms, ``[N, T]`` each, without columns of paddings."""
        joined = [torch.cat(arrays, 1) for arrays in zip(*self.parts, strict=True)]
        kept = (joined[0] != PAD).any(0)
        return [array[:, kept] for array in joined]

    def rollout(self, sim: Simulation, returns: np.ndarray, turns: torch.Tensor, labels: torch.Tensor) -> Rollout:
        """The rollout of matches that have ended, with their returns ``[N]``."""
        ids, turn, retrieved, log_probs = self.arrays()
        right: Any = sim.info.get("exact_match", sim.info["winner"] == 0)
        exact_match, paid = (torch.from_numpy(row.astype(np.float32)) for row in (right, returns))
        return Rollout(ids, turn, retrieved, log_probs, exact_match, paid, turns, labels)
