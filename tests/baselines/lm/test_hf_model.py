# pyright: reportMissingImports=false
"""Models of Hugging Face: the same numbers as a tiny model of the same weights, and a tiny Llama that is trained."""

from __future__ import annotations

import copy
import string
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from reliability.model_folders import write_llama

from palaestra import registry
from palaestra.core.contract.turn_tokens import PAD
from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra.games.search.name_tokens import CONTEXT
from palaestra.games.search.turn_codec import TurnCodec, parse
from palaestra_baselines import critic_search, grpo, opd, pi_play, srft
from palaestra_baselines.common.lm.base import ARITH
from palaestra_baselines.common.lm.critic import ASKED
from palaestra_baselines.common.lm.hf_model import HFModel, TextTokens, check_same_tokens
from palaestra_baselines.common.lm.losses import chosen, loss_mask, reverse_kl
from palaestra_baselines.common.lm.rollouts import Rollout, play_at_own_pace
from palaestra_baselines.common.lm.tiny_model import HEADS, LAYERS, WIDTH, TinyModel
from palaestra_baselines.common.policy_file import save_policy
from palaestra_baselines.common.run_folder import read_rows

pytestmark = pytest.mark.check

ID = "palaestra/SearchQA-2Hop-v1"
TAGS = ["<search>", "</search>", "<answer>", "</answer>"]
LANES, GROUP, TURN_TOKENS = 6, 3, 12
FEW: dict[str, Any] = {
    "groups": 2,
    "group": 2,
    "questions": 2,
    "turn_tokens": TURN_TOKENS,
    "evaluations": 1,
    "quiet": True,
}
FEW |= {"options": ("prompt=plain",)}


