"""SearchQA-Reading: words of questions are no words of passages, passages say what is asked, searches show it."""

import functools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from search.readers import NUMBERS, PHRASES, CarefulReader, passages_in

from palaestra import make_batch, registry
from palaestra.core.faces.agent_io import AgentIO
from palaestra.games.search import Index, reading_language, reading_questions, reading_sources, reading_world
from palaestra.games.search.reading_language import EARLIER, FUNCTION_WORDS, RELATIONS, SLOTS, YEAR
from palaestra.games.search.reading_qa import game
from palaestra.games.search.reading_questions import NOBODY
from palaestra.games.search.reading_turns import first_thing
from palaestra.games.search.vocabulary import split

pytestmark = pytest.mark.jitless

ID = "palaestra/SearchQA-Reading-v0"
ALL = [(kind, relation) for kind, some in enumerate(RELATIONS) for relation in some]


def batch(lanes: int = 1, **keywords: Any) -> Any:
    """A batch whose rules run as plain Python."""
    sim = make_batch(ID, lanes, **{"form": "tokens", "autoreset_mode": "off", "compiled": False, **keywords})
    sim.reset(seed=7)
    return sim


@pytest.fixture(scope="module")
def worlds() -> Any:
    """Three worlds, which no test plays."""
    return batch(3)


def texts_of(sim: Any, lane: int) -> list[str]:
    """The passages of a world."""
    passages = reading_sources.passages_of(sim.game.world, sim.states[lane])
    return [reading_sources.text_of(sim.game.captions.words, tokens) for tokens in passages]


def words_of(text: str) -> set[str]:
    for slot in SLOTS:
        text = text.replace(slot, " ")
    return set(split(text))


# -- language ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "relation"), ALL, ids=[relation.noun for _, relation in ALL])
def test_no_word_of_a_question_stands_in_a_sentence_that_tells_the_fact(kind: int, relation: Any) -> None:
    """But words such as "the"."""
    asked = {word for phrase in relation.phrases for text in phrase[:3] for word in split(text)}
    if relation.leads_to == YEAR:
        asked |= set(split(EARLIER[kind][0]))
    for sentence in (*relation.sentences, relation.apart, relation.denial):
        assert not (asked & words_of(sentence)) - FUNCTION_WORDS, sentence
        assert sentence.startswith("{s}") or sentence == relation.denial
    assert all(words_of(phrase.keywords) <= asked for phrase in relation.phrases)


def test_names_have_no_word_of_the_language() -> None:
    """A word that is shown with a capital would have one in sentences, too."""
    names = {*reading_language.second_words(), *reading_language.stems(500)}
    assert not names & set(reading_language.plain_words())


# -- passages ----------------------------------------------------------------------------------------------------------


def test_passages_have_60_to_120_words_and_an_entity_has_two(worlds: Any) -> None:
    for lane in range(3):
        texts = texts_of(worlds, lane)
        titles = [text.partition("\n")[0] for text in texts]
        lengths = [len(split(text.partition("\n")[2])) for text in texts]
        assert min(lengths) >= 60
        assert max(lengths) <= 120
        assert titles[::2] == titles[1::2]
        assert len(set(titles)) == 36
        assert (worlds.states["length"][lane] == [len(split(text)) for text in texts]).all()


def test_the_search_of_a_fresh_world_is_that_of_an_index(worlds: Any) -> None:
    """Numbers and scores, to the bit, of queries of any words of the passages, twice or unknown ones among them."""
    rng = np.random.default_rng(0)
    texts = texts_of(worlds, 0)
    index, record = Index(texts), worlds.states[:1].view(np.recarray)[0].copy()
    queries = [[str(rng.choice(split(text))) for text in rng.choice(texts, length)] for length in (1, 3, 20)]
    years = re.findall(r"\d+", " ".join(texts))[:2]
    for words in (*queries, ["the", "former", "she"], ["it", "latter", "second"], ["two", "three"], years):
        query = " ".join([*words, words[0], "unheardof"])
        tokens = worlds.game.captions.vocabulary.encode([query])[0] + 2
        record.work.words[:] = 0
        record.work.words[: len(tokens)] = tokens
        reading_world.find_fresh(record, worlds.game.world)
        numbers, scores = index.search(query, 3)
        assert np.array_equal(numbers, record.work.numbers[:3])
        hits = int((numbers >= 0).sum())
        assert np.array_equal(scores[:hits], record.work.scores[:hits])


