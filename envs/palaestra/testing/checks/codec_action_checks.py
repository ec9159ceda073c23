"""What codecs make of actions: it is what was said, of one match and of many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from palaestra.core.contract.actions import ActionError
from palaestra.core.faces.agent_io import NO_CODEC, AgentIO
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import Player
from palaestra.testing.snapshot_view import unlike
from palaestra.testing.subject import Subject

LANES = 4
ROUNDED = 0.1
"""Share of its range by which a text may round a real number."""


@conformance(order=1105)
def codec_actions_are_kept(subject: Subject) -> None:
    """A codec decodes what was said, of one match as of many: scripts' actions that it writes down come back whole.

    So do those of samples. An action space that is the plain face's is meant as there, unless ``encode_action`` says
    what else. A ``demonstration`` in an info says what a script plays.
    """
    counts = np.zeros(3, np.int64)
    for each in subject.with_codecs():
        for name in each.game.codecs:
            counts += _played(each, name), *_samples(each, name)
    if not counts.any():
        raise Skipped("the game has no codecs")
    subject.note(f"{counts[0]} actions written and read, {counts[1]} samples, {counts[2]} in many matches at once")


def _played(subject: Subject, name: str) -> int:
    """Writes what scripts and a random player choose as a user would, and reads it; returns how often."""
    players = [*subject.game.scripts, None]
    lanes = len(players)
    sim, alone = subject.batch(lanes, autoreset_mode="off"), subject.batch(1, autoreset_mode="off")
    for lane, script in enumerate(players[:-1]):
        for team in subject.game.teams:
            sim.set_opponent(team, script, [lane])
    player, written = Player(sim), 0
    sim.reset(seed=subject.draw.seed())
    ways = [_Ways(alone, name, slot) for slot in range(len(subject.game.agents))]
    said: set[Any] = set()
    most = 400 if subject.level == "full" else 24
    for number in subject.rounds(24, 40, 400):
        before, asked = sim.states.copy(), sim.alive & sim.acting
        player.play(sim)
        chosen = sim.buffers.action_words.copy()
        sim.step()  # scripts write what they choose
        chosen[:-1] = sim.buffers.action_words[:-1]
        looked = 0
        for lane, slot in np.roll(np.argwhere(asked), -number, axis=0).tolist():
            own = ways[slot].choices(chosen[lane])
            if own in said or looked == 2 or len(said) >= most:
                continue  # what is said again tells nothing new
            said.add(own)
            looked += 1
            alone.load_states(before[lane : lane + 1])
            place = f"codec {name!r}, {subject.game.agents[slot]}, step {number}"
            written += ways[slot].comes_back(chosen[lane], place, players[lane])
            ways[slot].compare_demonstration(subject, before[lane : lane + 1], place)
        sim.reset(sim.terminated | sim.truncated)
    alone.load_states(sim.states[:1])
    rng = np.random.default_rng(subject.draw.seed())
    for number in subject.rounds(6, 8, 200):
        for way in ways:  # what nobody has chosen, allowed or not
            agent = subject.game.agents[way.slot]
            written += way.comes_back(way.any_action(rng), f"codec {name!r}, {agent}, any action {number}", None)
    return written


class _Ways:
    """One agent of a batch of one lane, with a codec and without.

    Attributes:
        slot: Of the agent.
        io: With the codec.
        plain: Without.
        is_plain: Whether both have one action space, and nothing says that actions mean something else.
    """

    def __init__(self, alone: Any, name: str, slot: int) -> None:
        self._sim, self.slot = alone, slot
        self.io = AgentIO(alone, (slot,), codec=name)
        self.plain = AgentIO(alone, (slot,), codec=NO_CODEC, observation="dict")
        self._encode = getattr(self.io.codec, "encode_action", None)
        self.is_plain = self._encode is None and self.io.action_space == self.plain.action_space
        first, last = alone.action_table.first_word[slot : slot + 2]
        self._words = alone.action_table.words[first:last]
        self._names = alone.action_table.names[first:last]

    def any_action(self, rng: np.random.Generator) -> np.ndarray:
        """A row of words with any action of the agent."""
        row = self._sim.action_table.idle.copy()
        for word in self._words:
            if word["n"]:
                row[word["column"]] = rng.integers(word["n"])
            else:
                row.view(np.float64)[word["column"]] = rng.uniform(word["low"], word["high"])
        return row

    def choices(self, row: np.ndarray) -> Any:
        """The agent's choices in a row of words, and whose they are; real numbers left aside."""
        return self.slot, *row[self._words["column"][self._words["n"] > 0]].tolist()

    def comes_back(self, row: np.ndarray, place: str, script: str | None) -> bool:
        """Whether the codec can write the action in a row of words; demands that it reads what it has written."""
        self._sim.buffers.action_words[0] = row
        action = self._action()
        said = action if self._encode is None else self.say(action, place)
        if said is None or (self._encode is None and not self.is_plain):
            return False
        given = self._words_of(action, place)
        read = self.read(said, place)
        chosen = self._words["n"] > 0
        if script is not None or self.is_plain or np.array_equal(given[chosen], read[chosen]):
            who = "" if script is None else f" script {script!r} plays"
            self._demand_same(given, read, f"{place}:{who}", said)
        again = self.say(self._action(), place) if self._encode is not None else said
        if again is not None:
            self._demand_same(read, self.read(again, place), f"{place}: read before was", again, rounded=0.0)
        return True

    def _action(self) -> Any:
        """What is written in the agent's words, in the form of a face without a codec."""
        block = self.plain.blocks[0]
        own = block.actions[0].reshape(-1)[0] if block.actions.dtype.names else block.actions[0].reshape(-1)
        if block.actions.dtype.names:
            return {name: np.array(own[name]) for name in block.actions.dtype.names}
        shape = self.plain.action_space.shape or ()
        return own.copy().reshape(shape) if shape else own[0]

    def say(self, action: Any, place: str) -> Any:
        """How a user writes an action; None where it cannot be written."""
        assert self._encode is not None
        try:
            said = self._encode(self.io.agent_view(), action)
        except ValueError:
            return None
        require(said in self.io.action_space, f"{place}: encode_action gives {said!r}, not in its action space")
        return said

    def read(self, said: Any, place: str) -> np.ndarray:
        """The words that a match takes for what is said."""
        codec: Any = self.io.codec
        try:
            read = self._words_of(codec.decode(self.io.agent_view(), said), place)
            self.io.write_one(said)
            written = self._sim.buffers.action_words[0, self._words["column"]].copy()
            self._demand_same(read, written, f"{place}: decoded it is", said, rounded=0.0)
            return read
        except ActionError as error:
            require(False, f"{place}: {said!r} is decoded to what is no action: {error}")
        except ValueError as error:
            require(False, f"{place}: {said!r}, as encode_action writes it, is refused: {error}")
        raise AssertionError

    def _words_of(self, action: Any, place: str) -> np.ndarray:
        self.plain.write_one(action)
        return self._sim.buffers.action_words[0, self._words["column"]].copy()

    def _demand_same(
        self, expected: np.ndarray, found: np.ndarray, place: str, said: Any, rounded: float = ROUNDED
    ) -> None:
        for word, name, ours, theirs in zip(self._words, self._names, expected, found, strict=True):
            if word["n"] == 0:
                ours, theirs = ours.view(np.float64), theirs.view(np.float64)
                same = abs(ours - theirs) <= rounded * (word["high"] - word["low"])
            else:
                same = ours == theirs
            require(same, f"{place} {name} = {ours}, said as {said!r}, which is decoded to {theirs}")

    def compare_demonstration(self, subject: Subject, record: np.ndarray, place: str) -> None:
        """Demands that a demonstration in the codec's info is what one of the scripts plays from this record."""
        codec: Any = self.io.codec
        said = codec.info(self.io.agent_view()).get("demonstration") if self.io.tells else None
        if not said:
            return
        read, played = self.read(said, place), []
        for script in subject.game.scripts:
            self._sim.load_states(record)
            for team in subject.game.teams:
                self._sim.set_opponent(team, script)
            self._sim.step()
            played.append(self._sim.buffers.action_words[0, self._words["column"]].copy())
        self._sim.load_states(record)
        ours = any(np.array_equal(read, words) for words in played)
        require(ours, f"{place}: the demonstration {said!r} is decoded to {read.tolist()}, which no script plays")