def test_without_the_library_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ImportError, match=r'pip install "palaestra\[text\]"'):
        HFModel(write_llama(tmp_path))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved Llama of random numbers with a byte-level tokenizer, the tags among its tokens."""
    prompts = [gymnasium.make(ID, form="text").reset(seed=seed)[0] for seed in range(20)]
    return saved_llama(tmp_path_factory.mktemp("llama"), tokenizer_of([*prompts, string.ascii_letters], 140))


def tokenizer_of(texts: list[str], size: int) -> Any:
    """A byte-level tokenizer of so many tokens and the tags."""
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    tokenizers: Any = pytest.importorskip("tokenizers")
    plain = tokenizers.Tokenizer(tokenizers.models.BPE())
    plain.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=size, special_tokens=["<pad>", "<end>"], show_progress=False)
    plain.train_from_iterator(texts, trainer)
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<end>")
    words.add_tokens(TAGS)
    return words


def saved_llama(path: Path, words: Any, seed: int = 0, spare: int = 0) -> Path:
    """Saves a Llama of random numbers and a tokenizer; ``spare`` of its outputs are no tokens."""
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    ids = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id, "bos_token_id": None}
    torch.manual_seed(seed)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=len(words) + spare, **sizes, **ids))
    model.save_pretrained(path)
    words.save_pretrained(path)
    return path


def play(folder: Path) -> tuple[HFModel, TextTokens, Rollout]:
    sim = registry.make_batch(ID, LANES, autoreset_mode="off", form="text", prompt="plain")
    tokens = TextTokens(sim, folder, TURN_TOKENS)
    model = HFModel(folder, tokens.size)
    seeds = np.repeat(np.arange(LANES // GROUP, dtype=np.uint64), GROUP)
    return model, tokens, play_at_own_pace(model, sim, tokens, seeds, torch.Generator().manual_seed(1))


@pytest.mark.peers
def test_equal_weights_give_equal_probabilities(tmp_path: Path):
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    tiny = TinyModel(30, CONTEXT, seed=1)
    generator = torch.Generator().manual_seed(0)
    for weight in tiny.parameters():
        weight.data += 0.2 * torch.randn(weight.shape, generator=generator)
    config = transformers.GPT2Config(
        vocab_size=29, n_positions=CONTEXT, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, activation_function="gelu"
    )
    peer, w = transformers.GPT2LMHeadModel(config), tiny.state_dict()
    names = {"ln_1": "attention_norm", "ln_2": "perceptron_norm", "attn.c_attn": "qkv", "attn.c_proj": "out",
             "mlp.c_fc": "up", "mlp.c_proj": "down"}  # fmt: skip
    state = {"wte.weight": w["tokens.weight"][1:], "wpe.weight": w["positions.weight"]}
    state |= {f"ln_f.{kind}": w[f"norm.{kind}"] for kind in ("weight", "bias")}
    for layer in range(LAYERS):
        for theirs, ours in names.items():
            weight = w[f"blocks.{layer}.{ours}.weight"]
            state[f"h.{layer}.{theirs}.weight"] = (
                weight.T if weight.ndim == 2 else weight
            )  # theirs is [inputs, outputs]
            state[f"h.{layer}.{theirs}.bias"] = w[f"blocks.{layer}.{ours}.bias"]
    peer.transformer.load_state_dict(state)
    peer.save_pretrained(tmp_path)
    found = HFModel(tmp_path)
    ids = torch.randint(1, 30, (3, 24), generator=generator)
    ids[0, :3], ids[1, 7:11], ids[2, 20:] = PAD, PAD, PAD
    at = (ids != PAD) & ((ids != PAD).cumsum(1) > 1)
    torch.testing.assert_close(found.log_probs(ids, at), tiny.log_probs(ids, at), atol=1e-4, rtol=0.0)
    for model in (found, tiny):
        model.start(ids[:, :5])
    for start, end in ((5, 6), (6, 15), (15, 24)):
        draws = [model.sample(torch.Generator().manual_seed(3)) for model in (found, tiny)]
        assert torch.equal(draws[0][0], draws[1][0])
        torch.testing.assert_close(draws[0][1], draws[1][1], atol=1e-4, rtol=0.0)
        found.force(ids[:, start:end])
        tiny.force(ids[:, start:end])


@pytest.mark.peers
def test_a_tiny_llama_plays_text_and_its_sampled_ids_are_kept(folder: Path):
    model, tokens, rollout = play(folder)
    mask = loss_mask(rollout)
    with torch.no_grad():
        again = chosen(model.log_probs(rollout.ids, mask), rollout.ids, mask)
    torch.testing.assert_close(again, rollout.log_probs, atol=1e-4, rtol=0.0)
    prompts = rollout.ids[:, :5].view(-1, GROUP, 5)
    assert (prompts == prompts[:, :1]).all()
    for lane in range(LANES):
        assert sorted(set(rollout.turn[lane].tolist()) - {-1}) == list(range(int(rollout.turns[lane])))
        for number in range(int(rollout.turns[lane])):
            said = (rollout.ids[lane][rollout.turn[lane] == number] - 1).tolist()
            text = tokens.tokenizer.decode(said)
            is_over = len(said) == TURN_TOKENS or said[-1] == tokens.tokenizer.eos_token_id
            assert is_over or text.endswith(("</search>", "</answer>", "</judge>")), text
            assert parse(text, ("search", "answer"))[0] in ("none", "search", "answer")
        passages = (rollout.ids[lane][rollout.retrieved[lane]] - 1).tolist()
        assert "<information>" in tokens.tokenizer.decode(passages) or "said nothing" in tokens.tokenizer.decode(
            passages
        )


@pytest.mark.peers
@pytest.mark.parametrize("masked", ["yes", "no"])
def test_it_is_trained_and_resumed(folder: Path, tmp_path: Path, masked: Any):
    options = {"groups": 2, "group": GROUP, "questions": 4, "turn_tokens": TURN_TOKENS, "quiet": True, "evaluations": 2}
    words: dict[str, Any] = {**options, "model": str(folder), "options": ("prompt=plain",), "mask_retrieved": masked}
    words |= {"entropy": 0.01, "kl": 0.01, "directory": tmp_path}
    grpo.train(grpo.Args(**words, total_steps=20))
    report = grpo.train(grpo.Args(**words, total_steps=40, resume=True))
    assert report.updates >= 4
    assert len(read_rows(tmp_path / "seed_0" / "log.csv")) >= 3
    before, after = HFModel(folder).state_dict(), HFModel(report.weights).state_dict()
    assert max((before[name] - after[name]).abs().max().item() for name in before) > 1e-4


@pytest.mark.peers
@pytest.mark.parametrize(
    ("id", "options"), [(ID, ("prompt=plain",)), ("palaestra/MathText-LeftToRight-v0", ())], ids=str
)
def test_the_policy_file_plays_the_model_beside_it_greedily(folder: Path, tmp_path: Path, id: str, options: Any):
    args = grpo.Args(**{**FEW, "options": options}, env_id=id, model=str(folder), total_steps=4, directory=tmp_path)
    trained = grpo.train(args).weights
    policy = trained.parent / "last.safetensors"
    keywords = dict(option.split("=") for option in options)
    sim = registry.make_batch(id, 3, autoreset_mode="off", form="text", **keywords)
    tokens, seeds = TextTokens(sim, trained, TURN_TOKENS), np.array([4, 5, 6], np.uint64)
    rollout = play_at_own_pace(HFModel(trained, tokens.size), sim, tokens, seeds, torch.Generator(), temperature=0.0)
    played = registry.make_batch(id, 3, autoreset_mode="off", form="text", opponents={"agent": policy}, **keywords)
    played.reset(seed=seeds)
    for turn in range(int(rollout.turns.max())):
        lanes = rollout.turns.numpy() > turn
        played.step(lanes=lanes)
        actions: Any = played.actions
        for lane in np.flatnonzero(lanes):
            said = rollout.ids[lane][rollout.turn[lane] == turn]
            assert actions[lane].tolist() == tokens.actions(said[None].numpy(), tokens.new_memory(1)).tolist()
        if turn == 0 and not (played.terminated | played.truncated).any():
            played.restore(played.snapshot())  # what it has read and said is in the snapshot
    assert (played.terminated | played.truncated).all()
    assert played.info["exact_match"].tolist() == rollout.exact_match.tolist()
    table = evaluate(id, policy, matches=2, num_envs=2, form="text", **keywords)
    assert table.matches == 2


@pytest.mark.peers
def test_a_policy_file_without_its_model_or_for_a_game_without_text_is_refused(folder: Path, tmp_path: Path):
    policy = grpo.train(grpo.Args(**FEW, env_id=ID, model=str(folder), total_steps=4, directory=tmp_path)).weights
    policy = policy.parent / "last.safetensors"
    with pytest.raises(FileError, match=r'give form="text"'):
        registry.make_batch(ID, 1, opponents={"agent": policy}, form="structured")
    alone = tmp_path / "last.safetensors"
    alone.write_bytes(policy.read_bytes())
    with pytest.raises(FileError, match="is not there: keep both together"):
        registry.make_batch(ID, 1, opponents={"agent": alone}, form="text")
    for tokens in (0.0, 1e12):
        save_policy(policy, {"turn_tokens": np.array([tokens], np.float32)}, method="grpo", env_id=ID, args={})
        with pytest.raises(FileError, match="1 to 8192 are played"):
            registry.make_batch(ID, 1, opponents={"agent": policy}, form="text")


# -- distillation ------------------------------------------------------------------------------------------------------


def words_of(folder: Path) -> Any:
    """The tokenizer in a folder."""
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


@pytest.mark.peers
@pytest.mark.parametrize(
    ("loss", "spare"),
    [("top_k", {}), ("full", {}), ("sampled", {}), ("top_k", {"teacher": 8}), ("full", {"student": 8})],
    ids=str,
)
def test_a_student_comes_nearer_to_a_teacher_whatever_outputs_are_no_tokens(
    folder: Path, tmp_path: Path, loss: Any, spare: dict[str, int]
):
    words = words_of(folder)
    student = saved_llama(tmp_path / "student", words, 0, spare.get("student", 0))
    teacher = saved_llama(tmp_path / "teacher", words, 1, spare.get("teacher", 0))
    args = opd.Args(
        **FEW, model=str(student), teacher=str(teacher), loss=loss, total_steps=40, directory=tmp_path / "run"
    )
    report = opd.train(args)
    assert report.updates >= 3
    rows = read_rows(tmp_path / "run" / "seed_0" / "log.csv")
    assert 0.0 < rows[-1]["support_mass"] < 1.0
    assert rows[-1]["kl"] > 0.0
    size = len(words)
    before, after = HFModel(student, size), HFModel(report.weights, size)
    assert len(after.network.lm_head.weight) == size + spare.get("student", 0)
    _, _, rollout = play(student)
    mask = loss_mask(rollout)
    with torch.no_grad():
        told, old, new = (model.log_probs(rollout.ids, mask) for model in (HFModel(teacher, size), before, after))
    assert (new - old).abs().max() > 1e-4
    if loss != "sampled":
        assert reverse_kl(new, told) < reverse_kl(old, told)


@pytest.mark.peers
def test_outputs_that_are_no_tokens_are_never_drawn(folder: Path, tmp_path: Path):
    words = words_of(folder)
    model, whole = (HFModel(saved_llama(tmp_path, words, spare=500), size) for size in (len(words), None))
    ids = torch.arange(1, 41).reshape(4, 10)
    at = torch.ones(4, 10, dtype=torch.bool)
    at[:, 0] = False
    with torch.no_grad():
        found, all_outputs = model.log_probs(ids, at), whole.log_probs(ids, at)
    assert found.shape[1] == 1 + len(words)
    torch.testing.assert_close(found.exp().sum(1), torch.ones(len(found)))
    torch.testing.assert_close(found, all_outputs[:, : 1 + len(words)].log_softmax(1))
    model.start(ids)
    assert max(int(model.sample(torch.Generator().manual_seed(seed))[0].max()) for seed in range(50)) <= len(words)


@pytest.mark.peers
def test_a_teacher_with_another_tokenizer_is_refused_with_both_sizes(folder: Path, tmp_path: Path):
    other = saved_llama(tmp_path, tokenizer_of(["the same letters in other words"], 60))
    sizes = [len(words_of(path)) for path in (folder, other)]
    assert sizes[0] != sizes[1]
    args = opd.Args(**FEW, model=str(folder), teacher=str(other), directory=tmp_path / "run")
    with pytest.raises(ValueError, match=rf"{folder} has {sizes[0]} tokens, that of {other} {sizes[1]}"):
        opd.Run(args)


@pytest.mark.peers
def test_tokenizers_of_one_size_with_other_words_are_told_apart(folder: Path, tmp_path: Path):
    words = words_of(folder)
    changed = tokenizer_of(["ab"], 4)
    changed.add_tokens([f"word{number}" for number in range(len(words) - len(changed))])
    assert len(changed) == len(words)
    other = saved_llama(tmp_path, changed)
    with pytest.raises(ValueError, match="not the same"):
        check_same_tokens(folder, other)


# -- demonstrations as text --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calculator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved Llama of random numbers whose tokenizer has the symbols of MathText."""
    text = [f"{solution} <answer>7</answer> 1 + 2 * 3 - 4 = 5; 6 7 8 9 0" for solution in ("2 + 3 = 5;", "9 * 7 = 3;")]
    return saved_llama(tmp_path_factory.mktemp("calculator"), tokenizer_of(text, 60))


