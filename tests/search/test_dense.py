"""Dense retrieval, alone and in SearchQA: what is nearest is found, whatever the embeddings come from."""

import importlib
import re
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from reliability.model_folders import write_embedder

from palaestra import make_batch
from palaestra.cli.serve import codec_of
from palaestra.core.compile.identity import rules_digest
from palaestra.core.files import FileError
from palaestra.games.search import DenseIndex, dense
from palaestra.games.search.search_qa import game
from palaestra.testing import check

pytestmark = pytest.mark.check

ID = "palaestra/SearchQA-Fictional-v1"
SIZE = 32
TEXTS = ["the cat sat", "a dog barks", "the cat sat", "birds sing", ""]


def embed(texts: Sequence[str]) -> np.ndarray:
    """Counts of the words that share a remainder, in whole numbers: sums have no rounding."""
    out = np.zeros((len(texts), SIZE))
    for row, text in zip(out, texts, strict=True):
        for word in re.findall(r"\w+", text.lower()):
            row[zlib.crc32(word.encode()) % SIZE] += 1
    return out


def with_nan(texts: Sequence[str]) -> np.ndarray:
    return embed(texts) * np.nan


def of_another_size(texts: Sequence[str]) -> np.ndarray:
    return np.ones((len(texts), 4 + len(texts)))


KEYWORDS: dict[str, Any] = {"form": "text", "passages": 600, "retriever": f"{__name__}:embed"}


# -- alone -------------------------------------------------------------------------------------------------------------


def test_the_largest_products_come_first_and_equal_ones_by_number():
    texts = [f"w{k % 7} w{k % 3} w{k % 5}" for k in range(50)]
    queries = ["w1 w2", "w0 w0 w4", "nothing", "w6"]
    numbers, scores = DenseIndex(texts, embed).search(queries, 8)
    products = embed(queries) @ embed(texts).T
    for row, found, score in zip(products, numbers, scores, strict=True):
        order = np.lexsort((np.arange(50), -row))[:8]
        np.testing.assert_array_equal(found, order)
        np.testing.assert_array_equal(score, row[order])


def test_shapes_are_those_of_the_other_index():
    index = DenseIndex(TEXTS, embed, titles=["A", "B", "C", "D", "E"])
    assert index.passages[0] == "A\nthe cat sat"
    numbers, scores = index.search("cat", 7)
    assert (numbers.dtype, scores.dtype, numbers.shape) == (np.int32, np.float64, (7,))
    assert numbers[:2].tolist() == [0, 2]
    assert numbers[5:].tolist() == [-1, -1]
    assert scores[5:].tolist() == [0, 0]
    assert index.search([], 3)[0].shape == (0, 3)
    assert index.search(["cat"], 0)[0].shape == (1, 0)
    assert DenseIndex([], embed).search("cat", 2)[0].tolist() == [-1, -1]


def test_a_query_finds_the_same_alone_as_among_others():
    rng = np.random.default_rng(0)
    vectors = {f"{k}": rng.normal(size=48) for k in range(300)}
    index = DenseIndex(list(vectors), lambda texts: np.stack([vectors[text] for text in texts]))
    numbers, scores = index.search(list(vectors), 5)
    for k in range(0, 300, 10):
        alone = index.search(str(k), 5)
        np.testing.assert_array_equal(alone[0], numbers[k])
        np.testing.assert_array_equal(alone[1], scores[k])


@pytest.mark.parametrize(
    ("retriever", "words"),
    [
        ("no/such/folder", "no such folder"),
        ("no_such_module:embed", "no_such_module"),
        (f"{__name__}:no_function", "no_function"),
        (f"{__name__}:SIZE", "is no function"),
        (with_nan, "not finite"),
        (lambda texts: embed(texts)[0], "shape (5, d), not (32,)"),
    ],
)
def test_what_gives_no_embeddings_is_refused(retriever: Any, words: str):
    with pytest.raises(ValueError, match=re.escape(words)):
        DenseIndex(TEXTS, retriever)


def test_embeddings_of_another_size_are_refused():
    index = DenseIndex(TEXTS, of_another_size)
    with pytest.raises(ValueError, match=re.escape("shape (1, 9), not (1, 5)")):
        index.search("cat")


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match="list"):
        DenseIndex("a text", embed)
    with pytest.raises(ValueError, match="titles"):
        DenseIndex(TEXTS, embed, titles=["A"])
    with pytest.raises(ValueError, match="k=-1"):
        DenseIndex(TEXTS, embed).search("cat", -1)


