# pyright: reportMissingImports=false
"""Live experts: tokens of several vocabularies, what counts as right; and models of Hugging Face."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reliability.model_folders import write_llama

from palaestra import registry
from palaestra.core.files import FileError
from palaestra.core.run.physics import PhysicsSimulation
from palaestra.games.ensemble import live_engine, live_game, live_models
from palaestra.games.ensemble.live_models import END, Expert, bytes_of_tokens, places_of, tokens_of_all

ID, EXPERTS = "palaestra/LLMEnsemble-v0", "palaestra/LLMEnsemble-Multi-v0"
PROMPTS = [
    {"prompt": "2 + 2 =", "answer": " four", "domain": 1},
    {"prompt": "the capital of France:", "answer": " Paris, é"},
]


class Parrot:
    """An expert that continues the prompts of `PROMPTS` by a text that it knows, with the longest token that fits."""

    def __init__(self, tokens: Sequence[bytes], says: Sequence[str], mass: float = 0.9) -> None:
        self.tokens: list[bytes | None] = [END, None, *tokens]
        self.says, self.mass, self.read = [text.encode() for text in says], mass, list[bytes]()

    def distribution(self, text: bytes) -> np.ndarray:
        self.read.append(text)
        prompts = [row["prompt"].encode() for row in PROMPTS]
        number = next(k for k, prompt in enumerate(prompts) if text.startswith(prompt))
        left = self.says[number][len(text) - len(prompts[number]) :]
        fitting = [k for k, token in enumerate(self.tokens) if token and left.startswith(token)]
        best = max(fitting, key=lambda k: len(self.tokens[k] or b""), default=0)
        probs = np.full(len(self.tokens), (1.0 - self.mass) / (len(self.tokens) - 2))
        probs[1], probs[best] = 0.0, self.mass
        return probs


LETTERS = [bytes([byte]) for byte in b" ,.Paris\xc3\xa9four"]


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in PROMPTS))
    return path


@pytest.fixture
def match(monkeypatch: pytest.MonkeyPatch, prompts: Path, rules: Callable[..., Any]) -> Callable[..., Any]:
    """``match(parrots, lanes, **keywords)``: lanes with such experts, started."""

    def match(parrots: Sequence[Parrot], lanes: int = 2, seed: int = 1, id: str = ID, **keywords: Any) -> Any:
        by_name = {f"expert {k}": parrot for k, parrot in enumerate(parrots)}
        for module in (live_game, live_engine):
            monkeypatch.setattr(module, "load_expert", by_name.__getitem__)
        sizes = {"span_tokens": 2, **keywords}
        game, parameters = registry.make_game(id, live=tuple(by_name), prompts=prompts, **sizes)
        sim = rules(game, lanes, autoreset_mode="off", parameters=parameters)
        sim.reset(seed=seed)
        return sim

    return match


def finish(sim: Any, logits: Sequence[float]) -> tuple[set[str], np.ndarray]:
    """Plays with the same logits to the ends; the end reasons, and what the first agent was paid, ``[N]``."""
    paid = np.zeros(sim.num_envs)
    while not (over := sim.terminated | sim.truncated).all():
        sim.step(np.tile(np.array(logits), (sim.num_envs, 1, 1)), lanes=~over)
        paid += sim.rewards[:, 0]
    return {sim.game.end_reason(int(number)) for number in sim.info["end_reason"]}, paid


def written(sim: Any, lane: int = 0) -> bytes:
    text = sim.states["text"][lane, 0]
    return b"".join(sim.game.captions.tokens[k] for k in text["tokens"][: text["length"]])


ANSWERS = [row["answer"] for row in PROMPTS]


def test_experts_of_two_vocabularies_write_the_answer_together(match: Any) -> None:
    whole = Parrot([*LETTERS, b" four", b" Par", b"is"], ANSWERS, 0.5)
    letters = Parrot(LETTERS, ["x", "y"], 0.9)
    sim = match([whole, letters], 8, feature_noise=0.0)
    assert {0, 1} == set(sim.states["text"]["prompt"][:, 0].tolist())
    assert np.array_equal(sim.info["domain"], 1 - sim.states["text"]["prompt"][:, 0])
    assert np.array_equal(sim.observations[:, 0, :2], np.eye(2)[sim.info["domain"]])
    ends, paid = finish(sim, [5.0, -5.0])
    assert ends == {"complete"}
    np.testing.assert_allclose(paid, 1.0)
    for lane in range(8):
        assert written(sim, lane).decode("utf-8", "ignore").startswith(ANSWERS[sim.states["text"]["prompt"][lane, 0]])
    assert any(text.endswith(b" Paris") for text in letters.read)


def test_the_token_is_that_of_the_largest_weighted_sum_over_all_vocabularies(match: Any) -> None:
    """ " four": 0.6 w; " ": 0.4 / 3 w + 0.9 (1 - w), which is less from w = 0.6585 on."""
    for weight, first in ((0.64, b" "), (0.68, b" four")):
        parrots = [Parrot([b" ", b" four", b"four"], ANSWERS, 0.6), Parrot([b" ", b"four"], ANSWERS, 0.9)]
        sim = match(parrots, 4)
        logits = np.log([weight, 1.0 - weight])
        sim.step(np.tile(logits, (4, 1, 1)))
        lane = sim.states["text"]["prompt"][:, 0].tolist().index(0)
        assert sim.game.captions.tokens[sim.states["text"]["tokens"][lane, 0, 0]] == first


def test_a_text_that_departs_is_paid_what_was_right(match: Any) -> None:
    sim = match([Parrot([*LETTERS, b" fo", b" Pa"], [" for", " Pap"])], 4)
    ends, paid = finish(sim, [0.0])
    assert ends == {"departed"}
    shares = [3 / 5, 3 / 10]
    np.testing.assert_allclose(paid, [shares[k] for k in sim.states["text"]["prompt"][:, 0]])


def test_the_end_of_a_text_departs_from_an_answer_that_goes_on(match: Any) -> None:
    sim = match([Parrot(LETTERS, [" f", " P"])], 2)
    ends, paid = finish(sim, [0.0])
    assert ends == {"departed"}
    np.testing.assert_allclose(paid, [2 / [5, 10][k] for k in sim.states["text"]["prompt"][:, 0]])


def test_a_token_beyond_the_answer_completes_it(match: Any) -> None:
    sim = match([Parrot([b" four.", b" Paris, \xc3\xa9."], [" four.", " Paris, é."])], 2)
    ends, paid = finish(sim, [0.0])
    assert ends == {"complete"}
    assert (paid == 1.0).all()


def test_spans_that_are_over_end_the_match(match: Any) -> None:
    sim = match([Parrot(LETTERS, ANSWERS)], 2, spans=2)
    ends, paid = finish(sim, [0.0])
    assert ends == {"out_of_tokens"}
    np.testing.assert_allclose(paid, [4 / [5, 10][k] for k in sim.states["text"]["prompt"][:, 0]])


def test_entropies_are_shares_of_the_largest_one(match: Any) -> None:
    sim = match([Parrot([b"a", b"b", b"c"], ["", ""], mass=0.25), Parrot([b"a", b"d"], ["", ""], mass=1.0)], 1)
    size = len(sim.game.captions.tokens)
    assert size == 5
    np.testing.assert_allclose(sim.observations[0, 0, 2:4], [np.log(4) / np.log(size), 0.0], atol=1e-6)


def test_agents_of_experts_play_the_match_of_the_one_agent(match: Any) -> None:
    def parrots() -> list[Parrot]:
        return [Parrot([*LETTERS, b" fo"], ANSWERS, 0.5), Parrot(LETTERS, [" fx", " Pbx"], 0.6)]

    one, experts = match(parrots(), 4), match(parrots(), 4, id=EXPERTS)
    generator = np.random.default_rng(0)
    while not one.terminated.any():
        logits = generator.uniform(-5.0, 5.0, (4, 2))
        one.step(logits[:, None])
        experts.step(logits[:, :, None])
        assert (experts.rewards == one.rewards).all()
        assert (experts.observations[:, :, :-2] == one.observations).all()
    assert np.array_equal(one.states["text"]["tokens"], experts.states["text"]["tokens"])


@pytest.mark.parametrize(("script", "largest"), [("static_0", 0), ("static_1", 1), ("entropy", 1)])
def test_scripts_weight_the_experts(match: Any, script: str, largest: int) -> None:
    sim = match([Parrot(LETTERS, ANSWERS, 0.5), Parrot(LETTERS, ANSWERS, 0.9)], 1)
    sim.set_opponent("agent", script)
    sim.step()
    assert sim.states["weights"][0].argmax() == largest
    assert (sim.states["weights"][0].max() > 0.99) == script.startswith("static")


def test_a_snapshot_goes_on_without_the_engines_memory(match: Any) -> None:
    sim = match([Parrot(LETTERS, ANSWERS, 0.5), Parrot(LETTERS, [" fx", " Px"], 0.6)], 3)
    sim.step(np.zeros((3, 1, 2)))
    snapshot = sim.snapshot()
    _, paid = finish(sim, [2.0, -2.0])
    texts = sim.states["text"].copy()
    sim.restore(snapshot)
    assert np.array_equal(finish(sim, [2.0, -2.0])[1], paid)
    assert np.array_equal(sim.states["text"], texts)


def test_pictures_and_texts_show_prompt_answer_and_what_is_written(match: Any) -> None:
    from palaestra.games.ensemble.live_render import draw, write

    sim = match([Parrot(LETTERS, [" fx", " Px"], 0.6)], 1)
    record = sim.states.view((np.record, sim.states.dtype))[0]
    assert "written: ''" in write(sim.game, sim.game.world, record)
    blank = np.asarray(draw(sim.game, sim.game.world, record))
    finish(sim, [0.0])
    assert (np.asarray(draw(sim.game, sim.game.world, record)) != blank).any()
    number = int(record.text[0].prompt)
    shown = write(sim.game, sim.game.world, record)
    assert f"answer: {ANSWERS[number]!r}" in shown
    assert f"written: {written(sim).decode()!r}" in shown


# -- files and keywords ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: no JSON"),
        ("[1]", r"line 2: no object: give \{"),
        ('{"prompt": "a"}', "line 2: 'answer' is 'None': give a text that is not empty"),
        ('{"prompt": "", "answer": "b"}', "line 2: 'prompt' is ''"),
        ('{"prompt": "a", "answer": "b", "domain": 8}', "line 2: 'domain' is '8': give a number from 0 to 7"),
        ('{"prompt": "a", "answer": "b", "domain": true}', "line 2: 'domain' is 'True'"),
    ],
)
def test_a_damaged_file_of_prompts_is_refused(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text(f'{{"prompt": "x", "answer": "y"}}\n{line}\n')
    with pytest.raises(FileError, match=message):
        live_game.read_prompts(path)


def test_an_empty_file_of_prompts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(FileError, match=r"empty\.jsonl: has no prompts"):
        live_game.read_prompts(tmp_path / "empty.jsonl")


def test_keywords_that_do_not_fit_are_refused(tmp_path: Path, prompts: Path) -> None:
    with pytest.raises(ValueError, match="live='one': give a tuple of 1 to 8 folders"):
        registry.make_game(ID, live="one", prompts=prompts)
    with pytest.raises(ValueError, match="live= needs prompts="):
        registry.make_game(ID, live=(str(tmp_path),))
    with pytest.raises(ValueError, match="there is no folder 'nowhere'"):
        registry.make_game(ID, live=("nowhere",), prompts=prompts)


def test_without_the_library_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prompts: Path
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ImportError, match=r'pip install "palaestra\[text\]"'):
        registry.make_game(ID, live=(str(write_llama(tmp_path / "model")),), prompts=prompts)


def test_tokens_of_all_hold_each_text_once() -> None:
    first, second = Parrot([b"b", b"a"], []), Parrot([b"a", b"c"], [])
    tokens = tokens_of_all([first, second])  # type: ignore[arg-type]
    assert tokens == (END, b"a", b"b", b"c")
    assert places_of(second, tokens).tolist() == [0, 0, 1, 3]  # type: ignore[arg-type]


# -- models of Hugging Face --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two saved Llamas of random numbers with byte-level tokenizers of different vocabularies."""
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    tokenizers: Any = pytest.importorskip("tokenizers")
    torch: Any = pytest.importorskip("torch")
    corpora = (["the capital of France is Paris, the capital", "two and two is four"], ["é 2 + 2 = four four four"])
    made = list[str]()
    for seed, (corpus, size) in enumerate(zip(corpora, (290, 270), strict=True)):
        plain = tokenizers.Tokenizer(tokenizers.models.BPE())
        plain.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        plain.decoder = tokenizers.decoders.ByteLevel()
        alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=size, special_tokens=["<pad>", "<end>"], initial_alphabet=alphabet, show_progress=False
        )
        plain.train_from_iterator(corpus, trainer)
        words = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<end>")
        sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
        ids = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id, "bos_token_id": None}
        torch.manual_seed(seed)
        config = transformers.LlamaConfig(vocab_size=len(words) + 6, **sizes, **ids)  # padded, as many models are
        path = tmp_path_factory.mktemp("llama")
        transformers.LlamaForCausalLM(config).save_pretrained(path)
        words.save_pretrained(path)
        made.append(str(path))
    return made[0], made[1]


