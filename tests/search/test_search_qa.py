"""SearchQA: worlds say what questions need, all forms play the same match, turns are paid as told."""

import hashlib
import re
import time
from typing import Any

import numpy as np
import pytest
from games.play import long_without_the_compiler
from search.search_matches import batch, codec_of, play, say, texts_of, view_of

from palaestra import registry
from palaestra.core.compile.linker import record_view
from palaestra.games.search import Index, fresh_world, library, score
from palaestra.games.search.bm25 import TERM
from palaestra.games.search.language import FIRST_WORD, SECONDS
from palaestra.games.search.queries import QueryTooLongError, split_query
from palaestra.games.search.search_qa import game
from palaestra.games.search.turn_codec import TurnCodec, parse
from palaestra.games.search.turns import ANSWER, NONE, SEARCH

pytestmark = pytest.mark.jitless

IDS = [id for id in registry.ROWS if "SearchQA" in id]
GENERATED = [id for id in IDS if "Custom" not in id and "Reading" not in id]
NOISY = {"aliases": 0.3, "near_duplicates": 0.3, "stale": 0.4, "contradicting": 0.4, "relations": 8}
SMALL = {"world": "fixed", "passages": 600}


def passages_of(sim: Any, lane: int) -> list[str]:
    """The passages of a world that a match drew, in words."""
    record, words = sim.states[lane : lane + 1].view(np.recarray)[0], texts_of(sim).words
    out, found = np.zeros(32, np.int32), []
    for passage in range(int(record.passages)):
        fresh_world.write_passage(record, sim.game.world, passage, out)
        found.append(" ".join(words[token] for token in out if token))
    return found


# -- search ------------------------------------------------------------------------------------------------------------


def assert_found_as_by_an_index(sim: Any, lane: int, lengths: tuple[int, int], count: int) -> None:
    """Numbers and scores, to the bit, of queries of any words of the passages, and an unknown one."""
    texts, rng = passages_of(sim, lane), np.random.default_rng(lane)
    index, record = Index(texts), sim.states[lane : lane + 1].view(np.recarray)[0]
    terms, sentence = record_view(np.zeros(library.MOST_WORDS, TERM)), np.zeros(library.PASSAGE_WORDS, np.int32)
    for _ in range(count):
        words = [str(rng.choice(texts[rng.integers(len(texts))].split())) for _ in range(rng.integers(*lengths))]
        query = " ".join([*words, "unheardof"])
        record.work.words[:] = 0
        tokens = texts_of(sim).vocabulary.encode([query])[0] + 2
        record.work.words[: len(tokens)] = tokens
        if fresh_world.is_long(record.work.words):
            hits = fresh_world.find_long(record, sim.game.world, terms, sentence)
        else:
            hits = fresh_world.find_fresh(record, sim.game.world)
        numbers, scores = index.search(query, sim.game.world.options.topk)
        assert np.array_equal(numbers, record.work.numbers[: len(numbers)])
        assert np.array_equal(scores[:hits], record.work.scores[:hits])


@pytest.mark.check
@pytest.mark.parametrize("noise", [{}, {"relations": 8}, NOISY])
def test_the_search_of_a_fresh_world_is_that_of_an_index(noise: dict[str, Any]) -> None:
    sim = batch(2, **noise)
    for lane in range(sim.num_envs):
        assert_found_as_by_an_index(sim, lane, (1, 9), 10)


def test_a_query_of_more_words_than_masks_have_bits_is_searched_whole() -> None:
    """And more passages are shown if so asked."""
    assert_found_as_by_an_index(batch(form="text", topk=7), 0, (40, 60), 3)


