"""Fixed worlds: thousands of entities, the passages about them as text, and questions that searches can answer.

The same numbers give the same world on all machines. Nothing is known elsewhere: names are made of syllables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from palaestra.core.rng import GOLDEN, TO_UNIT, mix64
from palaestra.games.search.language import (
    ALIAS,
    BOTH,
    CURRENT,
    FIRST_YEAR,
    HOPS,
    KINDS,
    LITERAL,
    LITERALS,
    NO,
    NOTHING,
    OLDER,
    QUESTIONS,
    RELATIONS,
    RUMOUR,
    SAME,
    SECOND_WORDS,
    SECONDS,
    SENTENCES,
    STALE,
    STEP_OF_PATH,
    YEAR,
    YEAR_RELATION,
    YEARS,
    YES,
    stems,
)
from palaestra.games.search.library import MENTIONS, MOST_HOPS

SECOND_OBJECTS = 0.5
SPLITS = ("train", "validation", "test")
HELD_OUT, FEWEST_OF_SPLIT = 0.1, 2
"""Share of the entities of validation and of test; the fewest of each kind: each has another one to lead to."""
SPLITS_BY = ("facts", "first_entity")
"""What tells splits apart: the facts of the paths, or the entity that a question begins with alone."""
FACTS_OF_KINDS = sum(len(relation.subjects) for relation in RELATIONS)
"""Facts of one entity of each kind."""
MOST_PASSAGES = 150_000
"""So many passages have nearly as many names and other names as there are stems."""


class Noise(NamedTuple):
    """What makes a world hard to read; shares from 0 to 1.

    Attributes:
        aliases: Of the mentions in sentences that use an entity's other name; a passage of each entity tells it.
        near_duplicates: Of the entities whose names begin as another one's.
        stale: Of the facts with a passage that tells what is no longer so.
        contradicting: Of the facts with a passage that tells what is not so.
    """

    aliases: float = 0.0
    near_duplicates: float = 0.0
    stale: float = 0.0
    contradicting: float = 0.0


class Asked(NamedTuple):
    """Questions, Q of them, as arrays; see `palaestra.games.search.library.Questions`."""

    kind: np.ndarray
    hops: np.ndarray
    relations: np.ndarray
    nodes: np.ndarray
    gold: np.ndarray


class World(NamedTuple):
    """A fixed world of E entities and N passages.

    Attributes:
        names: E names.
        aliases: E other names.
        split: int64 ``[E]``: number of an entity's split.
        part: int64 ``[E]``: facts of an entity lead to entities of its own part: its split, or 0 of all.
        texts: N passages: title, line break, sentence.
        subject: int32 ``[N]``.
        relation: int32 ``[N]``.
        says: int32 ``[N]``.
        objects: int32 ``[N, 2]``.
    """

    names: list[str]
    aliases: list[str]
    split: np.ndarray
    part: np.ndarray
    texts: list[str]
    subject: np.ndarray
    relation: np.ndarray
    says: np.ndarray
    objects: np.ndarray

    def name(self, thing: int) -> str:
        """Name of an entity or a literal."""
        return self.names[thing] if thing >= 0 else LITERALS[LITERAL - thing]


class Stream:
    """Random numbers that depend on the seed alone, on any machine and with any NumPy."""

    def __init__(self, *seeds: int) -> None:
        self._state = np.uint64(0)
        with np.errstate(over="ignore"):
            for seed in seeds:
                self._state = mix64(self._state + GOLDEN + np.uint64(seed))

    def shares(self, count: int) -> np.ndarray:
        """float64 ``[count]`` in [0, 1)."""
        with np.errstate(over="ignore"):
            states = self._state + GOLDEN * np.arange(1, count + 1, dtype=np.uint64)
            self._state = self._state + GOLDEN * np.uint64(count)
            return (mix64(states) >> np.uint64(11)).astype(np.float64) * TO_UNIT

    def below(self, most: int | np.ndarray, count: int) -> np.ndarray:
        """int64 ``[count]`` from 0 to below ``most``, a number or one each."""
        return (self.shares(count) * most).astype(np.int64)


def make_world(passages: int, seed: int, noise: Noise, split_by: str = SPLITS_BY[0]) -> World:
    """Draws a world.

    Args:
        passages: Number of passages, at least 100 and at most `MOST_PASSAGES`.
        seed: Of the world, 0 or more.
        noise: See `Noise`.
        split_by: One of `SPLITS_BY`. By ``"facts"``, no fact leads from an entity to one of another split: a path, and
            all facts that a question needs, are in one split.
    """
    each = FACTS_OF_KINDS * (1 + noise.stale + noise.contradicting) + KINDS * (noise.aliases > 0)
    entities = max(math.ceil(passages / each), len(SPLITS) * FEWEST_OF_SPLIT) * KINDS
    while True:
        stream = Stream(1, seed)
        split = _split(stream, entities)
        part = split if split_by == SPLITS_BY[0] else np.zeros_like(split)
        if len((facts := _facts(stream, part, noise))[0]) >= passages:
            break
        entities += max(entities // 50 // KINDS, 1) * KINDS
    subject, relation, says, objects = facts
    names, aliases = _names(stream, entities, noise.near_duplicates)
    order = np.lexsort((says, np.where(relation < 0, len(RELATIONS), relation), subject))[:passages]
    subject, relation, says, objects = (a[order].astype(np.int32) for a in (subject, relation, says, objects))
    world = World(names, aliases, split, part, [], subject, relation, says, objects)
    return world._replace(texts=_texts(stream, world, noise.aliases))


def _split(stream: Stream, entities: int) -> np.ndarray:
    """The split of each entity, int64 ``[E]``; as many of each kind."""
    count = entities // KINDS
    held_out = max(round(HELD_OUT * count), FEWEST_OF_SPLIT)
    ends = count - 2 * held_out, count - held_out
    return np.repeat(np.searchsorted(ends, stream.shares(count).argsort().argsort(), side="right"), KINDS)


def _names(stream: Stream, entities: int, near_duplicates: float) -> tuple[list[str], list[str]]:
    """Names and other names, all different."""
    words = [word.capitalize() for word in stems(2 * entities)]
    seconds = stream.below(SECONDS, entities)
    is_twin, twins = stream.shares(entities) < near_duplicates, stream.below(np.arange(entities), entities)
    names, taken = list[str](), set[str]()
    for k in range(entities):
        second = SECOND_WORDS[k % KINDS][seconds[k]]
        name = f"{names[twins[k]].split()[0]} {second}" if k and is_twin[k] else ""
        names.append(f"{words[k]} {second}" if not name or name in taken else name)
        taken.add(names[-1])
    return names, words[entities:]


def _facts(stream: Stream, part: np.ndarray, noise: Noise) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Subject, relation, says and objects of all passages, relation after relation."""
    parts = list[tuple[np.ndarray, int, np.ndarray, np.ndarray]]()
    entities = len(part)
    everybody = np.arange(entities)
    for number, relation in enumerate(RELATIONS):
        subjects = everybody[np.isin(everybody % KINDS, relation.subjects)]
        first = _objects(stream, relation.objects, part, subjects)
        second = np.full(len(subjects), NOTHING)
        if relation.is_many:
            other = _objects(stream, relation.objects, part, subjects)
            has_two = (stream.shares(len(subjects)) < SECOND_OBJECTS) & (other != first)
            second[has_two] = other[has_two]
        says = np.where(second == NOTHING, CURRENT, BOTH)
        parts.append((subjects, number, says, np.column_stack([first, second])))
        for share, kind in ((noise.stale, STALE), (noise.contradicting, RUMOUR)):
            other = _objects(stream, relation.objects, part, subjects)
            is_told = (stream.shares(len(subjects)) < share) & (other != first)
            objects = np.column_stack([other, np.full(len(other), NOTHING)])
            parts.append((subjects[is_told], number, np.full(is_told.sum(), kind), objects[is_told]))
    if noise.aliases > 0:
        nothing = np.full((entities, 2), NOTHING)
        parts.append((everybody, NOTHING, np.full(entities, ALIAS), nothing))
    subject, says, objects = (np.concatenate([part[k] for part in parts]) for k in (0, 2, 3))
    return subject, np.concatenate([np.full(len(part[0]), part[1]) for part in parts]), says, objects