@pytest.mark.peers
@pytest.mark.parametrize("schedule", ["single", "sft", "sft_then_grpo"])
def test_a_model_learns_worked_solutions_from_the_text_of_the_environment(
    calculator: Path, tmp_path: Path, schedule: Any
):
    args = srft.Args(**FEW, model=str(calculator), schedule=schedule, total_steps=12, directory=tmp_path)
    run = srft.Run(args)
    shown = run.demonstrate(np.arange(args.groups, dtype=np.uint64))
    assert (shown.exact_match == 1.0).all()
    report = srft.train(args)
    assert report.updates == {"single": 3, "sft": 3, "sft_then_grpo": 6}[schedule]
    mask = loss_mask(shown)
    with torch.no_grad():
        old, new = (
            chosen(HFModel(path).log_probs(shown.ids, mask), shown.ids, mask).sum()
            for path in (calculator, report.weights)
        )
    assert new > old


@pytest.mark.peers
def test_demonstrations_are_the_text_of_the_script_and_end_with_an_end_of_sequence(calculator: Path, tmp_path: Path):
    args = srft.Args(**FEW, model=str(calculator), directory=tmp_path)
    run = srft.Run(args)
    shown = run.demonstrate(np.arange(args.groups, dtype=np.uint64))
    words = words_of(calculator)
    for lane in range(args.groups):
        question, info = gymnasium.make(ARITH, form="text", prompt="plain").reset(seed=lane)
        said = (shown.ids[lane][shown.turn[lane] == 0] - 1).tolist()
        assert said[-1] == words.eos_token_id
        assert words.decode(said[:-1]) == info["demonstration"]
        read = (shown.ids[lane][(shown.turn[lane] < 0) & (shown.ids[lane] != PAD)] - 1).tolist()
        assert words.decode(read) == question


