"""What text search promises: ``python benchmarks/search_claims.py``, half a minute of CPU time.

* **Judge**: what the best match without an answer is paid: of 100,000 random turns, and of 20 farms made by hand.
* **Splits**: the share of the passages needed by questions of test that a question of training needs, too.
* **Scorer**: answers to which the environment gives another exact match or F1 than `palaestra.search.score` and than
  the rule of SQuAD and Search-R1, written here once more, of 500 hostile ones.

The exit code is 1 where a promise is not kept.
"""

from __future__ import annotations

import argparse
import json
import re
import string
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from measurement import VERDICTS
from palaestra import make_batch
from palaestra.console import print_table
from palaestra.games.search import score
from palaestra.games.search.turns import JUDGE, NONE, SEARCH

JUDGE_ID, FICTIONAL, CUSTOM = (f"palaestra/SearchQA-{name}-v1" for name in ("Judge", "Fictional", "Custom"))
RANDOM_TURNS, LANES, TURNS = 100_000, 500, 8
FARMS = (
    "en en en en",
    "ey ey ey ey",
    "ey en ey en",
    "vn vn vn vn",
    "vy vn vy vn",
    "vny vny vn",
    "ay ay ay ay",
    "an ay ay ay",
    "ay by ay by",
    "by ay by ay",
    "ay by by ay",
    "ayy byy ay",
    "ayn byn ay",
    "ayy ayy ay",
    "ay vn by vn",
    "ay en by en",
    "ay by en en",
    "vy ay by ay",
    "any bny ay",
    "may mby ay",
)
"""Turns: a and b search for the first and the second needed passage, v for something else, e for nothing that is there;
y and n judge that the passages help, that they do not; m says nothing. None of them answers."""
SETTINGS: tuple[dict[str, Any], ...] = ({}, {"hops": (1, 4)}, {"hops": 3}, {"compare": True})
TARGETS = (
    "Jean-Luc Picard", "x_y", "O'Neill", "S\u00e3o Paulo", "\u00abParis\u00bb", "12,345.6", "\u0130stanbul", "A", "the",
    "The The", "An apple a day", "U.S.A.", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u5317\u4eac", "rock & roll",
    "a-ha", "C++", "caf\u00e9", "cafe\u0301", "\u201cHamlet\u201d", "1/2", "the \u00e9tude a", "twenty-one pilots",
    "Stra\u00dfe", "\u039f\u0394\u039f\u03a3", "e.g. this",
)  # fmt: skip
"""Right answers of the scorer's questions."""


@dataclass(frozen=True)
class Promise:
    """A number, and what it should be.

    Attributes:
        about: What it is of.
        value: It.
        most: The most that it should be.
    """

    about: str
    value: float
    most: float

    def row(self) -> list[str]:
        """The promise in a table."""
        return [self.about, f"{self.value:.3g}", f"at most {self.most:g}", VERDICTS[self.value <= self.most]]


# -- judgements --------------------------------------------------------------------------------------------------------


def turn_of(code: str, s: Any, world: Any, rng: np.random.Generator) -> list[int]:
    """Verb and words of one of the turns of `FARMS`, of match record s."""
    words = world.language.relation_words
    if code in "ab":
        hop = min("ab".index(code), int(s["hops"]) - 1)
        return [SEARCH, *s["name_words"][s["nodes"][hop]].tolist(), int(words[s["relations"][hop]])]
    if code == "v":
        return [SEARCH, *s["name_words"][rng.integers(world.rules.entities)].tolist(), int(rng.choice(words[:4]))]
    if code == "e":
        return [SEARCH, 1]
    return [NONE] if code == "m" else [JUDGE, int(world.language.literal_words[int(code == "n"), 0])]


def best_return(plans: Sequence[str], seed: int, **keywords: Any) -> float:
    """The largest return of matches in which each lane plays its plan, and does not answer."""
    sim = make_batch(JUDGE_ID, len(plans), form="tokens", autoreset_mode="off", max_turns=TURNS, **keywords)
    sim.reset(seed=seed)
    rng, returns = np.random.default_rng(seed), np.zeros(len(plans))
    for turn in range(TURNS):
        actions = np.zeros((len(plans), 1, 17), np.int64)
        for lane, plan in enumerate(plans):
            said = turn_of(plan[turn], sim.states[lane], sim.game.world, rng)
            actions[lane, 0, : len(said)] = said
        on = ~(sim.terminated | sim.truncated)
        sim.step(actions, lanes=on)
        returns += sim.rewards[:, 0] * on
    assert (sim.truncated | sim.terminated).all()
    sim.close()
    return float(returns.max())