def _objects(stream: Stream, kind: int, part: np.ndarray, subjects: np.ndarray) -> np.ndarray:
    """An entity of a kind and of the subject's part for each subject, never itself; a year for the kind of years."""
    if kind == YEAR:
        return LITERAL - FIRST_YEAR - stream.below(len(YEARS), len(subjects))
    of_kind = np.arange(kind, len(part), KINDS)
    of_kind = of_kind[np.argsort(part[of_kind], kind="stable")]
    first, end = (np.searchsorted(part[of_kind], part[subjects], side) for side in ("left", "right"))
    is_same = subjects % KINDS == kind
    place = first + stream.below(end - first - is_same, len(subjects))
    return of_kind[place + (is_same & (of_kind[place] >= subjects))]


def _texts(stream: Stream, world: World, aliases: float) -> list[str]:
    """The passages as text."""
    count = len(world.subject)
    choice, by_alias = stream.shares(count), stream.shares(3 * count).reshape(count, 3) < aliases

    def called(thing: int, is_alias: bool) -> str:
        return world.aliases[thing] if is_alias and thing >= 0 else world.name(thing)

    texts = list[str]()
    columns = (a.tolist() for a in (world.subject, world.relation, world.says, world.objects, choice, by_alias))
    for s, r, says, (o, p), share, flags in zip(*columns, strict=True):
        sentence = SENTENCES[says][int(share * len(SENTENCES[says]))]
        if says == ALIAS:
            text = sentence.format(s=world.names[s], o=world.aliases[s])
        else:
            second = called(p, flags[2]) if p != NOTHING else ""
            text = sentence.format(r=RELATIONS[r].noun, s=called(s, flags[0]), o=called(o, flags[1]), p=second)
        texts.append(f"{world.names[s]}\n{text[0].upper()}{text[1:]}")
    return texts


