"""Passages and questions are read from the formats that people publish; a bad file is refused by line and reason."""

import json
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaestra.core.contract.keywords import LONGEST_TEMPLATE
from palaestra.core.files import FileError
from palaestra.games.search import corpora
from palaestra.games.search.corpora import SEVERAL, Question, read, read_passages
from palaestra.games.search.turn_codec import LONGEST_TEXT

pytestmark = pytest.mark.jitless

HOTPOT = {
    "_id": "5a",
    "question": "Who was born first?",
    "answer": "Ada",
    "type": "comparison",
    "level": "hard",
    "supporting_facts": [["Bob", 1], ["Ada", 0], ["Bob", 7]],
    "context": [
        ["Ada", ["Ada was born in 1815.", " She wrote."]],
        ["Cyd", ["Cyd danced.", "Well."]],
        ["Bob", ["Bob."]],
    ],
}
HOTPOT_PASSAGES = ("Ada\nAda was born in 1815. She wrote.", "Cyd\nCyd danced. Well.", "Bob\nBob.")
COLUMNS = HOTPOT | {
    "context": {"title": ["Ada", "Cyd", "Bob"], "sentences": [s for _, s in HOTPOT["context"]]},
    "supporting_facts": {"title": ["Bob", "Ada", "Bob"], "sent_id": [1, 0, 7]},
}
MUSIQUE = {
    "id": "2hop__1_2",
    "paragraphs": [
        {"idx": 0, "title": "Green", "paragraph_text": "Green is an album.", "is_supporting": True},
        {"idx": 1, "title": "Green", "paragraph_text": "Green is a colour.", "is_supporting": False},
        {"idx": 2, "title": "Steve", "paragraph_text": "Steve sang Green.", "is_supporting": True},
    ],
    "question": "What did the singer of Green found?",
    "question_decomposition": [
        {"id": 9, "question": "Green >> performer", "answer": "Steve", "paragraph_support_idx": 2},
        {"id": 8, "question": "#1 >> founded", "answer": "Ant", "paragraph_support_idx": 0},
    ],
    "answer": "Ant",
    "answer_aliases": ["The Ant", "Ant"],
    "answerable": True,
}


def lines(path: Path, *objects: object) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in objects), encoding="utf-8")
    return path


def listed(path: Path, *objects: object) -> Path:
    path.write_text(json.dumps(objects, indent=1), encoding="utf-8")
    return path


def test_passages_have_a_title_and_a_text(tmp_path: Path):
    path = lines(
        tmp_path / "p",
        {"id": "a", "title": " The\nCat ", "text": " sat.\nStill. "},
        {"id": 7, "text": "No\ntitle."},
        {"contents": '"Dog"\nBarks.\nLoud.', "id": "0"},
        {"contents": " Only text."},
        {"contents": "\nText behind an empty title."},
        {"title": None, "text": "Ünï"},
        {"title": "Dog", "text": "Again."},
    )
    passages, numbers = read_passages(path)
    assert passages == (
        "The Cat\nsat.\nStill.",
        "No title.",
        "Dog\nBarks.\nLoud.",
        "Only text.",
        "Text behind an empty title.",
        "Ünï",
        "Dog\nAgain.",
    )
    assert numbers == {"a": 0, "7": 1, "0": 2, "The Cat": 0, "Dog": SEVERAL}


def test_an_id_goes_before_an_equal_title(tmp_path: Path):
    path = lines(tmp_path / "p", {"id": "1", "title": "2", "text": "x"}, {"id": "2", "title": "1", "text": "y"})
    assert read_passages(path)[1] == {"1": 0, "2": 1}