@pytest.mark.peers
def test_tokens_stand_for_their_bytes(folders: tuple[str, str]) -> None:
    experts = [live_models.load_expert(folder) for folder in folders]
    assert live_models.load_expert(folders[0]) is experts[0]
    for expert in experts:
        assert expert.tokens.count(END) == 1
        assert expert.tokens.count(None) == 1
        assert {bytes([byte]) for byte in range(256)} <= set(expert.tokens)
        for text in ("the capital is é", "2 + 2 = four"):
            ids = expert.tokenizer(text)["input_ids"]
            assert b"".join(expert.tokens[number] or b"" for number in ids) == text.encode()
    assert experts[0].tokens != experts[1].tokens


@pytest.mark.peers
def test_bytes_that_are_no_complete_character_are_read(folders: tuple[str, str]) -> None:
    expert = live_models.load_expert(folders[0])
    ids = expert.encode("a €".encode()[:-1])
    assert b"".join(expert.tokens[number] or b"" for number in ids) == "a €".encode()[:-1]


@pytest.mark.peers
def test_distributions_are_those_of_the_library(folders: tuple[str, str]) -> None:
    import torch

    expert = live_models.load_expert(folders[1])
    probs = expert.distribution(b"2 + 2 =")
    logits = expert.network(torch.tensor([expert.tokenizer("2 + 2 =")["input_ids"]])).logits[0, -1].double()
    expected = logits[: len(expert.tokens)].softmax(-1).detach().numpy()
    assert probs[expert.tokenizer.pad_token_id] == 0.0
    expected[expert.tokenizer.pad_token_id] = 0.0
    np.testing.assert_allclose(probs, expected / expected.sum(), rtol=1e-5)


