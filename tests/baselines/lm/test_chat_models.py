"""Models of Hugging Face without its library: chat templates, devices and dtypes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.lm import chat_model
from baselines.lm.chat_model import END, Letters
from baselines.lm.pretended_device import NAME, PretendedDevice

from palaestra import registry
from palaestra.core.files import FileError
from palaestra_baselines import critic_search, grpo, opd, pi_play, srft
from palaestra_baselines.common.lm import hf_model
from palaestra_baselines.common.lm.hf_model import HFModel, TextTokens
from palaestra_baselines.common.lm.lm_players import TextPlayer
from palaestra_baselines.common.lm.losses import loss_mask
from palaestra_baselines.common.lm.rollouts import play_at_own_pace
from palaestra_baselines.common.run_outputs import load_checkpoint, save_checkpoint

pytestmark = pytest.mark.check

ID = "palaestra/SearchQA-2Hop-v1"
TURN_TOKENS = 40
FEW: dict[str, Any] = {
    "model": "m",
    "turn_tokens": 6,
    "learning_rate": 0.1,
    "groups": 2,
    "group": 2,
    "questions": 1,
    "quiet": True,
    "options": ("prompt=plain", "max_turns=2"),
}
MODULES: dict[str, tuple[Any, dict[str, Any]]] = {
    "grpo": (grpo, {"kl": 0.1, "entropy": 0.01}),
    "pi_play": (pi_play, {}),
    "critic_search": (critic_search, {}),
    "critic_search, noisy": (critic_search, {"critic": "noisy:0.5"}),
    "opd": (opd, {"teacher": "teacher", "loss": "sampled"}),
    "opd, top K": (opd, {"teacher": "teacher"}),
    "srft": (srft, {"options": ("prompt=plain",)}),
}


class Recited:
    """Says planned turns, each when it has read that the assistant speaks."""

    def __init__(self, turns: list[list[int]]) -> None:
        self.turns = [list(turn) for turn in turns]

    def start(self, prompts: torch.Tensor, columns: int = 0) -> None:
        self.read, self.saying = "", list[int]()
        for token in prompts[0].tolist():
            self.hear(token)

    def sample(self, generator: torch.Generator, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor([self.saying[0] if self.saying else 1]), torch.zeros(1)

    def force(self, ids: torch.Tensor) -> None:
        self.hear(int(ids[0, 0]))

    def hear(self, token: int) -> None:
        if self.saying:
            assert self.saying.pop(0) == token
            return
        self.read += WORDS.decode([token - 1])
        if self.read.endswith("<|im_start|>assistant\n"):
            self.read, self.saying = "", self.turns.pop(0)


WORDS = Letters("m", "ChatML")


def tokens_of(text: str) -> list[int]:
    return [k + 1 for k in WORDS(text, add_special_tokens=False)["input_ids"]]


def text_lanes(lanes: int) -> tuple[Any, TextTokens]:
    sim = registry.make_batch(ID, lanes, autoreset_mode="off", form="text", prompt="plain", max_turns=3)
    return sim, TextTokens(sim, "m", TURN_TOKENS)


def chat_of(seed: int, turns: list[str]) -> list[str]:
    """What is said in a match: by the environment, by the agent, and so on."""
    env = gymnasium.make(ID, form="text", prompt="plain", max_turns=3)
    texts = [env.reset(seed=seed)[0]]
    for turn in turns[:-1]:
        texts += [turn, env.step(turn)[0]]
    return [*texts, turns[-1]]


@pytest.mark.parametrize("ends_itself", [True, False])
def test_a_match_is_a_chat_of_user_and_assistant(monkeypatch: pytest.MonkeyPatch, ends_itself: bool):
    chat_model.pretend(monkeypatch)
    sim, tokens = text_lanes(1)
    said = ["I do not know" if ends_itself else "<search>mayor</search>", "<search>x</search>", "<answer>y</answer>"]
    turns = [tokens_of(turn) for turn in said]
    if ends_itself:  # by the end of turn that the template would write
        turns[0].append(END + 1)
    rollout = play_at_own_pace(Recited(turns), sim, tokens, np.array([3], np.uint64), torch.Generator())
    roles = ["user", "assistant"] * 3
    parts = [f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in zip(roles, chat_of(3, said), strict=True)]
    assert WORDS.decode((rollout.ids[0] - 1).tolist()) == f"<bos>{''.join(parts)}".removesuffix("<|im_end|>\n")
    for number, turn in enumerate(turns):
        assert rollout.ids[0][rollout.turn[0] == number].tolist() == turn
    assert loss_mask(rollout).sum() == sum(map(len, turns))


def test_without_a_template_the_text_is_read_as_it_is(monkeypatch: pytest.MonkeyPatch):
    chat_model.pretend(monkeypatch, chat_template=None)
    _, tokens = text_lanes(1)
    assert WORDS.decode(tokens.prompt("Who?")) == "<bos>Who?"
    assert WORDS.decode(tokens.reply("Doc 1", END + 1)) == "Doc 1"


def test_a_template_that_leaves_turns_out_is_refused(monkeypatch: pytest.MonkeyPatch):
    chat_model.pretend(monkeypatch)
    monkeypatch.setattr(Letters, "apply_chat_template", lambda *_, **__: "no turns")
    with pytest.raises(FileError, match="its chat template leaves out what was said"):
        text_lanes(1)


def test_the_player_of_a_policy_file_reads_the_same_chat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    chat_model.pretend(monkeypatch)
    sim, tokens = text_lanes(4)
    model, seeds = HFModel("m", tokens.size), np.arange(4, dtype=np.uint64)
    rollout = play_at_own_pace(model, sim, tokens, seeds, torch.Generator(), temperature=0.0)
    player, first = TextPlayer(tmp_path, sim.game, "agent", TURN_TOKENS), np.ones(4, bool)
    player.model = model
    memory = np.zeros((4, player.memory_size))
    sim.reset(seed=seeds)
    while not (sim.terminated | sim.truncated).all():
        action = player.act(sim.observations, None, None, first, None, memory)
        sim.step(action)
        first = np.zeros(4, bool)
    for lane in range(4):
        kept = rollout.ids[lane][rollout.ids[lane] != 0].tolist()
        assert memory[lane, 1 : 1 + len(kept)].astype(int).tolist() == kept


def test_a_teacher_is_told_within_the_users_message(monkeypatch: pytest.MonkeyPatch):
    chat_model.pretend(monkeypatch)
    run, read = pi_play.Run(pi_play.Args(**FEW)), list[torch.Tensor]()
    kept = run.teacher.log_probs
    monkeypatch.setattr(run.teacher, "log_probs", lambda ids, at: (read.extend((ids, at)), kept(ids, at))[1])
    rollout = play_at_own_pace(run.model, run.sim, run.tokens, np.array([5, 5, 6, 6], np.uint64), run.generator)
    run.teacher_log_probs(rollout)
    ids, at = read
    for lane, seed in enumerate((5, 5, 6, 6)):
        question, info = gymnasium.make(ID, form="text", prompt="plain", max_turns=2).reset(seed=seed)
        facts = "; ".join(" - ".join(fact) for fact in info["path"])
        opening, closing = "<bos><|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"
        chat = [WORDS.decode([k - 1 for k in row[lane].tolist() if k]) for row in (ids, rollout.ids)]
        told = [f"{opening}{question}{more}{closing}" for more in (f"Facts: {facts}\n", "")]
        assert [text[: len(begin)] for text, begin in zip(chat, told, strict=True)] == told
        assert chat[0].removeprefix(told[0]) == chat[1].removeprefix(told[1])
    assert ids[at].tolist() == rollout.ids[loss_mask(rollout)].tolist()


class Thrifty(chat_model.Network):
    """A network that computes the logits of some columns alone, as most of the library do; notes how many."""

    columns: ClassVar[list[int]] = []

    def forward(self, *args: Any, logits_to_keep: Any = 0, **words: Any) -> Any:
        read = super().forward(*args, **words)
        self.columns.append(len(logits_to_keep))
        return chat_model.Output(read, logits=read.logits[:, logits_to_keep])


def test_logits_are_computed_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch):
    chat_model.pretend(monkeypatch)
    plain = HFModel("m")
    sim, tokens = text_lanes(2)
    rollout = play_at_own_pace(plain, sim, tokens, np.arange(2, dtype=np.uint64), torch.Generator())
    monkeypatch.setattr(hf_model, "load_causal_model", lambda *_: Thrifty(1))
    thrifty, mask = HFModel("m"), loss_mask(rollout)
    torch.testing.assert_close(thrifty.log_probs(rollout.ids, mask), plain.log_probs(rollout.ids, mask))
    assert Thrifty.columns.pop() <= mask.any(0).sum() < min(mask.sum(), rollout.ids.shape[1])
    for model in (plain, thrifty):
        model.start(rollout.ids)
    torch.testing.assert_close(thrifty.next_log_probs(), plain.next_log_probs())
    assert Thrifty.columns.pop() <= len(rollout.ids)


def test_a_search_is_demonstrated_by_the_searches_of_its_path_and_the_answer(monkeypatch: pytest.MonkeyPatch):
    chat_model.pretend(monkeypatch, chat_template=None)
    run = srft.Run(srft.Args(**{**FEW, "options": ("prompt=plain",)}, env_id=ID))
    shown = run.demonstrate(np.arange(2, dtype=np.uint64))
    assert shown.exact_match.tolist() == shown.returns.tolist() == [1.0, 1.0]
    assert shown.turns.tolist() == [3, 3]
    for lane in range(2):
        env = gymnasium.make(ID, form="text", prompt="plain")
        text, info = env.reset(seed=lane)
        turns = [f"<search>{relation} of {subject}</search>" for subject, relation, _ in info["path"]]
        for number, turn in enumerate([*turns, f"<answer>{info['answers'][0]}</answer>"]):
            assert WORDS.decode((shown.ids[lane][shown.turn[lane] == number] - 1).tolist()) == turn
            text += turn + env.step(turn)[0]
        assert f"<bos>{text}" == WORDS.decode([token - 1 for token in shown.ids[lane].tolist() if token])


# -- devices and dtypes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_a_run_learns_the_same_on_another_device(name: str, monkeypatch: pytest.MonkeyPatch):
    chat_model.pretend(monkeypatch)
    monkeypatch.setattr(torch.optim, "Adam", lambda parameters, fused: torch.optim.SGD(parameters, lr=0.1))
    module, more = MODULES[name]

    def learnt(device: str) -> Any:
        run = module.Run(module.Args(**{**FEW, "device": device, "reward": REWARDS.get(name, "return"), **more}))
        if name != "opd":  # which has no reward
            run.reward = lambda rollout, info: torch.arange(float(len(rollout.turns)))
        run.iterate()
        return run

    here = learnt("cpu")
    with PretendedDevice():
        there = learnt(NAME)
        assert {weight.device.type for weight in there.model.parameters()} == {NAME}
        weights = [weight.detach().cpu() for weight in there.model.parameters()]
    start = HFModel("m").parameters()
    for weight, same, before in zip(weights, here.model.parameters(), start, strict=True):
        torch.testing.assert_close(weight, same.detach())
        assert (weight != before).any()


REWARDS = {"srft": "exact_match"}


def test_weights_of_bfloat16_learn_and_resume(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    chat_model.pretend(monkeypatch)
    args = grpo.Args(**FEW, dtype="bfloat16", kl=0.1)
    run = grpo.Run(args)
    assert run.reference is not None
    assert {weight.dtype for weight in (*run.model.parameters(), *run.reference.parameters())} == {torch.bfloat16}
    run.reward = lambda rollout, info: torch.arange(float(len(rollout.turns)))
    before = copy.deepcopy(run.model.state_dict())
    run.iterate()
    ids = torch.arange(1, 9).view(2, 4)
    found = run.model.log_probs(ids, torch.tensor([[False, True, True, True]] * 2))
    assert found.dtype == torch.float32
    assert any((weight != before[name]).any() for name, weight in run.model.state_dict().items())
    state = {name: part.state_dict() for name, part in run.learnt().items()}
    save_checkpoint(tmp_path / "checkpoint.safetensors", state | run.state())
    again, saved = grpo.Run(args), load_checkpoint(tmp_path / "checkpoint.safetensors", trusted=True)
    for name, part in again.learnt().items():
        part.load_state_dict(saved[name])
    again.restore(saved)
    for weight, same in zip(run.model.parameters(), again.model.parameters(), strict=True):
        assert same.dtype == torch.bfloat16
        assert torch.equal(weight, same)


@pytest.mark.parametrize("device", ["cuda:99", "meta", "gpu"])
def test_a_device_that_is_not_there_is_refused_by_name(device: str):
    with pytest.raises(ValueError, match=f"--device {device}: torch cannot compute there"):
        grpo.Args(model="m", device=device).check()


@pytest.mark.parametrize("given", [{"device": "cuda"}, {"dtype": "bfloat16"}], ids=str)
def test_the_tiny_model_learns_on_the_cpu_in_float32(given: dict[str, Any]):
    with pytest.raises(ValueError, match="--device and --dtype are for --model FOLDER"):
        grpo.Args(**given).check()