def test_a_query_of_more_words_than_are_searched_is_told_and_not_searched() -> None:
    """Elsewhere its first words would have found the passage; the longest query that is searched finds it."""
    sim = batch(form="text", query_words=20, turn_reward=0.5, malformed_cost=0.25, max_turns=8)
    name, relation, _ = codec_of(sim).info(view_of(sim, 0))["path"][0]
    query = f"{name} {relation}"
    assert say(sim, f"<search>{query}{' zebra' * 18}</search>") == [-0.25]
    assert (sim.info["malformed"][0], sim.states["words_left"][0], sim.states["shown"][0, 0]) == (1, 256, -1)
    refusal = codec_of(sim).encode(view_of(sim, 0))
    assert "more than 20 words or 4096 characters" in refusal
    with pytest.raises(QueryTooLongError, match="more than 20 words or 4096 characters"):
        split_query(f"{query}{' zebra' * 18}", 20)
    assert say(sim, f"<search>{query}{' !' * 2048}</search>") == [-0.25], "characters count, too"
    assert split_query(f"{' ' * 5000}{query}") == split_query(query)
    assert say(sim, f"<search>{query}{' zebra' * 17}</search>") == [0.5]
    assert split_query(" ".join(["a"] * library.MOST_WORDS)) == ["a"] * 64


@pytest.mark.parametrize("topk", [1, 5])
def test_a_search_shows_as_many_passages_as_asked(topk: int) -> None:
    sim = batch(form="text", topk=topk)
    name, relation, _ = codec_of(sim).info(view_of(sim, 0))["path"][0]
    say(sim, f"<search>{name} {relation}</search>")
    found = codec_of(sim).encode(view_of(sim, 0))
    assert found.count("(Title: ") == topk
    assert (sim.states["shown"][0] >= 0).sum() == topk


@pytest.mark.check
@pytest.mark.parametrize("id", ["palaestra/SearchQA-3Hop-v1", "palaestra/SearchQA-Compare-v1"])
def test_searches_that_were_tried_beforehand_find_what_they_find_anew(id: str) -> None:
    """Queries of the question's path, and others of the same names or relations, or with a word more."""
    sim = batch(3, id, max_turns=128, token_budget=4096)
    for lane, record in enumerate(sim.states.view(np.recarray)):
        names, kinds = record.name_words, sim.game.world.language.relation_words
        tried = [*range(record.tried)]
        assert tried
        subjects = [names[entity].tolist() for entity in (*record.nodes[tried], 5, 6)]
        for subject in (*subjects, [subjects[0][0], subjects[-1][1]]):
            for relation in (*record.relations[tried], 0, 1, 2, 3):
                for further in ([], [kinds[0]]):
                    words = [*subject, kinds[relation], *further]
                    turn = np.zeros((3, 1, 17), np.int64)
                    turn[lane, 0, : 1 + len(words)] = SEARCH, *words
                    sim.step(turn, lanes=np.arange(3) == lane)
                    assert record.last_verb == SEARCH
                    fresh_world.find_fresh(record, sim.game.world)
                    assert record.shown.tolist() == record.work.numbers.tolist()


@pytest.mark.check
def test_names_of_a_world_differ() -> None:
    """Also where names shall begin alike; other names are no one's first word."""
    sim = batch(64, near_duplicates=0.9, aliases=0.1)
    for names, aliases in zip(sim.states["name_words"].tolist(), sim.states["alias_words"].tolist(), strict=True):
        assert len({tuple(name) for name in names}) == len(names) == len(set(aliases))
        assert not {name[0] for name in names} & set(aliases)
    assert len({name[0] for name in sim.states["name_words"][0].tolist()}) < 24


@pytest.mark.check
def test_noise_is_drawn_as_often_as_asked() -> None:
    """Shares of passages by what they say."""
    sim = batch(100, stale=0.3, contradicting=0.1, aliases=0.2, relations=8)
    says = np.array(fresh_world.SAYS_OF)
    kinds = np.concatenate([says[s["template"][: s["passages"]]] for s in sim.states])
    names = np.concatenate([s["other_names"][: s["passages"]] for s in sim.states])
    facts = np.isin(kinds, (0, 1)).sum()
    assert (kinds == 2).sum() / facts == pytest.approx(0.3, abs=0.03)
    assert (kinds == 3).sum() / facts == pytest.approx(0.1, abs=0.02)
    assert (kinds == 1).sum() == pytest.approx(0.5 * 8 * 100, abs=50)  # the allies of people
    assert (kinds == 4).sum() == 24 * 100
    assert (names[kinds != 4] & 1).mean() == pytest.approx(0.2, abs=0.02)