@pytest.mark.peers
@pytest.mark.parametrize("id", [ID, EXPERTS])
def test_models_of_two_vocabularies_play_and_replay(folders: tuple[str, str], prompts: Path, id: str) -> None:
    keywords = {"live": folders, "prompts": prompts, "spans": 3, "span_tokens": 2}
    sim = registry.make_batch(id, 4, **keywords)
    sim.reset(seed=0)
    generator, shape = np.random.default_rng(0), (4, 1, 2) if id == ID else (4, 2, 1)
    actions = [generator.uniform(-5.0, 5.0, shape) for _ in range(6)]
    for action in actions[:3]:
        sim.step(action)
    snapshot = sim.snapshot()
    for action in actions[3:]:
        sim.step(action)
    after = sim.states.tobytes()
    assert sim.info["right"].shape == (4,)
    sim.restore(snapshot)
    for action in actions[3:]:
        sim.step(action)
    assert sim.states.tobytes() == after
    alone = registry.make_batch(id, 1, **keywords)
    alone.reset(seed=2)
    for action in actions:
        alone.step(action[2:3])
    assert np.array_equal(alone.states["text"], sim.states["text"][2:3])
    assert isinstance(sim, PhysicsSimulation)


@pytest.mark.peers
def test_a_folder_without_a_model_is_refused(tmp_path: Path, prompts: Path) -> None:
    pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    with pytest.raises(ValueError, match=r"config\.json: there is no such file"):
        registry.make_game(ID, live=(str(tmp_path),), prompts=prompts)


@pytest.mark.peers
def test_tokens_of_sentencepiece_stand_for_their_bytes() -> None:
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    tokenizers: Any = pytest.importorskip("tokenizers")
    vocabulary = {"<s>": 0, "</s>": 1, "<0x0A>": 2, "\u2581a": 3, "b": 4}
    plain = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    replace, fallback = tokenizers.decoders.Replace("\u2581", " "), tokenizers.decoders.ByteFallback()
    plain.decoder = tokenizers.decoders.Sequence([replace, fallback])
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, bos_token="<s>", eos_token="</s>")
    assert bytes_of_tokens(words) == [None, END, b"\n", b" a", b"b"]


def test_an_expert_without_a_fast_tokenizer_is_refused() -> None:
    class Slow:
        is_fast, name_or_path = False, "somewhere"

    with pytest.raises(ValueError, match="somewhere: its tokenizer has no fast form"):
        bytes_of_tokens(Slow())
    assert Expert.__doc__