# -- a model of this disk ----------------------------------------------------------------------------------------------


class Model:
    """What is used of a model of Sentence Transformers."""

    similarity_fn_name = "cosine"
    calls: ClassVar = list[tuple[str, int, bool]]()

    def __init__(self, folder: str) -> None:
        if not Path(folder, "model.safetensors").exists():
            raise OSError("no weights")

    def encode_query(self, texts: list[str], normalize_embeddings: bool, **_: Any) -> np.ndarray:
        self.calls.append(("query", len(texts), normalize_embeddings))
        return embed(texts)

    def encode_document(self, texts: list[str], normalize_embeddings: bool, **_: Any) -> np.ndarray:
        self.calls.append(("document", len(texts), normalize_embeddings))
        return embed(texts)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a model, with a cache folder beside it."""
    monkeypatch.setattr(dense, "load_embedder", Model)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(Model, "calls", [])
    return write_embedder(tmp_path / "model")


def test_passages_are_embedded_once_for_the_same_model_and_texts(folder: Path):
    first = DenseIndex(TEXTS, folder)
    assert Model.calls == [("document", 5, True)]
    second = DenseIndex(TEXTS, str(folder))
    assert Model.calls == [("document", 5, True)]
    np.testing.assert_array_equal(first.embeddings, second.embeddings)
    np.testing.assert_array_equal(second.search("cat", 2)[0], [0, 2])
    assert Model.calls[1:] == [("query", 1, True)]
    DenseIndex(TEXTS[::-1], folder)
    (folder / "README.md").write_text("another model, as far as anybody knows")
    DenseIndex(TEXTS, folder)
    assert Model.calls[2:] == [("document", 5, True), ("document", 5, True)]


def test_a_damaged_file_of_embeddings_is_made_anew(folder: Path):
    DenseIndex(TEXTS, folder)
    (kept,) = (folder.parent / "cache").rglob("*.npy")
    for content in (b"", b"\x93NUMPY", kept.read_bytes()[:-4]):
        kept.write_bytes(content)
        np.testing.assert_array_equal(DenseIndex(TEXTS, folder).embeddings, embed(TEXTS))
    assert len(Model.calls) == 4


def test_a_folder_that_cannot_be_written_costs_a_warning(folder: Path):
    (folder.parent / "cache").write_text("a file")
    with pytest.warns(RuntimeWarning, match="not kept"):
        DenseIndex(TEXTS, folder)


def test_a_folder_without_a_model_is_refused(folder: Path):
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileError, match=r"model\.safetensors: there is no such file"):
        DenseIndex(TEXTS, folder)


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = write_embedder(tmp_path)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'palaestra[text]'")):
        DenseIndex(TEXTS, folder)


# -- in SearchQA -------------------------------------------------------------------------------------------------------


def test_the_same_questions_are_asked_and_other_passages_found():
    dense, sparse = (gymnasium.make(ID, **{**KEYWORDS, "retriever": r}) for r in (KEYWORDS["retriever"], "bm25"))
    index = codec_of(ID, KEYWORDS).index
    assert isinstance(index, DenseIndex)
    differ = 0
    for seed in range(20):
        prompt, info = dense.reset(seed=seed)
        assert (prompt, info["path"]) == (sparse.reset(seed=seed)[0], info["path"])
        query = " ".join(["mayor birthplace of Arnev", *["Shore"] * 12, info["path"][0][0]])
        found, *_ = dense.step(f"<search>{query}</search>")
        texts = [index.passages[n].partition("\n") for n in index.search(query, 3)[0]]
        assert (
            found.strip()
            == "<information>"
            + "\n".join(f'Doc {k}(Title: "{title}") {text}' for k, (title, _, text) in enumerate(texts, 1))
            + "</information>"
        )  # words behind the sixteenth count, too
        differ += found != sparse.step(f"<search>{query}</search>")[0]
    assert differ > 10


def test_what_is_no_search_finds_nothing():
    env = gymnasium.make(ID, **KEYWORDS)
    env.reset(seed=0)
    for turn in ("hello", "<search> .,; </search>", "<answer></answer>"):
        text, _, terminated, _, info = env.step(turn)
        assert "This turn said nothing" in text
        assert not terminated
    assert info["malformed"] == 3
    env.reset(seed=0)
    _, reward, terminated, *_ = env.step(f"<answer>{info['answers'][0]}</answer>")
    assert (reward, terminated) == (1.0, True)


@pytest.mark.parametrize("judge", [False, True])
def test_the_oracle_is_right(judge: bool):
    sim = make_batch(ID, 64, opponents={"agent": "oracle"}, autoreset_mode="off", judge=judge, max_turns=8, **KEYWORDS)
    sim.reset(seed=0)
    while not (over := sim.terminated | sim.truncated).all():
        sim.step(lanes=~over)
    assert (sim.info["exact_match"] == 1).all()
    assert (sim.info["hops_found"] == 2).all()


def test_real_text_is_searched_too():
    env = gymnasium.make("palaestra/SearchQA-Custom-v1", retriever=KEYWORDS["retriever"])
    _, info = env.reset(seed=0)
    assert "<information>Doc 1" in env.step(f"<search>{info['question']}</search>")[0]


def test_the_kit_passes():
    only = ["codec_results_are_in_spaces", "codec_lanes_are_independent", "scripts_play_legally", "faces_agree"]
    report = check(ID, only=only, **KEYWORDS)
    assert [result.status for result in report.results] == ["passed"] * len(only)


def test_retrievers_are_different_rules():
    named = [game(world="fixed", **{**KEYWORDS, "retriever": r}) for r in ("bm25", f"{__name__}:embed")]
    others = [game(world="fixed", **{**KEYWORDS, "retriever": f"{__name__}:{name}"}) for name in ("embed", "doubled")]
    digests = [rules_digest(g) for g in (*named, *others)]
    assert digests[1] == digests[2]
    assert len(set(digests)) == 3


def doubled(texts: Sequence[str]) -> np.ndarray:
    return 2 * embed(texts)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"form": "text"}, "means nothing with world='fresh'"),
        ({"world": "fixed", "form": "tokens"}, "means nothing with form='tokens'"),
        ({"world": "fixed", "form": "structured"}, "means nothing with form='structured'"),
    ],
)
def test_where_nothing_is_embedded_it_is_refused(keywords: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=re.escape(words)):
        game(**keywords, retriever=KEYWORDS["retriever"])


# -- a real one --------------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A saved BERT of random numbers with pooling, as Sentence Transformers reads it."""
    torch: Any = pytest.importorskip("torch")
    package: Any = pytest.importorskip("sentence_transformers", reason="pip install sentence-transformers==6.2.0")
    transformers: Any = pytest.importorskip("transformers")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz0123456789"]
    words += [f"##{letter}" for letter in words[5:]]
    tokenizer = transformers.BertTokenizer(vocab={word: k for k, word in enumerate(words)})
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    torch.manual_seed(0)
    transformers.BertModel(transformers.BertConfig(vocab_size=len(words), **sizes)).save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    models: Any = importlib.import_module("sentence_transformers.sentence_transformer.modules")
    module, pooling = models.Transformer(str(tmp_path / "bert")), models.Pooling(16)
    model = package.SentenceTransformer(modules=[module, pooling], device="cpu", prompts={"query": "ask "})
    model.save(str(tmp_path / "tiny"))
    return tmp_path / "tiny"


@pytest.mark.peers
def test_a_model_of_sentence_transformers_embeds_queries_and_passages(tiny: Path):
    from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]

    model: Any = SentenceTransformer(str(tiny), device="cpu")
    index = DenseIndex(TEXTS[:4], tiny)
    np.testing.assert_allclose(np.linalg.norm(index.embeddings, axis=1), 1, rtol=1e-5)
    queries = ["a cat", "who sings"]
    wanted = model.encode_query(queries, normalize_embeddings=True)
    plain = model.encode(queries, normalize_embeddings=True, prompt="")
    assert np.abs(wanted - plain).max() > 1e-3
    products = wanted @ model.encode_document(TEXTS[:4], normalize_embeddings=True).T
    numbers, scores = index.search(queries, 4)
    np.testing.assert_allclose(scores, np.take_along_axis(products, numbers, axis=1), atol=1e-5)
    env = gymnasium.make(ID, **{**KEYWORDS, "retriever": str(tiny)})
    _, info = env.reset(seed=0)
    assert "<information>Doc 1" in env.step(f"<search>{info['question']}</search>")[0]