@pytest.mark.check
def test_noise_contradicts_the_facts() -> None:
    """Nothing leads to itself, two objects differ, and what is no longer or not so is no fact."""
    fixed = game(**SMALL, form="text", stale=0.9, contradicting=0.9).world.facts
    worlds: list[Any] = [(fixed.subject, fixed.relation, fixed.says, fixed.objects)]
    for s in batch(30, stale=0.9, contradicting=0.9, relations=8).states:
        count, says = s["passages"], np.array(fresh_world.SAYS_OF)
        worlds.append([a[:count] for a in (s["subject"], s["relation"], says[s["template"]], s["objects"])])
    kinds = set()
    for world in worlds:
        facts = dict[tuple[int, int], list[int]]()
        for subject, relation, says, things in zip(*(array.tolist() for array in world), strict=True):
            assert subject not in things
            assert things[0] != things[1]
            assert (says == 1) == (things[1] != -1)
            if says < 2:
                facts[subject, relation] = things
            else:
                assert things[0] != facts[subject, relation][0]
            kinds.add(says)
    assert kinds == {0, 1, 2, 3}


# -- questions ---------------------------------------------------------------------------------------------------------


@long_without_the_compiler
@pytest.mark.parametrize("id", GENERATED)
def test_the_oracle_is_right_in_every_form(id: str) -> None:
    """And is paid the same in each."""
    small = {"passages": 600} if "Fictional" in id else {}
    returns = []
    for form in ("structured", "tokens"):
        sim = batch(24, id, form=form, opponents={"agent": "oracle"}, compiled=True, **small)
        returns.append(play(sim))
        assert (sim.info["exact_match"] == 1).all()
        assert (sim.info["hops_found"] == sim.states["hops"]).all()
    assert np.array_equal(*returns)
    assert (returns[0] >= 1).all(), "it judges right, too"


@pytest.mark.check
@pytest.mark.parametrize(
    ("name", "low", "high"), [("1Hop", 1.0, 1.0), ("3Hop", 1.0, 1.0), ("Compare", 0.9, 1.0), ("Noisy", 0.2, 0.9)]
)
@pytest.mark.parametrize("form", ["structured", "tokens"])
def test_the_first_hit_is_right_where_nothing_must_be_read(name: str, low: float, high: float, form: str) -> None:
    """And only there."""
    sim = batch(24, f"palaestra/SearchQA-{name}-v1", form=form, opponents={"agent": "first_hit"})
    play(sim)
    assert low <= (sim.info["exact_match"] == 1).mean() <= high


def test_the_first_hit_of_a_file_is_its_first_new_word() -> None:
    """Some passages begin with words of the question."""
    sim = batch(12, world="example", form="text", opponents={"agent": "first_hit"})
    sim.step()
    texts, shown = texts_of(sim), sim.states["shown"][:, 0].tolist()
    sim.step()
    assert sim.terminated.all()
    for words, passage, number in zip(sim.states["work"]["words"], shown, sim.states["number"], strict=True):
        asked = {*split_query(texts.questions[number]), "the", "a", "an"}
        expected = next(word for word in split_query(texts.passages[passage]) if word not in asked)
        assert [texts.words[token] for token in words if token] == [expected]


@long_without_the_compiler
@pytest.mark.parametrize("world", [{}, {**SMALL, "relations": None}])
def test_questions_of_very_noisy_worlds_can_be_answered(world: dict[str, Any]) -> None:
    """Searches along the path find each passage, and show the answer while there is room in mind."""
    noise = {"aliases": 0.5, "near_duplicates": 1.0, "stale": 1.0, "contradicting": 1.0}
    keywords: dict[str, Any] = {"relations": 8, **noise, **world, "hops": 3, "max_turns": 8}
    sim = batch(32, form="structured", opponents={"agent": "oracle"}, compiled=True, **keywords)
    assert (play(sim) == 1).all()


