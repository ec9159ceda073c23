"""Examiner: questions are checked against what was read, and both agents are paid as told."""

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from games.play import long_without_the_compiler
from search.examiner_matches import (
    Facts,
    asked,
    decoded,
    end_of,
    exam,
    facts_of,
    name,
    play,
    question,
    row,
    say,
    searches,
    told,
    walk_of,
)

from palaestra import make_batch
from palaestra.games.search.examiner_turns import (
    AMBIGUOUS,
    CIRCULAR,
    EXAMINER,
    FINE,
    MALFORMED,
    NO_NAME,
    NO_RELATION,
    NO_SUCH_FACT,
    REFUSALS,
    STUDENT,
    TOO_LONG,
    UNREAD,
)
from palaestra.games.search.language import RELATIONS

pytestmark = pytest.mark.jitless


# -- start -------------------------------------------------------------------------------------------------------------


def test_the_world_is_that_of_search_qa() -> None:
    sim, qa = exam(8), make_batch("palaestra/SearchQA-2Hop-v1", 8, form="tokens", compiled=False)
    qa.reset(seed=7)
    for field in ("name_words", "fact", "subject", "relation", "template", "objects"):
        assert np.array_equal(sim.states[field], qa.states[field]), field


def test_the_examiner_starts_where_a_relation_leads_on() -> None:
    """With three relations nothing leads on from a company; the others are drawn alike."""
    starts = exam(300, relations=3, compiled=True).states["start"]
    assert set(starts.tolist()) == {entity for entity in range(24) if entity % 3 != 2}


def test_a_group_of_one_seed_asks_one_question() -> None:
    sim = exam(4, seed=[5, 5, 5, 6], opponents={"examiner": "oracle", "student": "closed_book"}, compiled=True)
    for _ in range(4):
        sim.step()
    asked = sim.states["question"]
    assert asked[:, 0].all()
    assert (asked[:3] == asked[0]).all()
    assert (asked[3] != asked[0]).any()


def test_worlds_do_not_depend_on_what_was_done_before() -> None:
    worlds = []
    for script in (None, "oracle"):
        sim = exam(opponents={"examiner": script, "student": script}, autoreset_mode="same_step")
        if script is None:
            say(sim, "<question>Who?</question>")
        else:
            while not sim.terminated[0]:
                sim.step()
        worlds.append((sim.states["name_words"][0], sim.states["start"][0], sim.states["wording"][0]))
    for one, other in zip(*worlds, strict=True):
        assert np.array_equal(one, other)


# -- questions ---------------------------------------------------------------------------------------------------------


def ask_refused(sim: Any, reason: int) -> tuple[list[str], str]:
    """Searches and a question that is refused for a reason."""
    (start, *things), nouns = walk_of(sim, 2)
    fine = searches([start, *things], nouns)
    if reason == AMBIGUOUS:
        many = next(key for key, objects in facts_of(sim).items() if len(objects) == 2)
        return searches([many[0]], [many[1]]), question(many[0], [many[1]])
    questions = {
        MALFORMED: "<question> ? </question>",
        NO_NAME: question(f"{start} or {things[0]}", nouns),
        NO_RELATION: question(start, []),
        TOO_LONG: question(start, ["mayor"] * 5),
        NO_SUCH_FACT: question(start, [*nouns, "headquarters"]),
        CIRCULAR: question(start, nouns),
        UNREAD: question(start, nouns),
    }
    if reason == CIRCULAR:  # the last fact leads back
        state = sim.states[0]
        state["objects"][state["fact"][state["nodes"][0], 0]] = 0
        entity = next(e for e in range(24) if name(sim, e) == things[0])
        relation = next(r for r, it in enumerate(RELATIONS) if it.noun == nouns[1])
        state["objects"][state["fact"][entity, relation], 0] = state["start"]
    return (fine[:1] if reason == UNREAD else fine), questions[reason]


