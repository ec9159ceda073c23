"""SearchQA on files: which questions are asked, and what is left out is told; players read it without records."""

from dataclasses import replace
from pathlib import Path

import pytest
from games.play import long_without_the_compiler
from search.search_matches import batch, codec_of, files, play, say, texts_of, view_of

from palaestra.core.files import FileError

pytestmark = pytest.mark.jitless


@long_without_the_compiler
def test_the_oracle_finds_the_passages_of_files() -> None:
    sim = batch(40, world="example", opponents={"agent": "oracle"}, compiled=True)
    play(sim)
    assert (sim.info["exact_match"] == 1).all()


def test_questions_of_files_that_no_turn_can_answer_are_counted_and_left_out(tmp_path: Path) -> None:
    """Their answer is too long, or they need too much; answers that are left out are counted, too."""
    questions = [
        {"question": "What do dogs have?", "answer": "machine " * 17, "gold": [0]},
        {"question": "Who knows all?", "answer": "cats", "gold": [0, 1, 2, 3, 4]},
        {"question": "What machine do dogs have?", "answer": ["X-ray", "x-RAY", "an x-ray " * 17], "gold": [0]},
    ]
    world = files(tmp_path, ["Dogs have an x-ray machine.", *(f"Cat {k} sleeps." for k in range(4))], questions)
    told = (
        "2 of 3 questions of split='train' are not asked: 1 have no right answer of at most 16 words, 1 need more than "
        "4 passages, 1 have right answers of more than 16 words, or more than 4, which do not count"
    )
    with pytest.warns(UserWarning, match=told):
        sim = batch(**world)
    assert texts_of(sim).questions == ("What machine do dogs have?",)
    for answer, pay in (("an x-ray", 1.0), ("xray", 1.0), ("x ray", 0.0)):
        sim.reset(seed=7)
        assert say(sim, f"<answer>{answer}</answer>") == [pay]
    with pytest.raises(FileError, match=told):
        batch(**world, strict=True)


def test_questions_whose_passage_is_hard_to_find_are_asked(tmp_path: Path) -> None:
    """Where many passages begin alike, the oracle searches for rare words; where all are equal, it answers at last."""
    alike, equal = [f"{'Of cats and dogs ' * 5} number{k}." for k in range(6)], ["Birds sing."] * 5
    questions = [{"question": f"What of {k}?", "answer": f"No. {k}", "gold": [k]} for k in (5, 10)]
    sim = batch(8, **files(tmp_path, [*alike, *equal], questions), opponents={"agent": "oracle"})
    assert (play(sim) == 1).all()
    assert set(zip(sim.states["number"].tolist(), sim.info["hops_found"].tolist(), strict=True)) == {(0, 1), (1, 0)}


@pytest.mark.check
def test_a_question_is_read_without_the_record_of_the_match(tmp_path: Path) -> None:
    """As players have none: by its words, or, where two questions begin with the same 24 words, these."""
    questions = [
        {"question": f"Which {word} is it?", "answer": "none"}
        for word in ("bird", "cat", "x " * 25 + "a", "x " * 25 + "b")
    ]
    for sim in (batch(16, world="fixed", passages=600), batch(16, **files(tmp_path, ["Nothing."], questions))):
        for lane in range(16):
            view = view_of(sim, lane)
            text, question = codec_of(sim).encode(view), codec_of(sim).info(view)["question"]
            assert question in text
            if "x x" in question:
                question = f"Which{' x' * 23}?"
            told = codec_of(sim).encode(replace(view, record=None))
            assert f"Question: {question}\n" in told
            assert codec_of(sim).info(replace(view, record=None)) == {"question": question, "answers": [], "path": []}