@pytest.mark.check
def test_the_closed_book_answers_at_once_with_an_answer_of_the_right_kind() -> None:
    """People, towns, companies, years, different ones."""
    sim = batch(100, opponents={"agent": "closed_book"}, relations=8)
    first = sim.game.world.rules.first_second
    sim.step()
    assert sim.terminated.all()
    given, right = sim.states["work"]["words"], sim.states["answers"][:, 0]
    kinds = [np.where(words[:, 1] > 0, (words[:, 1] - first) // SECONDS, 3) for words in (given, right)]
    assert np.array_equal(kinds[0], kinds[1])
    assert set(kinds[0].tolist()) == {0, 1, 2, 3}
    assert len({tuple(words) for words in given.tolist()}) > 50
    assert (sim.info["exact_match"] == 1).mean() < 0.3


@pytest.mark.check
@pytest.mark.parametrize("keywords", [{"hops": 3, **NOISY}, {"hops": (1, 4), **SMALL}, {"hops": 4, "relations": 2}])
def test_a_path_is_what_its_passages_say(keywords: dict[str, Any]) -> None:
    """Each step has its subject as title and its relation and object in words; steps are joined; the last is right."""
    sim = batch(12, form="text", max_turns=8, **keywords)
    texts, world = texts_of(sim), sim.game.world
    for lane in range(sim.num_envs):
        view = view_of(sim, lane)
        told = codec_of(sim).info(view)
        passages = texts.passages or passages_of(sim, lane)
        for step, number in zip(told["path"], sim.states["gold"][lane], strict=False):
            passage = passages[number].replace("\n", " ")
            subject, noun, thing = step
            assert passage.startswith(subject)
            assert noun in passage.split()
            assert thing in passage or world.options.aliases > 0
            assert "both" not in passage.lower().split()
        ends = [step[2] for step in told["path"]]
        assert [step[0] for step in told["path"][1:]] == ends[:-1]
        assert ends[-1] == told["answers"][0]
        entities = [told["path"][0][0], *ends]
        assert len(set(entities)) == len(entities)
        words = told["question"].rstrip("?.").split()
        nouns = [step[1] for step in told["path"]]
        assert [word for word in words if word in nouns] == nouns[::-1]
        assert " ".join(words[-2:]) == entities[0]


@pytest.mark.check
def test_paths_have_all_lengths_that_were_asked_for() -> None:
    sim = batch(64, hops=(2, 4), relations=8)
    assert set(sim.states["hops"].tolist()) == {2, 3, 4}


@pytest.mark.check
@pytest.mark.parametrize("world", [{}, SMALL])
def test_other_names_are_right_answers_too(world: dict[str, Any]) -> None:
    for number in range(2):
        sim = batch(form="text", aliases=0.5, **world)
        seed = 7
        while len(answers := codec_of(sim).info(view_of(sim, 0))["answers"]) == 1:  # a year
            seed += 1
            sim.reset(seed=seed)
        name, other = answers
        assert name != other
        assert say(sim, f"<answer>{(name, other)[number]}</answer>") == [1.0]


@long_without_the_compiler
@pytest.mark.parametrize("world", [{}, {"world": "fixed", "passages": 3000, "split": None}])
def test_comparisons_have_one_right_answer_and_it_is_yes_as_often_as_no(world: dict[str, Any]) -> None:
    sim = batch(400, compare=True, form="text", compiled=True, **world)
    answers = []
    for lane in range(sim.num_envs):
        told = codec_of(sim).info(view_of(sim, lane))
        (first, noun, ours), (second, other, theirs) = told["path"]
        assert noun == other
        assert first in told["question"]
        assert second in told["question"]
        if noun == "year":
            assert told["answers"][0] == (first if int(ours) < int(theirs) else second)
            assert ours != theirs
        else:
            assert told["answers"] == ["yes" if ours == theirs else "no"]
        answers.append(told["answers"][0])
    yes, no = answers.count("yes"), answers.count("no")
    assert 0.35 < yes / (yes + no) < 0.65
    assert 0.3 < (yes + no) / len(answers) < 0.7


def test_a_group_of_one_seed_asks_one_question() -> None:
    sim = batch(4)
    sim.reset(seed=[5, 5, 5, 6])
    question = sim.states["question"]
    assert (question[:3] == question[0]).all()
    assert (question[3] != question[0]).any()
    assert np.array_equal(sim.states["name_words"][0], sim.states["name_words"][2])


@pytest.mark.check
@pytest.mark.parametrize("split_by", ["facts", "first_entity"])
@pytest.mark.parametrize("asks", [{"hops": (1, 3)}, {"compare": True}])
def test_splits_ask_about_different_entities_and_by_default_for_different_facts(
    split_by: str, asks: dict[str, Any]
) -> None:
    """The three together ask what all ask; no two begin with one entity, and no two need one passage."""
    names = ("train", "validation", "test", None)
    parts = {split: game(**SMALL, **asks, form="text", split=split, split_by=split_by).world for split in names}
    begins, needed = dict[Any, set[int]](), dict[Any, set[int]]()
    for split, world in parts.items():
        begins[split] = set(world.questions.nodes[:, 0].tolist())
        needed[split] = set(world.questions.gold[world.questions.gold >= 0].tolist())
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        assert not begins[one] & begins[other]
        assert (not needed[one] & needed[other]) == (split_by == "facts")
    counts = {split: world.rules.questions for split, world in parts.items()}
    assert counts["train"] + counts["validation"] + counts["test"] == counts[None]
    assert counts["train"] > 5 * counts["test"] > 0


@pytest.mark.check
def test_the_order_of_questions_tells_nothing() -> None:
    """Answers of comparisons are as often yes, no or a name in the first half as in the second one."""
    answers = texts_of(batch(world="fixed", passages=3000, compare=True)).answers
    half = len(answers) // 2
    for word in ("yes", "no"):
        counts = [sum(some == (word,) for some in part) for part in (answers[:half], answers[half:])]
        assert 0.7 < counts[0] / counts[1] < 1.4


@pytest.mark.check
def test_a_fixed_world_is_the_same_everywhere() -> None:
    """Its texts and questions by their hash."""
    part = game(**SMALL, form="text", world_seed=3, **{k: v for k, v in NOISY.items() if k != "relations"})
    codec = part.codecs["text"]
    assert isinstance(codec, TurnCodec)
    whole = "\n".join([*codec.texts.passages, *codec.texts.questions])
    assert hashlib.sha256(whole.encode()).hexdigest()[:16] == "cabcfaf5da902ea7"
    assert len(codec.texts.passages) == 600


# -- turns -------------------------------------------------------------------------------------------------------------


def test_kernel_and_scorer_agree() -> None:
    """Exact match and F1 of answers made of right and wrong words, articles and signs."""
    sim = batch(partial_credit=1.0, world="example", split=None)
    rng = np.random.default_rng(1)
    for _ in range(150):
        sim.reset(seed=int(rng.integers(1000)))
        targets = texts_of(sim).answers[int(sim.states["number"][0])]
        words = [*str(targets[rng.integers(len(targets))]).split(), "the", "river", "a", "zzz", "Apollo!"]
        chosen = [words[k] for k in rng.integers(len(words), size=rng.integers(1, 4))]
        answer = " ".join(chosen) if rng.random() < 0.7 else f"The {targets[0].upper()}."
        (pay,) = say(sim, f"<answer>{answer}</answer>")
        wanted = score(answer, targets)
        assert sim.info["exact_match"][0] == wanted.exact_match, (answer, targets)
        assert sim.info["f1"][0] == pytest.approx(wanted.f1), (answer, targets)
        assert pay == pytest.approx(max(wanted.exact_match, wanted.f1), abs=1e-6)
        assert sim.terminated[0]


def test_turns_are_paid_as_told() -> None:
    """Each passage of the path once, refusals, the answer."""
    sim = batch(turn_reward=0.25, malformed_cost=0.5, max_turns=8, form="text")
    told = codec_of(sim).info(view_of(sim, 0))
    (a, r, _), (b, q, _) = told["path"]
    first, second = f"<search>{r} {a}</search>", f"<search>{b} {q}</search>"
    assert say(sim, first) == [0.25]
    assert sim.info["turn_label"][0] == 1
    assert say(sim, first, "hm", "<search>qqqq</search>") == [0.0, -0.5, 0.0]
    assert (sim.info["turn_label"][0], sim.info["malformed"][0], sim.info["hops_found"][0]) == (-1, 1, 1)
    assert say(sim, second, f"<answer>The {told['answers'][0].lower()}!</answer>") == [0.25, 1.0]
    assert (sim.terminated[0], sim.info["turn_label"][0]) == (True, 1)
    assert sim.game.end_reason(int(sim.info["end_reason"][0])) == "answered"


def test_a_partly_right_answer_is_paid_its_share() -> None:
    """One of two words has an F1 of 2/3."""
    sim = batch(partial_credit=0.25)
    word = texts_of(sim).words[int(sim.states["answers"][0, 0, 0])]
    assert say(sim, f"<answer>{word}</answer>") == pytest.approx([0.25 * 2 / 3])
    assert sim.info["f1"][0] == pytest.approx(2 / 3)


def test_words_as_numbers_are_turns() -> None:
    """No verb, no price; passages are shown after a search alone; articles are no part of an answer."""
    found, pays = [], []
    for articles_alone in (True, False):
        sim = batch(malformed_cost=0.5)
        words = [FIRST_WORD, *(() if articles_alone else (t for t in sim.states["answers"][0, 0].tolist() if t))]
        query = codec_of(sim).decode(None, "<search>mayor</search>")  # type: ignore[arg-type]
        silence = np.array([NONE, *query[1:]])
        for turn in (silence, query, silence, np.array([ANSWER, *words, *[0] * (16 - len(words))])):
            sim.step(turn[None, None])
            row = view_of(sim, 0).row
            found.append((int(row["turns_left"]), int(row["words_left"]), int((row["documents"] >= 0).sum())))
            pays.append(float(sim.rewards[0, 0]))
        assert sim.terminated[0]
    assert found[:3] == found[4:7] == [(3, 256, 0), (2, 255, 3), (1, 255, 0)]
    assert pays == [-0.5, 0.0, -0.5, 0.0, -0.5, 0.0, -0.5, 1.0]


def test_a_wrong_answer_ends_the_match_without_pay() -> None:
    sim = batch()
    assert say(sim, "<answer>Nobody</answer>") == [0.0]
    assert (sim.terminated[0], sim.info["exact_match"][0], sim.info["turn_label"][0]) == (True, 0, -1)


@pytest.mark.parametrize(("budget", "ends"), [(5, [False, True]), (6, [False, True]), (7, [False, False])])
def test_words_run_out(budget: int, ends: list[bool]) -> None:
    """At the last word, or before a turn of more words than are left, which is not played."""
    sim = batch(token_budget=budget)
    over = []
    for _ in range(2):
        say(sim, "<search>mayor birthplace employer</search>")
        over.append(bool(sim.terminated[0]))
    assert over == ends
    assert ("No words are left." in codec_of(sim).encode(view_of(sim, 0))) == (budget == 5)
    played = sim.states["shown"][0, 0] >= 0
    assert played == (budget >= 6)
    assert int(sim.states["words_left"][0]) == max(budget - 6, 0)
    assert sim.game.end_reason(int(sim.info["end_reason"][0])) == ("out_of_words" if ends[1] else "")


def test_turns_run_out() -> None:
    sim = batch(max_turns=3)
    say(sim, "", "<search> . </search>", "<answer> </answer>")
    assert (sim.truncated[0], sim.terminated[0], sim.info["malformed"][0]) == (True, False, 3)


def vain_query(sim: Any) -> str:
    """A search that finds passages, none of which is needed."""
    words, gold = texts_of(sim).words, set(sim.states["gold"][0].tolist()) - {-1}
    for name in sim.states["name_words"][0].tolist():
        query = f"<search>{' '.join(words[token] for token in name)}</search>"
        say(sim, query)
        shown = sim.states["shown"][0].tolist()
        if shown[0] >= 0 and not gold & set(shown):
            return query
    raise AssertionError("all searches find what is needed")


def test_judgements_are_paid_once_a_needed_passage() -> None:
    """0.3 with the answer, -0.6 and -0.3 at once where the judgement is wrong, else nothing.

    Nothing: before a search, a second or another word, no passages, passages that were judged, a right no.
    """
    sims = [batch(judge=True, max_turns=24, form="text") for _ in range(2)]
    told = codec_of(sims[0]).info(view_of(sims[0], 0))
    first, second = (f"<search>{path[1]} {path[0]}</search>" for path in told["path"])
    yes, no, empty = "<judge>yes</judge>", "<judge>no</judge>", "<search>zzz</search>"
    vain = vain_query(batch(max_turns=128, token_budget=4096))
    said = [yes, first, "<judge>perhaps</judge>", yes, no, first, no, first, yes, empty, yes, empty, no, vain, no]
    assert say(sims[0], *said) == [0.0] * len(said)
    assert say(sims[0], vain, yes, yes, second, no, second, yes) == pytest.approx([0, -0.6, 0, 0, -0.3, 0, 0])
    assert say(sims[0], f"<answer>{told['answers'][0]}</answer>") == pytest.approx([1.3])
    assert say(sims[1], first, yes, second, yes, "<answer>nobody</answer>") == pytest.approx([0, 0, 0, 0, 0.6])
    assert batch(judge=(1, -2, -3), max_turns=12, form="text").game.world.rules.judge_reject == -3


# -- text --------------------------------------------------------------------------------------------------------------


def test_the_first_complete_pair_of_tags_is_the_turn() -> None:
    """As Search-R1's pattern finds it, on random strings of tags."""
    pattern = re.compile(r"<(search|answer)>(.*?)</\1>", re.DOTALL)
    rng = np.random.default_rng(0)
    parts = ["<search>", "</search>", "<answer>", "</answer>", "<sea", "rch>", "x", "\n", "<judge>", "</judge>"]
    for _ in range(4000):
        text = "".join(parts[k] for k in rng.integers(len(parts), size=rng.integers(0, 12)))
        match = pattern.search(text)
        assert parse(text, ("search", "answer")) == (match.groups() if match else ("none", "")), text


@pytest.mark.parametrize(
    "part", ["<search>", "<answer>x</search>", "<", "\0", "ß<search>a", "<search></search", "word "]
)
def test_a_long_turn_is_read_in_linear_time(part: str) -> None:
    """A megabyte, within the bar of 20 ms (here with room for a busy machine)."""
    sim = batch()
    turn = "<search>" + part * (2**20 // len(part))
    for text in (turn[: 2**20], turn[: 2**20 - 18] + "</search></answer>"):
        start = time.process_time()
        codec_of(sim).decode(None, text)  # type: ignore[arg-type]
        assert time.process_time() - start < 0.1


def test_what_passages_say_is_no_turn() -> None:
    """Tags in passages do not count, nor do answers that are too long; unknown words equal nothing."""
    sim = batch()
    decode = lambda text: codec_of(sim).decode(None, text)  # type: ignore[arg-type]  # noqa: E731
    assert decode("<information><answer>x</information>")[0] == NONE
    assert (decode("<answer>zzz qqq</answer>")[1:3] == 1).all()
    assert decode("<judge>yes</judge>")[0] == NONE
    for long in ("mayor " * 17, f"mayor{' ' * 5000}x", "!" * 5000):
        assert (decode(f"<answer>{long}</answer>") == 0).all()
    assert (decode("<search>  </search>")[1:] == 0).all()
    assert decode(f"<answer>mayor{' ' * 5000}</answer>")[1] > FIRST_WORD
    assert decode("<answer>!</answer>")[:3].tolist() == [ANSWER, FIRST_WORD, 0]


def test_each_observation_is_what_is_new() -> None:
    """The prompt, passages with titles, a refusal, nothing after the end."""
    env = registry.make_env("palaestra/SearchQA-Custom-v1", split=None, max_turns=5)
    prompt, told = env.reset(seed=3)
    assert told["question"] in prompt
    assert "5 turns and 256 words" in prompt
    found, *_ = env.step("<think>what?</think><search>Milon of Kroton, wrestler</search>")
    assert found.startswith('\n\n<information>Doc 1(Title: "Milon") Milon of Kroton was a wrestler who')
    assert len(re.findall(r"Doc \d\(Title: ", found)) == 3
    assert found.endswith("</information>\n\n")
    times = np.diff(env.sim.game.world.offsets)  # of each word: the passages that have it
    word = texts_of(env.sim).words[int(np.flatnonzero(times == 2)[0]) + FIRST_WORD]
    found, *_ = env.step(f"<search>{word}</search>")
    assert len(re.findall(r"Doc \d\(Title: ", found)) == 2
    refusal, _, _, _, info = env.step("<search>no end")
    assert "said nothing" in refusal
    assert info["malformed"] == 1
    nothing, *_ = env.step("<search>qqqq zzzz</search>")
    assert nothing == "\n\n<information>No passage was found.</information>\n\n"
    last, reward, terminated, _, _ = env.step(f"<answer>{told['answers'][0]}</answer>")
    assert (last, reward, terminated) == ("", 1.0, True)


@pytest.mark.check
def test_fresh_passages_read_as_sentences() -> None:
    """As the passages of a fixed world do, and the question with its sign."""
    env = registry.make_env("palaestra/SearchQA-2Hop-v1", form="text", **NOISY)
    for seed in range(20):
        _, told = env.reset(seed=seed)
        assert re.fullmatch(r"(What is|Name) the .* [A-Z]\w+ [A-Z]\w+[.?]", told["question"])
        assert told["question"].endswith("?" if told["question"].startswith("What") else ".")
        found, *_ = env.step(f"<search>{told['path'][0][0]}</search>")
        for line in found.split("<information>")[1].split("</information>")[0].split("\n"):
            assert re.fullmatch(r'Doc \d\(Title: "[A-Z]\w+ [A-Z]\w+"\) [A-Z0-9][^.]*\.', line), line


def test_prompts() -> None:
    env = registry.make_env("palaestra/SearchQA-2Hop-v1", form="text", prompt="{turns}|{words}|{question}", max_turns=9)
    prompt, told = env.reset(seed=0)
    assert prompt == f"9|256|{told['question']}"
    plain, _ = registry.make_env("palaestra/SearchQA-2Hop-v1", form="text", prompt="plain").reset(seed=0)
    assert plain == told["question"]
    judge, _ = registry.make_env("palaestra/SearchQA-Judge-v1", form="text").reset(seed=0)
    assert "<judge>yes</judge>" in judge


@pytest.mark.parametrize(
    "prompt",
    ["{{question}} {question:>90}", "{question} {question!r}", "{question} {turns:3} {question}", "\0{question}"],
)
def test_a_template_is_filled_in_as_python_does(prompt: str) -> None:
    seen, told = registry.make_env("palaestra/SearchQA-2Hop-v1", form="text", prompt=prompt).reset(seed=0)
    assert seen == prompt.format(question=told["question"], turns=4)