def test_passages_tell_the_facts_of_a_world_and_nothing_else(worlds: Any) -> None:
    """What `CarefulReader` learns from all sentences, pronouns and sums with them, is what was drawn."""
    words = worlds.game.captions.words
    for lane, record in enumerate(worlds.states.view(np.recarray)):
        names = [" ".join(words[token] for token in tokens) for tokens in record.name_words]
        reader, told_by, expected = CarefulReader(), list[set[tuple[str, str]]](), {}
        for text in texts_of(worlds, lane):
            reader.learn(text.partition("\n")[2])
            alone = CarefulReader()
            alone.learn(text.partition("\n")[2])
            told_by.append(set(alone.facts))
        for entity, name in enumerate(names):
            for number, (thing, status) in enumerate(zip(record.objects[entity], record.status[entity], strict=True)):
                told = names[thing] if thing >= 0 else words[-thing]
                told = str(NUMBERS.get(told, told)) if status == reading_world.TOLD else "unknown"
                if status != reading_world.ABSENT:
                    key = name, list(PHRASES)[entity % 3 * 5 + number]
                    expected[key] = told
                    assert key in told_by[record.told_in[entity, number]]
        assert reader.facts == expected


# -- questions ---------------------------------------------------------------------------------------------------------


def shares(monkeypatch: pytest.MonkeyPatch, earlier: int, nobody: int) -> None:
    """Sets the shares of kinds of questions, in per cent."""
    monkeypatch.setattr(reading_questions, "EARLIER_SHARE", earlier)
    monkeypatch.setattr(reading_questions, "NOBODY_SHARE", nobody)


def read(env: Any, seeds: range) -> Iterator[dict[str, Any]]:
    """Plays by `CarefulReader`; what each match tells at its end."""
    for seed in seeds:
        observation, info = env.reset(seed=seed)
        policy, is_over = CarefulReader(), False
        while not is_over:
            observation, _, terminated, truncated, info = env.step(policy.turn(observation))
            is_over = terminated or truncated
        yield info


@pytest.mark.parametrize(("earlier", "nobody"), [(100, 0), (0, 100), (0, 0)])
def test_a_careful_reader_answers_questions_of_each_kind(
    monkeypatch: pytest.MonkeyPatch, earlier: int, nobody: int
) -> None:
    shares(monkeypatch, earlier, nobody)
    env = registry.make_env(ID, compiled=False, hops=(1, 2))
    for info in read(env, range(3)):
        assert info["exact_match"] == 1, info
        assert info["answers"] == ["unknown"] or not nobody
        assert info["question"].startswith("Which of") or not earlier


def test_where_nobody_knows_a_search_shows_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """A passage that says so, or both passages of the entity; what leads to it is known."""
    shares(monkeypatch, 0, 100)
    sim = batch(8, hops=2, topk=2)
    for record in sim.states.view(np.recarray):
        assert record.kind == NOBODY
        assert record.status[record.path[0], record.relations[0] % 5] == reading_world.TOLD
        record.work.words[:] = 0
        record.work.words[:16] = record.queries[1]
        reading_world.find_fresh(record, sim.game.world)
        found = set(record.work.numbers[:2].tolist())
        is_absent = record.status[record.path[1], record.relations[1] % 5] == reading_world.ABSENT
        assert {int(record.gold[1]), int(record.gold[1]) ^ is_absent} <= found


def test_a_number_is_right_as_word_and_as_digits() -> None:
    """A sum is told in two numbers; passages have words, no digits."""
    sim = batch(12, hops=1)
    words = sim.game.captions.words
    pairs = {tuple(words[row[0]] for row in answers[:2]) for answers in sim.states["answers"] if answers[1, 0]}
    assert pairs
    assert pairs <= set(zip(reading_language.NUMBERS, reading_language.DIGITS, strict=True))


def test_another_question_is_asked_about_the_same_world() -> None:
    sim = batch(4)
    sim.set_parameters(question=np.array([0, 1, 2, 0]))
    sim.reset(seed=[5] * 4)
    states = sim.states
    assert all(np.array_equal(states["thing"][0], things) for things in states["thing"])
    assert len({question.tobytes() for question in states["question"]}) == 3
    assert np.array_equal(states["question"][0], states["question"][3])