def judge_promises(
    turns: int = RANDOM_TURNS, lanes: int = LANES, seeds: int = 10, **keywords: Any
) -> Iterator[Promise]:
    """What matches without an answer are paid at best.

    Args:
        turns: Random ones.
        lanes: Matches at a time.
        seeds: Of each farm.
        **keywords: Of the simulation.
    """
    rng, best = np.random.default_rng(0), -np.inf
    for seed in range(-(-turns // (lanes * TURNS))):
        plans = ["".join(rng.choice(list("abveynm"), TURNS)) for _ in range(lanes)]
        best = max(best, best_return(plans, seed, **keywords))
    yield Promise(f"Judge: best return without an answer, {turns:,} random turns", best, 0.0)
    farms = [plan.replace(" ", "") for plan in FARMS]
    best = best_return(farms * seeds, 1, **keywords)
    yield Promise(f"Judge: best return without an answer, {len(farms)} farms, {seeds} worlds each", best, 0.0)


# -- splits ------------------------------------------------------------------------------------------------------------


def shared_facts(**keywords: Any) -> float:
    """The share of the passages that questions of test need that questions of training need, too."""
    needed = []
    for split in ("train", "test"):
        sim = make_batch(FICTIONAL, 1, form="text", split=split, **keywords)
        gold = sim.game.world.questions.gold
        needed.append(set(gold[gold >= 0].tolist()))
        sim.close()
    train, test = needed
    return len(train & test) / len(test)


def split_promises(settings: Sequence[dict[str, Any]] = SETTINGS, **keywords: Any) -> Iterator[Promise]:
    """The shares of some settings by each of the ways to split."""
    for setting in settings:
        for split_by, most in (("facts", 0.0), ("first_entity", 1.0)):
            told = ", ".join(f"{name}={value}" for name, value in setting.items()) or "hops=2"
            share = shared_facts(split_by=split_by, **setting, **keywords)
            yield Promise(f"Fictional, {told}: facts of test in paths of training, split_by={split_by!r}", share, most)


# -- the scorer --------------------------------------------------------------------------------------------------------


def by_the_rule(answer: str, target: str) -> tuple[float, float]:
    """Exact match and F1 as SQuAD and Search-R1 define them."""

    def words(text: str) -> list[str]:
        kept = "".join(c for c in text.lower() if c not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", kept).split()

    given, wanted = words(answer), words(target)
    if not given or not wanted:
        return float(given == wanted), float(given == wanted)
    return float(given == wanted), 2 * sum((Counter(given) & Counter(wanted)).values()) / (len(given) + len(wanted))


def hostile(target: str, rng: np.random.Generator) -> str:
    """An answer that is nearly the target, or the target in other signs."""
    spoil = [
        lambda text: text,
        str.upper,
        str.lower,
        lambda text: f"The {text}.",
        lambda text: f"\u00ab{text}\u00bb",
        lambda text: f"\u201c{text}\u201d",
        lambda text: f"{text}\u2026",
        lambda text: f"{text}\0",
        lambda text: f"{text} zzz",
        lambda text: f"a {text} an",
        lambda text: re.sub(r"[^\w\s]", " ", text),
        lambda text: re.sub(r"[^\w\s]", "", text),
        lambda text: text.replace(" ", "-"),
        lambda text: text.replace(" ", "\u00a0 \t"),
        lambda text: text.replace("-", "\u2013"),
        lambda text: text.replace("_", " "),
        lambda text: text + " " + text,
        lambda text: " ".join(text.split()[::-1]),
        lambda text: text[: max(len(text) // 2, 1)],
        lambda text: "the",
        lambda text: "!?",
        lambda text: "a\u0301 " + text,
    ]
    for k in rng.integers(len(spoil), size=rng.integers(1, 3)):
        target = spoil[k](target)
    return target if target.strip() else "?"


def count_differences(answers: int = LANES, **keywords: Any) -> int:
    """Hostile answers whose exact match or F1 in the environment is another one than by score or rule."""
    rng, differ = np.random.default_rng(0), 0
    with tempfile.TemporaryDirectory() as folder:
        passages, questions = Path(folder, "passages.jsonl"), Path(folder, "questions.jsonl")
        passages.write_text(json.dumps({"text": "Nothing of that kind."}))
        rows = ({"question": f"Which is number {k}?", "answer": target} for k, target in enumerate(TARGETS))
        questions.write_text("\n".join(map(json.dumps, rows)))
        words = {"world": str(passages), "questions": str(questions), "form": "text", "autoreset_mode": "off"}
        sim = make_batch(CUSTOM, answers, **words, **keywords)
        sim.reset(seed=0)
        codec: Any = sim.game.codecs["text"]
        targets = [codec.texts.answers[number][0] for number in sim.states["number"].tolist()]
        given = [hostile(target, rng) for target in targets]
        sim.step(np.stack([codec.decode(None, f"<answer>{answer}</answer>") for answer in given])[:, None])
        found = zip(sim.info["exact_match"].tolist(), sim.info["f1"].tolist(), strict=True)
        for ours, answer, target in zip(found, given, targets, strict=True):
            rules = score(answer, target)[:2], by_the_rule(answer, target)
            differ += not all(np.allclose(ours, wanted, atol=1e-12) for wanted in rules)
        assert sim.terminated.all(), "all were answers"
        sim.close()
    return differ


def promises() -> Iterator[Promise]:
    """All of them."""
    yield from judge_promises()
    yield from split_promises()
    yield Promise(f"Scorer: of {LANES} hostile answers differ", count_differences(), 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns 1 where a promise is not kept."""
    argparse.ArgumentParser(description="What text search promises").parse_args(arguments)
    found = list(promises())
    print_table([promise.row() for promise in found], ["", "found", "should be", ""])
    return 0 if all(promise.value <= promise.most for promise in found) else 1


if __name__ == "__main__":
    sys.exit(main())