@pytest.mark.parametrize("write", [lines, listed])
def test_questions_name_answers_passages_and_a_split(tmp_path: Path, write: Callable[..., Path]):
    passages = write(tmp_path / "p", {"id": 5, "title": "Cat", "text": "sat"}, {"title": "Dog", "text": "barks"})
    questions = write(
        tmp_path / "q",
        {"question": " Who? ", "answer": "Cat", "answer_aliases": ["a cat", "Cat"], "gold": ["Dog", 5, "5"]},
        {"question": "What?", "golden_answers": ["mat"], "answers": ["rug"], "split": "test", "gold": None},
    )
    corpus = read(str(passages), questions)
    assert corpus.passages == ("Cat\nsat", "Dog\nbarks")
    assert corpus.questions == (
        Question("Who?", ("Cat", "a cat"), (1, 0), "train"),
        Question("What?", ("rug", "mat"), (), "test"),
    )
    assert corpus.name == str(passages)


@pytest.mark.parametrize("write", [lines, listed])
@pytest.mark.parametrize(
    "item", [HOTPOT, COLUMNS, HOTPOT | {"evidences": [["Ada", "born", "1815"]], "answer_id": "Q7"}]
)
def test_hotpotqa_and_2wiki_are_read(tmp_path: Path, item: dict[str, Any], write: Callable[..., Path]):
    corpus = read(write(tmp_path / "train.json", item))
    assert corpus.passages == HOTPOT_PASSAGES
    assert corpus.questions == (Question("Who was born first?", ("Ada",), (2, 0)),)


def test_musique_is_read_in_the_order_of_the_decomposition(tmp_path: Path):
    unanswerable = MUSIQUE | {"answerable": False, "paragraphs": [], "question_decomposition": None}
    corpus = read(lines(tmp_path / "musique_ans_v1.0_dev.jsonl", unanswerable, MUSIQUE))
    assert corpus.passages == ("Green\nGreen is an album.", "Green\nGreen is a colour.", "Steve\nSteve sang Green.")
    answers = ("Ant", "The Ant")
    assert corpus.questions == (Question("What did the singer of Green found?", answers, (2, 0), "validation"),)


def test_equal_passages_of_several_questions_are_one(tmp_path: Path):
    other = HOTPOT | {"context": [["Dan", ["Dan."]], ["Bob", ["Another Bob."]], ["Ada", HOTPOT["context"][0][1]]]}
    corpus = read(listed(tmp_path / "x", HOTPOT, other))
    assert corpus.passages == (*HOTPOT_PASSAGES, "Dan\nDan.", "Bob\nAnother Bob.")
    assert [q.gold for q in corpus.questions] == [(2, 0), (4, 0)]  # each by the titles of its own context


def test_a_paragraph_without_text_is_left_out(tmp_path: Path):
    item = HOTPOT | {"context": [["Nil", []], *HOTPOT["context"], ["Void", ["", " "]]]}
    assert read(listed(tmp_path / "x", item)).passages == HOTPOT_PASSAGES


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("hotpot_dev_distractor_v1.json", "validation"),
        ("VAL.jsonl", "validation"),
        ("nq-validation", "validation"),
        ("2wiki.test.json", "test"),
        ("latest_devices.json", "train"),
    ],
)
def test_the_name_of_a_file_says_the_split_where_no_field_does(tmp_path: Path, name: str, split: str):
    corpus = read(lines(tmp_path / name, HOTPOT, HOTPOT | {"split": "train"}))
    assert [q.split for q in corpus.questions] == [split, "train"]
    passages = lines(tmp_path / "p", {"text": "x"})
    assert read(passages, lines(tmp_path / name, {"question": "q", "answer": "a"})).questions[0].split == split


def test_blank_lines_and_a_byte_order_mark_are_skipped(tmp_path: Path):
    path = tmp_path / "p"
    path.write_bytes(b'\xef\xbb\xbf{"text": "x"}\r\n\n  \n{"text": "y"}')
    assert read_passages(path)[0] == ("x", "y")
    path.write_bytes(b'\n \n\n[{"text": "x"}]\n')
    assert read_passages(path)[0] == ("x",)
    path.write_bytes(b'\xef\xbb\xbf[{"text": "x"}]')
    assert read_passages(path)[0] == ("x",)


