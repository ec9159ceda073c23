"""Matches of Examiner in words, for its tests."""

from typing import Any

import numpy as np

from palaestra import make_batch
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.run.kernel import KernelSimulation
from palaestra.games.search.examiner_turns import EXAMINER, STUDENT
from palaestra.games.search.language import RELATIONS
from palaestra.games.search.turn_codec import name_of

ID = "palaestra/Examiner-v1"
ROLES = ("examiner", "student")
NOTHING_SAID = np.zeros(17, np.int64)

Facts = dict[tuple[str, str], list[str]]


def exam(lanes: int = 1, seed: Any = 7, **keywords: Any) -> KernelSimulation:
    """A batch whose lanes stand still when their match is over; its rules run as plain Python unless told otherwise."""
    sim = make_batch(ID, lanes, **{"autoreset_mode": "off", "compiled": False, **keywords})
    sim.reset(seed=seed)
    return sim  # type: ignore[return-value]


def decoded(sim: Any, slot: int, turn: str, lane: int = 0) -> np.ndarray:
    return sim.game.codecs["text"].decode(AgentIO(sim, (slot,)).agent_view(lane), turn)


def shown(sim: Any, slot: int, lane: int = 0) -> str:
    return sim.game.codecs["text"].encode(AgentIO(sim, (slot,)).agent_view(lane))


def told(sim: Any, lane: int = 0) -> dict[str, Any]:
    return sim.game.codecs["text"].info(AgentIO(sim, (STUDENT,)).agent_view(lane))


def say(sim: Any, *turns: str, other: np.ndarray = NOTHING_SAID) -> list[list[float]]:
    """Plays turns of the agent that is to move in the only lane; both agents' rewards."""
    pays = []
    for turn in turns:
        slot = STUDENT if sim.info["accepted"][0] else EXAMINER
        given = [other, other]
        given[slot] = decoded(sim, slot, turn)
        sim.step({role: one[None, None] for role, one in zip(ROLES, given, strict=True)})
        pays.append(sim.rewards[0].tolist())
    return pays


def row(sim: Any, slot: int, lane: int = 0) -> Any:
    return AgentIO(sim, (slot,)).agent_view(lane).row


def play(sim: Any) -> np.ndarray:
    """Lets scripts play all matches to their ends; returns ``[N, 2]``."""
    returns = np.zeros((sim.num_envs, 2))
    while not (over := sim.terminated | sim.truncated).all():
        sim.step(lanes=~over)
        returns += sim.rewards * ~over[:, None]
    return returns


def name(sim: Any, thing: int, lane: int = 0) -> str:
    return name_of(sim.game.captions, sim.states["name_words"][lane], thing)


def facts_of(sim: Any, lane: int = 0) -> Facts:
    """All facts of a world, by entity and relation: what they lead to."""
    state, options, found = sim.states[lane], sim.game.world.library.options, Facts()
    for entity in range(options.entities):
        for relation in range(options.relations):
            passage = state["fact"][entity, relation]
            if passage >= 0:
                objects = [int(thing) for thing in state["objects"][passage] if thing != -1]
                found[name(sim, entity, lane), RELATIONS[relation].noun] = [name(sim, o, lane) for o in objects]
    return found


def walk_of(sim: Any, hops: int, lane: int = 0) -> tuple[list[str], list[str]]:
    """Entities and relations of a path from the examiner's start over entities that differ."""
    facts = facts_of(sim, lane)

    def extend(things: list[str], nouns: list[str]) -> tuple[list[str], list[str]] | None:
        if len(nouns) == hops:
            return things, nouns
        for (subject, noun), objects in facts.items():
            is_new = len(objects) == 1 and objects[0] not in things and not objects[0].isdigit()
            if subject == things[-1] and is_new:
                longer = extend([*things, objects[0]], [*nouns, noun])
                if longer is not None:
                    return longer
        return None

    path = extend([name(sim, int(sim.states["start"][lane]), lane)], [])
    assert path is not None
    return path


def searches(things: list[str], nouns: list[str]) -> list[str]:
    return [f"<search>{thing} {noun}</search>" for thing, noun in zip(things, nouns, strict=False)]


def question(start: str, nouns: list[str]) -> str:
    return f"<question>What is {' '.join(f'the {noun} of' for noun in reversed(nouns))} {start}?</question>"


def asked(hops: int = 2, **keywords: Any) -> KernelSimulation:
    """A match whose examiner has asked a question of some hops."""
    sim = exam(**keywords)
    things, nouns = walk_of(sim, hops)
    say(sim, *searches(things, nouns), question(things[0], nouns))
    assert sim.info["accepted"][0] == 1
    return sim


def end_of(sim: Any) -> str:
    return sim.game.end_reason(int(sim.info["end_reason"][0]))