@pytest.mark.parametrize("reason", range(1, len(REFUSALS)), ids=REFUSALS[1:])
def test_a_question_is_refused(reason: int) -> None:
    """It ends the match, nobody is paid, and nothing of it is told but the reason."""
    sim = exam(relations=8 if reason == AMBIGUOUS else 4)
    before, wrong = ask_refused(sim, reason)
    assert say(sim, *before, wrong) == [[0.0, 0.0]] * (len(before) + 1)
    assert (int(sim.info["refusal"][0]), end_of(sim), bool(sim.terminated[0])) == (reason, "refused", True)
    assert told(sim) == {"question": "", "answers": [], "path": [], "refusal_reason": REFUSALS[reason]}
    assert int(sim.info["winner"][0]) == -1
    for field in ("accepted", "hops", "path_names", "path_relations"):
        assert not sim.info[field].any(), field
    assert not row(sim, STUDENT)["question"].any()
    assert "path:" not in sim.render_text()


def test_names_that_are_none_or_half_are_no_names() -> None:
    for start in ("nobody", "Arnev", "{}", "{} {}"):
        sim = exam()
        things, nouns = walk_of(sim, 1)
        given = {"{}": things[0].split()[0], "{} {}": f"{things[0]} {things[0]}"}.get(start, start)
        say(sim, *searches(things, nouns), question(given, nouns))
        assert REFUSALS[sim.info["refusal"][0]] == "no_name", start


def test_a_relation_that_no_entity_has_is_no_free_word() -> None:
    """`year` is the noun of a relation that this world has not."""
    sim = exam()
    things, nouns = walk_of(sim, 1)
    say(sim, *searches(things, nouns), question(things[0], [*nouns, "year"]))
    assert REFUSALS[sim.info["refusal"][0]] == "no_such_fact"


def test_a_question_may_end_at_a_year_and_not_go_on_from_it() -> None:
    for nouns, reason in ((["year"], ""), (["year", "mayor"], "no_such_fact")):
        sim = exam(relations=5)
        start = name(sim, int(sim.states["start"][0]))
        say(sim, *searches([start], nouns), question(start, nouns))
        assert REFUSALS[sim.info["refusal"][0]] == reason
    sim = exam(relations=5)
    start = name(sim, int(sim.states["start"][0]))
    say(sim, *searches([start], ["year"]), question(start, ["year"]))
    assert told(sim)["answers"] == facts_of(sim)[start, "year"]
    assert sim.info["path_names"][0, 1].astype(bool).tolist() == [True, False]


def test_free_words_do_not_matter_and_the_student_reads_the_words_of_search_qa() -> None:
    seen = []
    for form in ("What is the {1} of the {0} of {2}?", "{1} {0} {2}", "of {2}, {1} then {0} !", "THE {1}'s {0}: {2}"):
        sim = exam()
        things, nouns = walk_of(sim, 2)
        say(sim, *searches(things, nouns), f"<question>{form.format(*nouns, things[0])}</question>")
        seen.append((row(sim, STUDENT)["question"].tolist(), sim.info["path_names"].tolist()))
        whole = rf"(What is|Name) the {nouns[1]} of the {nouns[0]} of {things[0]}[?.]"
        assert re.fullmatch(whole, told(sim)["question"])
    assert all(one == seen[0] for one in seen)


def test_both_wordings_occur() -> None:
    sim = exam(40, opponents={"examiner": "oracle", "student": "oracle"}, compiled=True)
    play(sim)
    assert {told(sim, lane)["question"][:4] for lane in range(40)} == {"What", "Name"}


def test_the_path_is_told_as_arrays_and_as_words() -> None:
    """Row k of the names is the entity after k relations."""
    sim = exam()
    things, nouns = walk_of(sim, 3)
    say(sim, *searches(things, nouns))
    assert not sim.info["path_names"].any()
    say(sim, question(things[0], nouns))
    words = sim.game.captions.words
    names = [" ".join(words[token] for token in pair if token) for pair in sim.info["path_names"][0].tolist()]
    assert names == [*things, ""]
    assert [words[token] for token in sim.info["path_relations"][0].tolist()] == [*nouns, ""]
    path = list(map(list, zip(things, nouns, things[1:], strict=False)))
    assert told(sim)["path"] == path
    assert told(sim)["answers"] == [things[-1]]
    assert (sim.info["path_names"].shape, sim.info["path_names"].dtype) == ((1, 5, 2), np.int32)
    assert (sim.info["path_relations"].shape, sim.info["hops"][0]) == ((1, 4), 3)