def test_numbers_that_are_none_do_no_harm(tmp_path: Path):
    path = tmp_path / "p"
    path.write_text('{"text": "x", "score": NaN, "rank": -Infinity, "big": 1e999}', encoding="utf-8")
    assert read_passages(path)[0] == ("x",)


def test_a_corpus_with_questions_takes_no_others(tmp_path: Path):
    path = lines(tmp_path / "x", MUSIQUE)
    with pytest.raises(ValueError, match=re.escape(f"{path} has questions of its own")):
        read(path, path)


def test_passages_alone_are_refused(tmp_path: Path):
    path = lines(tmp_path / "p", {"text": "x"})
    with pytest.raises(FileError, match=rf"^{re.escape(str(path))}: passages without questions: .*questions="):
        read(path)


GOOD = b'{"id": 1, "title": "T", "text": "x"}\n'
BAD_PASSAGES = {
    "no file": (None, ": cannot be read: "),
    "no text in UTF-8": (GOOD + b'\n{"text": "\xff"}', ": line 3: no text in UTF-8 (byte 10)"),
    "no JSON": (GOOD + b'{"text": }\n', ": line 2: no JSON (Expecting value, character 10)"),
    "nested": (b'{"text": ' + b"[" * 100_000, ": line 1: no JSON (maximum recursion depth"),
    "a nested list": (b"[" * 100_000, ": item 1: no JSON (maximum recursion depth"),
    "a long number": (b'{"id": ' + b"1" * 5000 + b"}", ": line 1: no JSON (Exceeds the limit"),
    "a list that ends early": (b'[{"text": "x"}', ": item 1: no JSON (',' or ']' is missing)"),
    "a list that goes on": (b'[{"text": "x"}] []', ": item 1: no JSON (the file goes on behind the list)"),
    "a list of two without a comma": (b'[{"text": "x"} {"text": "y"}]', ": item 1: no JSON (',' or ']' is missing)"),
    "a list that ends inside": (b'[{"text": "x"}, {"text": "y', ": item 2: no JSON (Unterminated string"),
    "a list that is no UTF-8": (b'[{"text": "\xff"}]', ": no text in UTF-8 (behind item 0)"),
    "a long passage": (
        b'{"text": "' + b"word " * 60_000 + b'"}',
        ": line 1: text has 299999 characters, more than 65536",
    ),
    "a long title": (b'{"title": "' + b"word " * 60_000 + b'", "text": "x"}', ": line 1: title has"),
    "a long id": (b'{"id": "' + b"x" * 2000 + b'", "text": "x"}', ": line 1: id has 2000 characters, more than 1024"),
    "a list without passages": (b"[]", ": no passages: "),
    "nothing": (b"\n", ": no passages: "),
    "no object": (GOOD + b"5", ": line 2: a whole number, not an object"),
    "no object in a list": (b'[{"text": "x"}, null]', ": item 2: null, not an object"),
    "no field": (GOOD + b'{"title": "T"}', ": line 2: no field text: "),
    "a list for a text": (b'{"text": ["x"]}', ": line 1: text is a list, not a text: "),
    "a number for contents": (b'{"contents": 0.5}', ": line 1: contents is a number, not a text: "),
    "an empty text": (b'{"text": " "}', ": line 1: text is empty: "),
    "contents with nothing but a title": (
        b'{"contents": "T\\n "}',
        ": line 1: contents behind its first line is empty",
    ),
    "a number for a title": (b'{"text": "x", "title": NaN}', ": line 1: title is a number, not a text: "),
    "half a character": (b'{"text": "\\ud83d"}', ": line 1: text has half of a character"),
    "half a character in a title": (b'{"text": "x", "title": "\\ud83d"}', ": line 1: title has half of a character"),
    "a list for an id": (b'{"text": "x", "id": [1]}', ": line 1: id is a list, not a text or a whole number: "),
    "true for an id": (b'{"text": "x", "id": true}', ": line 1: id is true or false, not"),
    "an id twice, once as a number": (b'{"text": "y", "id": "1"}\n' + GOOD, ": line 2: id '1' stands twice: "),
    "an id twice": (GOOD + b'{"text": "y", "id": "1"}', ": line 2: id '1' stands twice: "),
}


