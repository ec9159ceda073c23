"""Codecs: encoded values lie in the declared spaces, and a refused text changes nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from palaestra.core.contract.actions import ActionError
from palaestra.core.faces.agent_io import NO_CODEC, AgentIO
from palaestra.testing.checks.action_checks import Untouched
from palaestra.testing.checks.buffer_checks import Memory, arrays_in
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import Player, SpacePlayer
from palaestra.testing.snapshot_view import unlike
from palaestra.testing.subject import Subject

GIBBERISH = "zzz no such action 8f3a"
LANES = 4
SHORT = 5
"""Decisions of a match whose last observations are encoded."""


@conformance(order=1101)
def codec_results_are_in_spaces(subject: Subject) -> None:
    """Every codec encodes each agent's observations into its space, and decodes samples of its action space.

    What it decodes is a valid action. A codec that is not total may refuse with a ValueError; then nothing has moved.
    Encoding changes nothing, and last observations of matches can be encoded too.
    """
    if not subject.game.codecs:
        raise Skipped("the game has no codecs")
    encoded = tried = understood = 0
    for name in subject.game.codecs:
        face = subject.parallel(codec=name, mask=None, out_of_range="raise")
        face.reset(seed=subject.draw.seed())
        player = Player(face.sim)
        for agent_io in face.agent_ios.values():
            agent_io.action_space.seed(subject.draw.seed() % 2**31)
        world = world_bytes(face.sim)
        for number in subject.rounds(15, 60, 600):
            player.play(face.sim)
            before = face.sim.states.tobytes(), face.sim.buffers.mask_bytes.tobytes(), _shown(face.sim)
            decoded = {}
            for agent, agent_io in face.agent_ios.items():
                place = f"codec {name!r}, {agent}, step {number}"
                _encode(agent_io, place)
                encoded += 1
                sample = agent_io.action_space.sample()
                tried += 1
                if (action := _decode(agent_io, sample, place)) is not None:
                    decoded[agent] = action
            after = face.sim.states.tobytes(), face.sim.buffers.mask_bytes.tobytes(), _shown(face.sim)
            require(before == after, f"codec {name!r}, step {number}: encode or decode changes what it looks at")
            understood += len(decoded)
            _play(face.sim, subject.game, decoded, name)
            if face.sim.terminated[0] or face.sim.truncated[0]:
                face.sim.reset()
        require(world_bytes(face.sim) == world, f"codec {name!r} changes the world")
        _refuses_gibberish(face, name, subject.draw.seed())
        encoded += _encode_finals(subject, name)
    subject.note(
        f"{encoded} observations of {', '.join(subject.game.codecs)}, {understood} of {tried} random actions understood"
    )


@conformance(order=1102)
def codec_results_are_copies(subject: Subject) -> None:
    """No two observations that a codec encodes share an array, a list or a dict, not even one that is read-only.

    Nor does a later call change an earlier observation. A caller may write into what it got, and keep it.
    """
    if not subject.game.codecs:
        raise Skipped("the game has no codecs")
    for name in subject.game.codecs:
        face = subject.parallel(codec=name, mask=None)
        face.reset(seed=subject.draw.seed())
        player = Player(face.sim)
        kept: list[tuple[Any, Any]] = []
        owner: dict[int, str] = {}  # of lists and dicts by their id: what is kept keeps its id
        arrays: list[tuple[str, np.ndarray]] = []
        for number in range(2 * SHORT):
            for agent, agent_io in face.agent_ios.items():
                place, memory = f"codec {name!r}, {agent}, call {number}", Memory(arrays)
                encoded = agent_io.observe_lane()
                kept.append((encoded, copy.deepcopy(encoded)))
                for part in _editable(encoded):
                    is_array = isinstance(part, np.ndarray)
                    earlier = memory.shared_by(part) if is_array else owner.setdefault(id(part), place)
                    what = f"the array {part.dtype} {part.shape}" if is_array else f"the {type(part).__name__}"
                    require(earlier in ("", place), f"{place}: {what} is what an earlier call gave ({earlier})")
                    arrays += [(place, part)] if is_array else []
            if number % 2 == 0:
                continue  # encodes the same position once more
            player.play(face.sim)
            face.sim.step()
            if face.sim.terminated[0] or face.sim.truncated[0]:
                face.sim.reset()
        for encoded, as_returned in kept:
            found = unlike(as_returned, encoded)
            require(not found, f"codec {name!r}: a later call changed an observation: {found} (then and now)")


def _editable(value: Any) -> Iterator[Any]:
    """The arrays, lists and dicts in an encoded observation."""
    if isinstance(value, np.ndarray | list | Mapping):
        yield value
    for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ():
        yield from _editable(part)


def _encode(agent_io: AgentIO, place: str, lane: int = 0, final: bool = False) -> None:
    encoded = agent_io.observe_lane(lane, final)
    require(encoded in agent_io.observation_space, f"{place}: {encoded!r} is not in its space")
    if agent_io.tells:
        info: dict[str, Any] = {}
        lanes = np.arange(agent_io.sim.num_envs) == lane
        agent_io.tell_lanes(info, lanes, final)
        told = {name: values[lane] for name, values in info.items() if not name.startswith("_")}
        require(_is_plain(told), f"{place}: info holds more than plain Python values: {told!r}")


def _is_plain(value: Any) -> bool:
    """Whether a value is made of what JSON holds alone."""
    if isinstance(value, dict):
        return all(type(name) is str and _is_plain(part) for name, part in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def _decode(agent_io: AgentIO, action: Any, place: str) -> Any:
    """The action as the plain face takes it; None where the codec does not understand it."""
    codec: Any = agent_io.codec
    try:
        return codec.decode(agent_io.agent_view(), action)
    except ValueError as error:
        is_total = getattr(codec, "total", False)
        require(not is_total, f"{place}: {action!r} of its action space is refused ({error}) by a total codec")
    except Exception as error:
        require(False, f"{place}: decoding {action!r} raises {type(error).__name__} ({error}), not ValueError")
    return None


def _play(sim: Any, game: Any, decoded: dict[str, Any], name: str) -> None:
    """Plays one decision with what was understood; a `Player` has written the rest."""
    try:
        for agent, action in decoded.items():
            AgentIO(sim, (game.agents.index(agent),), codec="none", observation="dict").write_one(action)
        sim.step()
    except ActionError as error:
        require(False, f"codec {name!r}: a sample of its action space is decoded to what is no action: {error}")


def _refuses_gibberish(face: Any, name: str, seed: int) -> None:
    face.reset(seed=seed)
    if any(getattr(agent_io.codec, "total", False) for agent_io in face.agent_ios.values()):
        return  # it takes everything
    untouched = Untouched(face.sim)
    what = f"codec {name!r}: the action {GIBBERISH!r}"
    try:
        face.step(dict.fromkeys(face.agents, GIBBERISH))
    except ValueError:
        untouched.check(what)
    except Exception as error:
        require(False, f"{what} raises {type(error).__name__} ({error}), not ValueError")
    else:
        require(False, f"{what} is not refused")


def _encode_finals(subject: Subject, name: str) -> int:
    """Encodes the last observations of matches that ended under same_step; returns how many."""
    sim = subject.batch(2, autoreset_mode="same_step", horizon=SHORT)
    sim.reset(seed=subject.draw.seed())
    agent_ios = {agent: AgentIO(sim, (slot,), codec=name) for slot, agent in enumerate(subject.game.agents)}
    player, count = Player(sim), 0
    for _ in range(2 * SHORT):
        player.play(sim)
        sim.step()
        for lane in np.flatnonzero(sim.terminated | sim.truncated).tolist():
            for agent, agent_io in agent_ios.items():
                _encode(agent_io, f"codec {name!r}, {agent}, last observation of a match", lane, final=True)
                count += 1
    return count


@conformance(order=1104)
def codec_lanes_are_independent(subject: Subject) -> None:
    """Each lane of a batch is encoded and decoded as if it were alone, in any order and any number of times.

    A new codec encodes a match like one that has encoded many before.
    """
    game, draw = subject.game, subject.draw
    if not game.codecs:
        raise Skipped("the game has no codecs")
    sim, alone = subject.batch(LANES, autoreset_mode="off"), subject.batch(1, autoreset_mode="off")
    player, encoded = Player(sim), 0
    interfaces = [
        tuple(AgentIO(held, (slot,), codec=name) for held in (sim, alone))
        for name in game.codecs
        for slot in range(len(game.agents))
    ]
    sim.reset(seed=draw.seed())
    for number in subject.rounds(4, 8, 60):
        _decodes_by_lane(sim, alone, game)
        batches = [ours.observe() for ours, _ in interfaces]
        for lane in reversed(range(LANES)):
            alone.load_states(sim.states[lane : lane + 1])
            for whole, (ours, theirs) in zip(batches, interfaces, strict=True):
                for again in (theirs.observe_one(), ours.observe_lane(lane)):
                    found = unlike(whole[lane], again)
                    place = f"{game.agents[ours.slots[0]]}, lane {lane}, step {number}"
                    require(not found, f"codec {type(ours.codec).__name__}, {place}: {found} (in a batch, and again)")
                    encoded += 1
        for _ in range(3):
            player.play(sim)
            sim.step()
        sim.reset(sim.terminated | sim.truncated)
        sim.reset(np.arange(LANES) == number % LANES)  # lanes are not in step with each other
        player.play(sim)
        sim.step()
    unused = subject.game_anew().codecs
    for lane in range(LANES):
        alone.load_states(sim.states[lane : lane + 1])
        for name in game.codecs:
            for slot, agent in enumerate(game.agents):
                used, other = (AgentIO(alone, (slot,), codec=name) for _ in range(2))
                other.codec = copy.deepcopy(unused[name])
                found = unlike(used.observe_one(), other.observe_one())
                require(not found, f"codec {name!r}, {agent}, lane {lane}: {found} (after other matches, and as new)")
    subject.note(f"{encoded} observations of {LANES} lanes")


class _Echo:
    """A codec whose actions are those of the plain face; it notes which match it was shown."""

    def __init__(self) -> None:
        self.lanes: list[int] = []

    def decode(self, view: Any, action: Any) -> Any:
        self.lanes.append(int(view.record["steps"]))
        return action


def _decodes_by_lane(sim: Any, alone: Any, game: Any) -> None:
    """What each lane's view decodes is written into that lane, whatever the game's codecs understand."""
    before, steps = sim.buffers.action_words.copy(), sim.states["steps"].copy()
    sim.states["steps"] = np.arange(LANES)  # lanes are told apart by it
    for slot, agent in enumerate(game.agents):
        face = AgentIO(sim, (slot,), codec=NO_CODEC, observation="dict")
        actions = [SpacePlayer(face.action_space, lane, slot).act() for lane in range(LANES)]
        plain, expected = AgentIO(alone, (slot,), codec=NO_CODEC, observation="dict"), []
        for lane, action in enumerate(actions):
            alone.buffers.action_words[0] = before[lane]
            plain.write_one(action)
            expected.append(alone.buffers.action_words[0].copy())
        echo: Any = _Echo()
        face.codec = echo
        face.write(actions)
        for lane in range(LANES):
            require(
                echo.lanes[lane] == lane, f"{agent}: an action of lane {lane} is decoded with lane {echo.lanes[lane]}"
            )
            same = np.array_equal(sim.buffers.action_words[lane], expected[lane])
            require(same, f"{agent}: what was decoded of lane {lane} is not what is written there")
        sim.buffers.action_words[...] = before
    sim.states["steps"] = steps


def _shown(sim: Any) -> bytes:
    return sim.buffers.observations.tobytes()


def world_bytes(sim: Any) -> list[bytes]:
    """The arrays of the game's `world`, those of nested tuples too."""
    return [array.tobytes() for _, array in arrays_in(sim.game.world, "world")]