def by_hand(facts: Facts, read: set[tuple[str, str]], words: list[str]) -> tuple[int, list[str]]:
    """The check of a question as its page says it: reason, and the entities of its path."""
    names = {entity for entity, _ in facts}
    starts = [" ".join(pair) for pair in pairwise(words) if " ".join(pair) in names]
    nouns = [word for word in words if word in {relation.noun for relation in RELATIONS}]
    if not words:
        return MALFORMED, []
    if len(nouns) > 4:
        return TOO_LONG, []
    if len(starts) != 1:
        return NO_NAME, []
    if not nouns:
        return NO_RELATION, []
    path = starts
    for noun in reversed(nouns):
        objects = facts.get((path[-1], noun), [])
        if len(objects) != 1:
            return AMBIGUOUS if objects else NO_SUCH_FACT, []
        if objects[0] in path:
            return CIRCULAR, []
        if (path[-1], noun) not in read:
            return UNREAD, []
        path = [*path, objects[0]]
    return FINE, path


@long_without_the_compiler
@pytest.mark.parametrize("relations", [4, 8])
def test_random_questions_are_checked_as_by_hand(relations: int) -> None:
    """Parts of true paths with a word more, less or exchanged, after searches for most of their facts."""
    lanes = 200
    sim, rng = exam(lanes, relations=relations, compiled=True), np.random.default_rng(relations)
    worlds, read = [facts_of(sim, lane) for lane in range(lanes)], [set[tuple[str, str]]() for _ in range(lanes)]
    turns, words = np.zeros((5, lanes, 1, 17), np.int64), list[list[str]]()
    for lane, facts in enumerate(worlds):
        queries, asks = random_turns(facts, name(sim, int(sim.states["start"][lane]), lane), rng)
        words.append(asks)
        said = [*(f"<search>{query}</search>" for query in queries), f"<question>{' '.join(asks)}</question>"]
        turns[:, lane, 0] = [decoded(sim, EXAMINER, turn, lane) for turn in said]
    for number in range(5):
        sim.step({"examiner": turns[number], "student": np.zeros((lanes, 1, 17), np.int64)})
        for lane in range(lanes):
            state = sim.states[lane]
            for passage in row(sim, EXAMINER, lane)["documents"]:
                if passage >= 0:
                    noun = RELATIONS[state["relation"][passage]].noun
                    read[lane].add((name(sim, int(state["subject"][passage]), lane), noun))
    reasons = set()
    for lane in range(lanes):
        reason, path = by_hand(worlds[lane], read[lane], words[lane])
        assert sim.info["refusal"][lane] == reason, words[lane]
        assert [one[0] for one in told(sim, lane)["path"]] == path[:-1]
        assert told(sim, lane)["answers"] == path[-1:]
        reasons.add(reason)
    assert reasons == set(range(len(REFUSALS))) - ({AMBIGUOUS} if relations == 4 else set())