@pytest.mark.parametrize("broken", BAD_PASSAGES)
def test_a_bad_file_of_passages_is_refused(tmp_path: Path, broken: str):
    content, reason = BAD_PASSAGES[broken]
    path = tmp_path / "p.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FileError, match=rf"^{re.escape(str(path) + reason)}"):
        read(path, path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_is_refused(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="pipe: no regular file"):
        read(tmp_path / "pipe")


BAD_QUESTIONS = {
    "nothing": ([], ": no questions: "),
    "no question": ([{"answer": "a"}], ": line 1: no field question: "),
    "an empty question": ([{"question": "", "answer": "a"}], ": line 1: question is empty: "),
    "no answer": ([{"question": "q"}], ": line 1: no answer "),
    "no answers": ([{"question": "q", "answers": []}], ": line 1: no answer "),
    "an empty answer": ([{"question": "q", "answers": ["a", " "]}], ": line 1: answers is empty: "),
    "a number for an answer": ([{"question": "q", "answer": 5}], ": line 1: answer has a whole number, not a text: "),
    "an unknown passage": (
        [{"question": "q", "answer": "a"}, {"question": "q", "answer": "a", "gold": ["U"]}],
        ": line 2: gold 'U' is that of no passage: ",
    ),
    "an unknown id": ([{"question": "q", "answer": "a", "gold": [9]}], ": line 1: gold '9' is that of no passage: "),
    "a title of two": (
        [{"question": "q", "answer": "a", "gold": ["S"]}],
        ": line 1: gold 'S' is that of several passages (give ids): ",
    ),
    "a text for gold": ([{"question": "q", "answer": "a", "gold": "T"}], ": line 1: gold is not a list "),
    "an object in gold": ([{"question": "q", "answer": "a", "gold": [{}]}], ": line 1: gold is not a list "),
    "an unknown split": ([{"question": "q", "answer": "a", "split": "dev"}], ": line 1: split is 'dev', none of train"),
    "a list for a split": ([{"question": "q", "answer": "a", "split": []}], ": line 1: split is a list, none of train"),
}


@pytest.mark.parametrize("broken", BAD_QUESTIONS)
def test_a_bad_file_of_questions_is_refused(tmp_path: Path, broken: str):
    objects, reason = BAD_QUESTIONS[broken]
    texts = [{"id": 1, "title": "T", "text": "x"}, {"title": "S", "text": "y"}, {"title": "S", "text": "z"}]
    questions = lines(tmp_path / "q.jsonl", *objects)
    with pytest.raises(FileError, match=rf"^{re.escape(str(questions) + reason)}"):
        read(lines(tmp_path / "p.jsonl", *texts), questions)


def without(item: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != name}


BAD_DATASETS = {
    "hidden answers": (without(HOTPOT, "answer"), "no field answer: "),
    "hidden facts": (without(HOTPOT, "supporting_facts"), "no field supporting_facts: "),
    "an empty answer": (HOTPOT | {"answer": ""}, "answer is empty: "),
    "the full-wiki setting": (
        HOTPOT | {"context": HOTPOT["context"][:2]},
        "gold 'Bob' is that of no passage: give a file as HotpotQA (distractor setting)",
    ),
    "a paragraph of one part": (HOTPOT | {"context": [["Ada"]]}, "context[0] has 1 elements, not 2: "),
    "sentences of one text": (HOTPOT | {"context": [["Ada", "x"]]}, "context[0][1] is a text, not a list: "),
    "a sentence of no text": (HOTPOT | {"context": [["Ada", ["x", 5]]]}, "context[0][1][1] is a whole number, not"),
    "half a character": (HOTPOT | {"context": [["\ud83d", ["x"]]]}, "a paragraph has half of a character"),
    "a fact without a number": (HOTPOT | {"supporting_facts": [["Ada", None]]}, "supporting_facts[0][1] is null, not"),
    "columns of two lengths": (
        COLUMNS | {"context": {"title": ["Ada"], "sentences": []}},
        "context has 1 titles, but 0 texts: ",
    ),
    "no column": (COLUMNS | {"context": {"title": ["Ada"]}}, "no field sentences in context: "),
    "no decomposition": (without(MUSIQUE, "question_decomposition"), "no field question_decomposition: "),
    "a step without a passage": (
        MUSIQUE | {"question_decomposition": [{"paragraph_support_idx": None}]},
        "question_decomposition[0].paragraph_support_idx is null, not a whole number: ",
    ),
    "a step with another passage": (
        MUSIQUE | {"question_decomposition": [{"paragraph_support_idx": 3}]},
        "gold '3' is that of no passage: ",
    ),
    "an idx twice": (MUSIQUE | {"paragraphs": MUSIQUE["paragraphs"][:1] * 2}, "an idx stands twice in paragraphs: "),
    "a text for answerable": (MUSIQUE | {"answerable": "no"}, "answerable is a text, not true or false: "),
    "another format": ({"text": "x"}, "no field question: "),
}


@pytest.mark.parametrize("broken", BAD_DATASETS)
def test_a_bad_dataset_is_refused(tmp_path: Path, broken: str):
    item, reason = BAD_DATASETS[broken]
    for path, where in ((lines(tmp_path / "x", HOTPOT, item), "line"), (listed(tmp_path / "y", MUSIQUE, item), "item")):
        with pytest.raises(FileError, match=rf"^{re.escape(f'{path}: {where} 2: {reason}')}"):
            read(path)


def test_a_dataset_without_answerable_questions_is_refused(tmp_path: Path):
    path = lines(tmp_path / "x", MUSIQUE | {"answerable": False})
    with pytest.raises(FileError, match=rf"^{re.escape(str(path))}: no questions: give a file as HotpotQA"):
        read(path)


# -- large files -------------------------------------------------------------------------------------------------------


def test_an_endless_line_is_refused_before_it_is_read(tmp_path: Path):
    path = tmp_path / "endless.jsonl"
    path.write_bytes(b'{"text": "x"}\n{"text": "' + b"x" * (corpora.LONGEST_OBJECT + 2**20))
    with pytest.raises(FileError, match=r"endless\.jsonl: line 2: longer than 16777216 bytes"):
        read_passages(path)


@pytest.mark.parametrize("start", [b"", b"[", b'{"text": "x"}\n'])
def test_a_sparse_file_is_refused(tmp_path: Path, start: bytes):
    path = tmp_path / "sparse.jsonl"
    path.write_bytes(start)
    os.truncate(path, 15_000_000_000)
    with pytest.raises(FileError, match=r"sparse\.jsonl"):
        read_passages(path)


def test_a_list_is_read_value_by_value_wherever_its_file_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rows = [{"text": f"caf\u00e9 \u2014 \U0001f600 {'x' * k} [,]"} for k in range(1, 41)]
    path = tmp_path / "list.json"
    path.write_text("\ufeff [ " + " ,\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + " ] \n", "utf-8")
    for size in (1, 2, 3, 7, 64, 2**16):
        monkeypatch.setattr(corpora, "READ_BYTES", size)
        assert list(read_passages(path)[0]) == [row["text"] for row in rows]


def test_passages_keep_the_ids_of_their_file(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": "Q64", "text": "a"}\n{"text": "b"}\n{"id": 7, "text": "c"}\n')
    passages = read_passages(path)[0]
    assert (passages, passages.ids) == (("a", "b", "c"), ("Q64", "1", 7))
    assert pickle.loads(pickle.dumps(passages)).ids == passages.ids
    path.write_text('{"text": "a"}\n')
    assert read_passages(path)[0].ids == ()


def test_ten_of_the_longest_passages_fit_into_what_an_agent_reads():
    assert 10 * (corpora.LONGEST_PASSAGE + 100) < LONGEST_TEXT
    assert corpora.LONGEST_QUESTION + LONGEST_TEMPLATE < LONGEST_TEXT
