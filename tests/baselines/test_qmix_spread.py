"""A new method on the shared parts: it is short, its update learns, and it covers landmarks in a minute."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch

from palaestra import registry
from palaestra.evaluation import evaluate
from palaestra_baselines.common.agents import Roster, make_lanes
from palaestra_baselines.common.flat_networks import load_player
from palaestra_baselines.common.rollout import Collector, Replay, epsilon_greedy
from palaestra_baselines.common.training import gradient_step

FILE = Path(__file__).with_name("qmix_spread.py")


def load_method() -> ModuleType:
    spec = importlib.util.spec_from_file_location("qmix_spread", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


qmix: Any = load_method()


def test_a_new_method_is_at_most_120_lines():
    assert len(FILE.read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.check
def test_updates_reduce_the_loss_of_a_batch():
    torch.manual_seed(0)
    sim = make_lanes(qmix.ENV_ID, (), 8)
    roster, replay = Roster(sim.game), Replay(31, 8)
    collector = Collector(sim, roster, replay, 0, with_state=True)
    for _ in range(30):
        collector.play(epsilon_greedy(collector.rng, collector.position.legal, None, 1.0))
    online, target = (qmix.Qmix(roster, collector.position.state.shape[1], qmix.Args()) for _ in range(2))
    optimizer = torch.optim.Adam(online.parameters())
    batch, losses = replay.sample(np.random.default_rng(0), 64), []
    for _ in range(30):
        losses.append(qmix.td_loss(online, target, batch, 0.9))
        gradient_step(optimizer, losses[-1], 1e-3, 10.0)
    assert losses[-1] < 0.5 * losses[0]


def test_the_total_rises_in_every_utility():
    torch.manual_seed(0)
    roster = Roster(registry.make_game(qmix.ENV_ID)[0])
    method, state = qmix.Qmix(roster, 4, qmix.Args()), torch.randn(50, 4)
    utilities = torch.randn(50, 3)
    for agent in range(3):
        raised = utilities + torch.eye(3)[agent]
        assert (method.total(raised, state) > method.total(utilities, state)).all()


@pytest.mark.learning
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_learns_spread_in_a_minute(seed: int, tmp_path: Path):
    began_s = time.process_time()
    curve = qmix.train(qmix.Args(seed=seed, directory=tmp_path, quiet=True))
    assert time.process_time() - began_s <= 60.0
    weights = tmp_path / f"seed_{seed}" / "last.safetensors"
    player = load_player(weights, registry.make_game(qmix.ENV_ID)[0], "agent")
    learnt = evaluate(qmix.ENV_ID, player, matches=1000).mean_return
    script, random = (evaluate(qmix.ENV_ID, name, matches=1000).mean_return for name in ("default", "random"))
    assert learnt == pytest.approx(curve[-1]["return"], abs=1.0)
    assert (learnt - random) / (script - random) >= 0.5