def random_turns(facts: Facts, start: str, rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """Four queries, and the words of a question."""
    things, nouns = [start], list[str]()
    for _ in range(rng.integers(1, 6)):
        ways = [(noun, objects[0]) for (subject, noun), objects in facts.items() if subject == things[-1]]
        noun, thing = ways[rng.integers(len(ways))] if ways else ("ally", things[-1])
        things, nouns = [*things, thing], [*nouns, noun]
    words = [*reversed(nouns), *start.split()]
    kind = rng.random()
    if kind < 0.3:
        extra = ["the", things[1], "employer"][rng.integers(3)]
        words = [*extra.split(), *words]
    elif kind < 0.4:
        words = start.split()
    elif kind < 0.45:
        words = []
    hops = [min(hop, len(nouns) - 1) for hop in range(4)]
    return [f"{things[hop]} {nouns[hop]}" if rng.random() < 0.9 else "who" for hop in hops], words


# -- rewards and ends --------------------------------------------------------------------------------------------------


@long_without_the_compiler
def test_scripts_are_paid_as_told() -> None:
    """The walk is accepted, the student that follows the path is right, the one that guesses seldom."""
    for script, pay in (("oracle", 0.5), ("closed_book", 1.0)):
        sim = exam(200, opponents={"examiner": "oracle", "student": script}, compiled=True)
        returns, right = play(sim), sim.info["exact_match"]
        assert sim.info["accepted"].all()
        assert set(sim.info["hops"].tolist()) == {1, 2, 3}
        assert (returns[:, STUDENT] == right).all()
        assert (returns[right == 0, EXAMINER] == 1.0).all()
        assert (returns[right == 1, EXAMINER] == 0.5).all()
        assert (sim.info["winner"] == np.where(right, STUDENT, EXAMINER)).all()
        assert right.all() if script == "oracle" else 0 < right.mean() < 0.3
        assert np.median(returns[:, EXAMINER]) == pay


@pytest.mark.parametrize("right", [False, True])
def test_an_answer_pays_student_or_examiner(right: bool) -> None:
    sim = exam(format_reward=0.25)
    things, nouns = walk_of(sim, 2)
    assert say(sim, *searches(things, nouns), question(things[0], nouns)) == [[0, 0], [0, 0], [0.25, 0]]
    answer = f"<answer>The {things[-1].upper()}!</answer>" if right else f"<answer>{things[0]}</answer>"
    assert say(sim, *searches(things, nouns)[:1], answer) == [[0, 0], [0, 1] if right else [0.75, 0]]
    assert (end_of(sim), bool(sim.terminated[0])) == ("answered", True)
    assert int(sim.info["winner"][0]) == (STUDENT if right else EXAMINER)
    assert int(sim.info["turn_label"][0]) == (1 if right else -1)


def test_a_student_without_turns_is_truncated_and_the_examiner_paid() -> None:
    sim = asked(2, max_turns=2)
    assert say(sim, "hm", "<search>mayor</search>") == [[0, 0], [0.5, 0]]
    assert (end_of(sim), bool(sim.truncated[0]), int(sim.info["winner"][0])) == ("out_of_turns", True, EXAMINER)


def test_a_student_has_all_its_turns_however_late_the_question_was() -> None:
    for vain in range(3):
        sim = exam()
        things, nouns = walk_of(sim, 1)
        say(sim, *["<search>mayor</search>"] * vain, *searches(things, nouns), question(things[0], nouns))
        lefts = []
        while not (sim.terminated[0] or sim.truncated[0]):
            lefts.append(int(row(sim, STUDENT)["turns_left"]))
            say(sim, "<search>mayor</search>")
        assert lefts == [4, 3, 2, 1]
        assert end_of(sim) == "out_of_turns"


def test_a_shorter_horizon_cuts_the_student_and_pays_the_examiner() -> None:
    sim = exam(horizon=4)
    things, nouns = walk_of(sim, 2)
    say(sim, *searches(things, nouns), question(things[0], nouns))
    assert int(row(sim, STUDENT)["turns_left"]) == 1
    assert say(sim, "<search>mayor</search>") == [[0.5, 0]]
    assert (end_of(sim), bool(sim.truncated[0])) == ("horizon", True)


def test_a_student_without_words_loses() -> None:
    sim = asked(1, token_budget=10)
    assert say(sim, "<search>one two three four five six seven eight nine ten</search>") == [[0.5, 0]]
    assert (end_of(sim), bool(sim.terminated[0])) == ("out_of_words", True)


@pytest.mark.parametrize("turn", ["<search>mayor</search>", "hm", "<search> . </search>"])
def test_an_examiner_that_does_not_ask_ends_the_match(turn: str) -> None:
    """Turns that say nothing count, and cost."""
    sim, is_said = exam(examiner_turns=3, malformed_cost=0.25), turn == "<search>mayor</search>"
    assert say(sim, turn, turn, turn) == [[0 if is_said else -0.25, 0]] * 3
    assert (end_of(sim), bool(sim.terminated[0]), int(sim.info["winner"][0])) == ("not_asked", True, -1)
    assert int(sim.info["malformed"][0]) == (0 if is_said else 3)
    assert int(sim.info["refusal"][0]) == FINE


@pytest.mark.parametrize(("budget", "end"), [(2, "not_asked"), (3, "not_asked"), (6, "not_asked"), (7, "")])
def test_words_of_the_examiner_run_out(budget: int, end: str) -> None:
    """At a search that takes the last one, or at a question of more words than are left."""
    sim = exam(token_budget=budget)
    things, nouns = walk_of(sim, 1)
    ask = f"<question>the {nouns[0]} {things[0]}</question>"
    for turn in (*searches(things, nouns), ask):
        if not sim.terminated[0]:
            assert say(sim, turn) == [[0.5 if turn == ask and not end else 0, 0]]
    assert end_of(sim) == end
    assert int(row(sim, EXAMINER)["words_left"]) == 0
    assert end or int(row(sim, STUDENT)["words_left"]) == budget