# -- fixed worlds ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fixed() -> Any:
    """Games of three worlds in one, one of each split, with a few questions; they are drawn once."""
    with pytest.MonkeyPatch.context() as patch:
        draw_once = functools.cache(lambda: draw(sim.game, 3, 0, first_stem))
        draw, sim = reading_sources.draw_worlds, batch()
        first_stem = 2 + len(reading_language.plain_words()) + len(reading_language.second_words())
        patch.setattr(reading_sources, "QUESTIONS_EACH", 2)
        patch.setattr(reading_sources, "SPLIT_OF", (0, 1, 2))
        patch.setattr(reading_sources, "draw_worlds", lambda *_: draw_once())
        yield {split: game(world="fixed", passages=200, split=split) for split in ("train", "validation", "test", None)}


def test_splits_of_a_fixed_world_share_no_passage(fixed: Any) -> None:
    """What questions of one split need lies in worlds of their own; the three together ask what all ask."""
    needed = {split: set(part.world.asked.gold.ravel().tolist()) - {-1} for split, part in fixed.items()}
    assert not needed["train"] & needed["test"] | needed["train"] & needed["validation"]
    assert needed["train"] | needed["validation"] | needed["test"] == needed[None]
    assert min(map(len, needed.values())) > 0


def test_passages_of_a_fixed_world_are_those_of_drawn_ones_with_names_of_their_own(fixed: Any) -> None:
    """Its search is that of the same texts; tokens are the words of the texts."""
    part = fixed[None]
    texts, world = part.captions, part.world
    assert len(texts.passages) == 216
    titles = [text.partition("\n")[0] for text in texts.passages]
    assert len({title.split()[0] for title in titles}) == 108
    for number in (0, 75, 215):
        tokens = world.words[world.starts[number] : world.starts[number + 1]]
        assert reading_sources.text_of(texts.words, tokens) == texts.passages[number]
    query = " ".join(split(texts.passages[100])[:5])
    assert np.array_equal(Index(texts.passages).search(query, 5)[1], texts.index.search(query, 5)[1])


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_careful_reader_answers_questions_of_a_fixed_world(
    fixed: Any, split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        reading_sources, "fixed_world", lambda options, draw: (fixed[split].world, fixed[split].captions)
    )
    env = registry.make_env("palaestra/SearchQA-Reading-Fictional-v0", compiled=False, split=split, passages=200)
    assert all(info["exact_match"] == 1 for info in read(env, range(3)))


# -- scripts and forms -------------------------------------------------------------------------------------------------


@pytest.mark.check
@pytest.mark.parametrize(
    ("script", "low", "high"), [("oracle", 1.0, 1.0), ("closed_book", 0.0, 0.2), ("first_hit", 0.0, 0.4)]
)
def test_scripts_answer_as_often_as_told(script: str, low: float, high: float) -> None:
    """Few matches; all are counted by benchmarks/search_shares.py."""
    sim = batch(8, opponents={"agent": script})
    while not (over := sim.terminated | sim.truncated).all():
        sim.step(lanes=~over)
    assert low <= (sim.info["exact_match"] == 1).mean() <= high
    assert (sim.info["end_reason"] == 2).all()


def test_the_first_thing_of_a_passage_is_the_first_one_of_the_kind_but_its_title() -> None:
    rules = reading_sources.rules()
    stem, second, stop = rules.stem, rules.second, rules.stop
    passage = np.zeros(40, np.int32)
    words = [
        stem + 1,
        second,
        stem + 1,
        second,
        400,
        stem + 2,
        second + 1,
        401,
        rules.number + 3,
        stop,
        rules.year + 34,
    ]
    words += [stem + 3, second + 12, stop]
    passage[: len(words)] = words
    expected = [(stem + 2, second + 1), (stem + 3, second + 12), (stem + 1, second), (rules.year + 34, 0)]
    for kind, wanted in enumerate((*expected, (rules.number + 3, 0))):
        found = np.zeros(2, np.int32)
        first_thing(rules, passage, kind, found)
        assert tuple(found) == wanted


def test_a_passage_is_shown_in_sentences() -> None:
    sim = batch(form="text", topk=2)
    codec, view = sim.game.codecs["text"], AgentIO(sim, (0,)).agent_view(0)
    (name, *_), *_ = codec.info(view)["path"]
    sim.step(codec.decode(None, f"<search>{name}</search>")[None, None])
    shown = list(passages_in(codec.encode(AgentIO(sim, (0,)).agent_view(0))))
    numbers = sim.states["shown"][0][:2]
    assert [f"{title}\n{text}" for title, text in shown] == [texts_of(sim, 0)[number] for number in numbers]
    for _, text in shown:
        assert re.fullmatch(r"([A-Z][A-Za-z0-9 ]+\. ?)+", text)


def test_choices_are_refused() -> None:
    with pytest.raises(ValueError, match="structured"):
        game(form="structured")