@pytest.mark.peers
def test_without_demonstrations_as_text_it_is_refused_before_it_learns(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    args = srft.Args(**FEW, model=str(folder), env_id=ID, directory=tmp_path)
    monkeypatch.setattr(TurnCodec, "demonstration", lambda *_: [])
    with pytest.raises(ValueError, match=r"SearchQA has no demonstrations as text.*take SearchQA or MathText"):
        srft.Run(args)


# -- told more: pi-Play, CriticSearch ----------------------------------------------------------------------------------

SMALL: dict[str, Any] = {**FEW, "env_id": ID, "group": 3, "questions": 4}


def distance(run: pi_play.Run, rollout: Rollout) -> float:
    """KL(student, teacher)."""
    mask = loss_mask(rollout)
    with torch.no_grad():
        return float(reverse_kl(run.model.log_probs(rollout.ids, mask), run.teacher_log_probs(rollout)))


@pytest.mark.peers
def test_a_teacher_reads_the_facts_behind_the_question_and_the_student_comes_nearer(folder: Path, tmp_path: Path):
    run = pi_play.Run(pi_play.Args(**SMALL, model=str(folder), directory=tmp_path))
    seeds = np.repeat(np.arange(2, dtype=np.uint64), GROUP)
    rollout = play_at_own_pace(run.model, run.sim, run.tokens, seeds, run.generator)
    found, row, words = run.teacher_log_probs(rollout), 0, words_of(folder)
    for lane, seed in enumerate(seeds.tolist()):  # each match alone, without paddings
        question, info = gymnasium.make(ID, form="text", prompt="plain").reset(seed=seed)
        facts = "; ".join(" - ".join(fact) for fact in info["path"])
        begin = [number + 1 for text in (question, f"Facts: {facts}\n") for number in words(text)["input_ids"]]
        after = rollout.sampled[lane] | rollout.retrieved[lane] & (rollout.ids[lane] != PAD)
        ids = torch.cat([torch.tensor(begin), rollout.ids[lane][after]])[None]
        at = torch.cat([torch.zeros(len(begin), dtype=torch.bool), loss_mask(rollout)[lane][after]])[None]
        with torch.no_grad():
            alone = run.teacher.log_probs(ids, at)
        torch.testing.assert_close(found[row : row + len(alone)], alone, atol=2e-5, rtol=0.0)
        row += len(alone)
    assert row == len(found)
    before = distance(run, rollout)
    assert before > 0.0
    run.args.learning_rate = 1e-3
    for _ in range(5):
        run.learn(rollout, torch.zeros(2 * GROUP))
    assert distance(run, rollout) < before


@pytest.mark.peers
def test_pi_play_trains_a_model_and_resumes(folder: Path, tmp_path: Path):
    words: dict[str, Any] = {**SMALL, "model": str(folder), "directory": tmp_path, "evaluations": 2}
    pi_play.train(pi_play.Args(**words, total_steps=12))
    report = pi_play.train(pi_play.Args(**words, total_steps=40, resume=True))
    assert report.updates >= 4
    before, after = HFModel(folder).state_dict(), HFModel(report.weights).state_dict()
    assert max((before[name] - after[name]).abs().max().item() for name in before) > 1e-4


@pytest.mark.peers
def test_a_critic_is_asked_after_each_turn_and_trains_a_model(folder: Path, tmp_path: Path):
    args = critic_search.Args(**SMALL, model=str(folder), total_steps=12, directory=tmp_path)
    run, words = critic_search.Run(args), words_of(folder)
    seeds = np.repeat(np.arange(2, dtype=np.uint64), GROUP)
    rollout = play_at_own_pace(run.model, run.sim, run.tokens, seeds, run.generator)
    for weight in run.critic.parameters():  # so that its labels differ
        weight.data *= 5.0
    labels = run.labels(rollout)
    assert set(labels[labels != 0].tolist()) == {-1, 1}
    assert torch.equal(labels != 0, rollout.labels != 0)
    for lane, seed in enumerate(seeds.tolist()):
        answer = gymnasium.make(ID, form="text").reset(seed=seed)[1]["answers"][0]
        for turn in range(int(rollout.turns[lane])):
            last = (rollout.turn[lane] == turn).nonzero()[-1].item()
            read = [n - 1 for n in rollout.ids[lane, : last + 1].tolist() if n != PAD]
            read += words(ASKED.format(answer))["input_ids"]
            scores = []
            for word in ("yes", "no"):
                said = words(word)["input_ids"]
                with torch.no_grad():
                    logits = run.critic.network(torch.tensor([read + said])).logits[0, len(read) - 1 : -1]
                scores.append(logits.log_softmax(-1)[torch.arange(len(said)), said].sum())
            assert labels[lane, turn] == (1 if scores[0] > scores[1] else -1)
    before = copy.deepcopy(run.critic)
    run.learn(rollout, torch.zeros(2 * GROUP))
    assert all(torch.equal(a, b) for a, b in zip(run.critic.parameters(), before.parameters(), strict=True))
    first = HFModel(folder).state_dict()
    assert max((first[name] - weight).abs().max().item() for name, weight in run.model.state_dict().items()) > 1e-4
    critic_search.train(args)
    assert 0.0 <= read_rows(tmp_path / "seed_0" / "log.csv")[-1]["critic_accuracy"] <= 1.0


@pytest.mark.peers
def test_a_critic_that_does_not_fit_is_refused(folder: Path, tmp_path: Path):
    other = saved_llama(tmp_path, tokenizer_of(["the same letters in other words"], 60))
    with pytest.raises(ValueError, match="not the same"):
        critic_search.Run(critic_search.Args(**SMALL, model=str(folder), critic_model=str(other)))
    with pytest.raises(ValueError, match="--critic-model is for --model"):
        critic_search.Args(critic_model="folder").check()
    with pytest.raises(ValueError, match=r'no info\["answers"\].*take SearchQA'):
        critic_search.train(
            critic_search.Args(**{**SMALL, "env_id": ARITH}, model=str(folder), directory=tmp_path / "run")
        )