# -- questions ---------------------------------------------------------------------------------------------------------


def draw_questions(
    world: World, seed: int, count: int, hops: tuple[int, int], compare: bool, split: str | None
) -> Asked:
    """Draws different questions of a world; those about a split's entities, if one is named.

    Args:
        world: The world.
        seed: Of the questions.
        count: How many are drawn for all splits; equal ones are asked once.
        hops: Fewest and most passages that a path needs.
        compare: Whether they compare two entities.
        split: One of `SPLITS`, that of the entity that a question begins with.

    Returns:
        The questions in an order that tells nothing.
    """
    stream = Stream(2, seed)
    entities = len(world.names)
    fact = np.full((entities, len(RELATIONS)), NOTHING)
    is_fact = (world.says == CURRENT) | (world.says == BOTH)
    fact[world.subject[is_fact], world.relation[is_fact]] = np.flatnonzero(is_fact)
    is_single = (fact >= 0) & (world.says[fact] == CURRENT)
    objects = np.where(is_single, world.objects[fact, 0], NOTHING)
    if compare:
        drawn = _comparisons(stream, count, fact, objects, world.part)
    else:
        numbers = range(hops[0], hops[1] + 1)
        drawn = _joined([_paths(stream, count // len(numbers), n, fact, objects) for n in numbers])
    _, first = np.unique(np.column_stack([drawn.kind, drawn.relations, drawn.nodes]), axis=0, return_index=True)
    if split is not None:
        first = first[world.split[drawn.nodes[first, 0]] == SPLITS.index(split)]
    first = first[stream.shares(len(first)).argsort()]
    return Asked(*(array[first].astype(np.int32) for array in drawn))


def _paths(stream: Stream, count: int, hops: int, fact: np.ndarray, objects: np.ndarray) -> Asked:
    """Paths of ``hops`` relations over entities that differ; those that end early are left out."""
    start = stream.below(len(fact), count)
    nodes, relations, gold = (np.full((count, MOST_HOPS + k), NOTHING) for k in (1, 0, 0))
    nodes[:, 0], at, goes_on = start, start, np.ones(count, bool)
    for hop in range(hops):
        to = objects[at]
        options = (to >= 0) & ~(to[:, :, None] == nodes[:, None, : hop + 1]).any(axis=2)
        if hop == hops - 1:
            options |= to <= LITERAL
        number = options.sum(axis=1)
        goes_on &= number > 0
        wanted = stream.below(number, count)
        relation = (options.cumsum(axis=1) == wanted[:, None] + 1).argmax(axis=1)
        relations[:, hop], gold[:, hop] = relation, fact[at, relation]
        at = np.where(goes_on, objects[at, relation], 0)
        if hop + 1 < MOST_HOPS:
            nodes[:, hop + 1] = at
    nodes[:, MOST_HOPS] = at
    asked = Asked(np.full(count, HOPS), np.full(count, hops), relations, nodes, gold)
    return Asked(*(array[goes_on] for array in asked))


def _comparisons(stream: Stream, count: int, fact: np.ndarray, objects: np.ndarray, part: np.ndarray) -> Asked:
    """Pairs of entities of a kind and a part: as often the same object as not, and as often years as others."""
    parts = list[Asked]()
    subjects, relations = np.nonzero(objects != NOTHING)
    to = objects[subjects, relations]
    for kind in (SAME, SAME, OLDER):
        wants_same = kind == SAME and not parts
        chosen = np.flatnonzero((relations == YEAR_RELATION) == (kind == OLDER))
        order = chosen[np.lexsort((to[chosen], relations[chosen], part[subjects[chosen]]))]
        group = part[subjects[order]] * len(RELATIONS) + relations[order]
        group = group * (len(fact) + 1) + (to[order] + 1) * wants_same
        starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        sizes = np.diff(np.r_[starts, len(order)])
        place = stream.below(len(order), count // 4 if kind == SAME else count // 2)
        of = np.searchsorted(starts, place, side="right") - 1
        other = starts[of] + stream.below(sizes[of], len(place))
        first, second, relation = subjects[order[place]], subjects[order[other]], relations[order[place]]
        ours, theirs = to[order[place]], to[order[other]]
        is_kind = (first != second) & (first % KINDS == second % KINDS) & ((ours == theirs) == wants_same)
        answer = np.where(ours > theirs, first, second)  # of years, a later one is a lower number
        if kind == SAME:
            answer = LITERAL - np.where(ours == theirs, YES, NO)
        nodes, path, gold = (np.full((len(place), MOST_HOPS + k), NOTHING) for k in (1, 0, 0))
        nodes[:, 0], nodes[:, 1], nodes[:, MOST_HOPS] = first, second, answer
        path[:, :2], gold[:, 0], gold[:, 1] = relation[:, None], fact[first, relation], fact[second, relation]
        asked = Asked(np.full(len(place), kind), np.full(len(place), 2), path, nodes, gold)
        parts.append(Asked(*(array[is_kind] for array in asked)))
    even = min(len(parts[0].kind), len(parts[1].kind))
    return _joined([*(Asked(*(array[:even] for array in part)) for part in parts[:2]), parts[2]])


def _joined(parts: Sequence[Asked]) -> Asked:
    return Asked(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def question_texts(world: World, asked: Asked, seed: int) -> list[str]:
    """The questions in words."""
    shares = Stream(3, seed).shares(len(asked.kind)).tolist()
    texts = list[str]()
    rows = zip(*(array.tolist() for array in asked[:4]), shares, strict=True)
    for kind, hops, relations, nodes, share in rows:
        template = QUESTIONS[kind][int(share * len(QUESTIONS[kind]))]
        path = " ".join(STEP_OF_PATH.format(r=RELATIONS[r].noun) for r in reversed(relations[:hops]))
        other = world.names[nodes[1]] if kind != HOPS else ""
        texts.append(template.format(path=path, s=world.names[nodes[0]], o=other, r=RELATIONS[relations[0]].noun))
    return texts


def path_queries(world: World, asked: Asked, hop: int) -> list[str]:
    """What one who follows the paths searches for in a hop; an empty text behind the end."""
    columns = (a.tolist() for a in (asked.nodes[:, hop], asked.relations[:, hop], asked.hops > hop))
    return [f"{world.names[n]} {RELATIONS[r].noun}" if is_on else "" for n, r, is_on in zip(*columns, strict=True)]


def is_followable(world: World, asked: Asked, found: np.ndarray) -> np.ndarray:
    """Which questions are asked: those whose passages are found, and whose answers stay in mind.

    Args:
        world: The world.
        asked: The questions.
        found: int32 ``[Q, 4, 3]``: passages of the searches along the path.
    """
    is_on = np.arange(MOST_HOPS) < asked.hops[:, None]
    is_found = ((found == asked.gold[:, :, None]).any(axis=2) | ~is_on).all(axis=1)
    things = np.column_stack([world.subject, world.objects])
    kinds, hops, nodes = asked.kind.tolist(), asked.hops.tolist(), asked.nodes.tolist()
    for k in np.flatnonzero(is_found).tolist():
        mentioned = dict.fromkeys(nodes[k][:1] if kinds[k] == HOPS else nodes[k][:2])
        if kinds[k] == SAME:
            mentioned |= {LITERAL - YES: None, LITERAL - NO: None}
        for hop in range(hops[k]):
            for thing in things[np.sort(found[k, hop][found[k, hop] >= 0])].ravel().tolist():
                if thing != NOTHING and len(mentioned) < MENTIONS:
                    mentioned[thing] = None
        is_found[k] = all(node in mentioned for node in (*nodes[k][: hops[k]], nodes[k][MOST_HOPS]))
    return is_found
