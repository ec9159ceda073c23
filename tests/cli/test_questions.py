"""`palaestra questions`: what a line says, which questions there are, and what is refused."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import palaestra
from palaestra import registry
from palaestra.cli import questions
from palaestra.games.search.search_services import find_seeds

pytestmark = pytest.mark.check

FRESH, FIXED, EXAMPLE = (f"palaestra/SearchQA-{name}-v1" for name in ("2Hop", "Fictional", "Custom"))
SMALL = ("--set", "passages=300")


@pytest.fixture
def ask(run, tmp_path: Path):
    """``ask(*words)``: the rows that the command writes, and what it printed."""

    def ask(*words: object) -> tuple[list[dict[str, Any]], SimpleNamespace]:
        file = tmp_path / "questions.jsonl"
        printed = run("questions", *words, "-o", file)
        assert (printed.code, printed.out) == (0, "")
        return [json.loads(line) for line in file.read_text("ascii").splitlines()], printed

    return ask


@pytest.mark.parametrize(
    "words",
    [(FRESH,), (FRESH, "--split", "test", "--set", "hops=(1,3)"), (FIXED, *SMALL, "--split", "validation"), (EXAMPLE,)],
)
def test_the_seed_of_a_line_asks_its_question_again(words: tuple[str, ...], ask):
    rows, _ = ask(*words, "-n", 4)
    assert len({row["question"] for row in rows}) == 4
    for row in rows:
        extra = row["extra_info"]
        env = gymnasium.make(row["data_source"], **extra["keywords"])
        prompt, info = env.reset(seed=row["seed"])
        assert row["prompt"] == [{"role": "user", "content": prompt}]
        told = {"question": row["question"], "answers": row["answers"], "path": extra["path"]}
        assert told == {name: info[name] for name in told}
        _, reward, terminated, _, _ = env.step(f"<answer>{row['answers'][0]}</answer>")
        assert (reward, terminated) == (1.0, True)
        env.close()


def test_a_line_has_the_fields_of_verl_and_of_trl(ask):
    rows, _ = ask("SearchQA-2Hop", "-n", 3, "--seed", 7, "--set", "entities=12", "--set", "aliases=0.5")
    row = rows[2]
    assert list(row) == [
        *("data_source", "prompt", "ability", "reward_model", "extra_info", "seed", "question", "answers"),
    ]
    assert (row["data_source"], row["ability"], row["seed"]) == (FRESH, "search", 9)
    assert row["reward_model"] == {"style": "rule", "ground_truth": {"target": row["answers"]}}
    assert len(row["extra_info"].pop("path")) == 2
    assert row["extra_info"] == {
        "index": 2,
        "split": "train",
        "seed": 9,
        "question": row["question"],
        "keywords": {"form": "text", "entities": 12, "aliases": 0.5},
        "tools_kwargs": {"search": {"create_kwargs": {"seed": 9}}},
    }


def test_splits_of_fresh_worlds_have_seeds_of_their_own(ask):
    for split, first in {"train": 0, "validation": 2**51, "test": 2**52}.items():
        rows, _ = ask(FRESH, "--split", split, "-n", 5, "--seed", 3)
        assert [row["seed"] for row in rows] == [first + 3 + k for k in range(5)]
        assert {row["extra_info"]["split"] for row in rows} == {split}
        assert all(int(float(row["seed"])) == row["seed"] for row in rows)


def test_each_question_of_a_fixed_split_is_there_once(ask):
    asked = dict[str, set[str]]()
    for split in ("train", "validation"):
        rows, printed = ask(FIXED, *SMALL, "--split", split)
        sim = palaestra.make_batch(FIXED, form="text", passages=300, split=split)
        asked[split] = {row["question"] for row in rows}
        assert len(rows) == len(asked[split]) == sim.game.world.questions.words.shape[0]
        assert [row["extra_info"]["index"] for row in rows] == list(range(len(rows)))
        assert f"{FIXED}: split={split} has fewer questions, all {len(rows)} are written" in printed.err
    assert not asked["train"] & asked["validation"]


def test_there_are_no_more_questions_than_asked_for(ask):
    rows, printed = ask(FIXED, *SMALL, "-n", 50)
    assert (len(rows), printed.err) == (50, "")


@pytest.mark.parametrize("words", [(FRESH,), (FIXED, *SMALL)])
def test_the_number_of_lanes_changes_nothing(words: tuple[str, ...], ask, monkeypatch: pytest.MonkeyPatch):
    rows, _ = ask(*words, "-n", 10)
    monkeypatch.setattr(questions, "LANES", 4)
    assert ask(*words, "-n", 10)[0] == rows


def test_a_dash_is_the_standard_output(ask, run):
    rows, _ = ask(EXAMPLE, "-n", 4)
    printed = run("questions", EXAMPLE, "-n", 4, "-o", "-")
    assert [json.loads(line) for line in printed.out.splitlines()] == rows


def test_parquet_has_the_same_rows(ask, run, tmp_path: Path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pip install pyarrow")
    rows, _ = ask(EXAMPLE, "-n", 4)
    assert run("questions", EXAMPLE, "-n", 4, "--format", "parquet", "-o", tmp_path / "rows.parquet").code == 0
    assert parquet.read_table(tmp_path / "rows.parquet").to_pylist() == rows


def test_parquet_without_its_library_is_refused_before_anything_is_asked(
    run, refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    printed = run("questions", EXAMPLE, "--format", "parquet", "-o", tmp_path / "rows.parquet")
    assert "--format parquet needs pyarrow, which is not installed: pip install pyarrow" in refused(printed)
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_when_all_is_written(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, told = tmp_path / "train.jsonl", iter([{}, {}])
    file.write_text("old")
    monkeypatch.setattr(questions, "_row", lambda *_: next(told))
    assert run("questions", EXAMPLE, "-n", 5, "-o", file).code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["train.jsonl"]
    assert file.read_text() == "old"


def test_a_preset_of_ones_own_is_asked_too(ask, run, refused, tmp_path: Path, request: pytest.FixtureRequest):
    for rows in (registry.ROWS, gymnasium.registry):  # other tests look at all ids
        request.addfinalizer(lambda rows=rows: rows.pop("test/Cats-v0", None))
    passages, asked = tmp_path / "passages.jsonl", tmp_path / "questions.jsonl"
    passages.write_text(json.dumps({"id": "a", "contents": '"Cats"\nA cat sat on a mat in Ürümqi.'}) + "\n")
    asked.write_text(json.dumps({"question": "Where sat a cat?", "answer": "Ürümqi", "gold": ["a"]}) + "\n")
    palaestra.register(
        "test/Cats-v0", "palaestra.games.search.search_qa:game", world=str(passages), questions=str(asked)
    )
    rows, printed = ask("test/Cats-v0", "-n", 2)
    assert [(row["question"], row["answers"]) for row in rows] == [("Where sat a cat?", ["Ürümqi"])]
    assert "test/Cats-v0: split=train has fewer questions, all 1 are written" in printed.err
    assert "no questions of split='test'" in refused(run("questions", "test/Cats-v0", "--split", "test", "-o", "-"))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("CartPole",), "palaestra/CartPole-v0 asks no questions: name one of palaestra/SearchQA-2Hop-v1, "),
        ((FRESH, "--set", "split=test"), "--set split=test: say --split"),
        ((FRESH, "--set", "form=tokens"), "--set form=tokens: this command asks in text"),
        ((FRESH, "--seed", 2**51, "-n", 1), "reach into another split: their sum is at most 2**51"),
        ((FRESH, "--set", "entitis=9"), "did you mean 'entities'?"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(words: tuple, error: str, run, refused, tmp_path: Path):
    assert error in refused(run("questions", *words, "-o", tmp_path / "file"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "option"),
    [(("-n", 0), "-n: must be"), (("--split", "dev"), "--split: invalid choice: 'dev'"), ((), "required: -o")],
)
def test_an_option_that_makes_no_sense_is_refused_by_its_name(words: tuple, option: str, run, refused):
    assert option in refused(run("questions", FRESH, *words, *(("-o", "-") if words else ())), 2)


def test_seeds_are_tried_from_the_first_on():
    class Sim:
        """A simulation of three questions: seed s asks s // 4."""

        num_envs = 5
        game = SimpleNamespace(world=SimpleNamespace(rules=SimpleNamespace(questions=3)))

        def reset(self, seed: int) -> None:
            self.states = {"number": np.arange(seed, seed + self.num_envs) // 4 % 3}

    assert find_seeds(Sim(), 2, 2) == [2, 4]
    assert find_seeds(Sim(), 10, 2) == [2, 4, 8]