def _samples(subject: Subject, name: str) -> tuple[int, int]:
    """Reads samples one by one, written anew, and of many matches at once."""
    sim, game = subject.batch(LANES, autoreset_mode="off"), subject.game
    alone = subject.batch(1, autoreset_mode="off")
    player, counts = Player(sim), [0, 0]
    sim.reset(seed=subject.draw.seed())
    every = [(AgentIO(sim, (slot,), codec=name), _Ways(alone, name, slot)) for slot in range(len(game.agents))]
    for many, _ in every:
        many.action_space.seed(subject.draw.seed() % 2**31)
    for number in subject.rounds(3, 6, 60):
        for (many, ways), agent in zip(every, game.agents, strict=True):
            place = f"codec {name!r}, {agent}, step {number}"
            samples = list(_spoken(many, ways, sim, alone, place))
            counts[0] += len(samples)
            if len(samples) == LANES:
                counts[1] += LANES
                _at_once(many, ways, sim, alone, samples, subject.draw.mask("lanes that move", LANES), place)
        player.play(sim)
        sim.step()
        sim.reset(sim.terminated | sim.truncated)
    return counts[0], counts[1]


def _spoken(many: AgentIO, ways: _Ways, sim: Any, alone: Any, place: str) -> Iterator[tuple[Any, np.ndarray]]:
    """Samples that each lane's codec understands, and their words; plain ones are other numbers in every lane."""
    codec: Any = many.codec
    for lane in range(LANES):
        alone.load_states(sim.states[lane : lane + 1])
        said = many.action_space.sample()
        try:
            action = codec.decode(ways.io.agent_view(), said)
        except ValueError:
            continue
        row = sim.buffers.action_words[lane].copy()
        ways._sim.buffers.action_words[0] = row
        words = ways._words_of(action, place)
        if ways.is_plain:
            expected = ways._words_of(said, place)
            ways._demand_same(expected, words, f"{place}: without the codec it is", said, rounded=0.0)
        elif ways._encode is not None:
            ways._words_of(action, place)
            again = ways.say(ways._action(), place)
            if again is not None:
                ways._demand_same(words, ways.read(again, place), f"{place}: read before was", again, rounded=0.0)
        yield said, words


def _at_once(many: AgentIO, ways: _Ways, sim: Any, alone: Any, samples: list, which: np.ndarray, place: str) -> None:
    """What `AgentIO.write` makes of the actions of all lanes, and of some."""
    columns = ways._words["column"]
    for chosen in (None, which):
        before = sim.buffers.action_words.copy()
        many.write([said for said, _ in samples], chosen)
        for lane, (said, words) in enumerate(samples):
            expected = words if chosen is None or chosen[lane] else before[lane, columns]
            found = unlike(expected, sim.buffers.action_words[lane, columns])
            require(not found, f"{place}, lane {lane} of {LANES}: {said!r} is {found} (decoded alone, and with others)")
