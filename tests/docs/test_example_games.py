"""The games that guides go through: how they play, without the compiler."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from palaestra import pages, registry
from palaestra.testing.checks.docs_checks import documentation_is_complete
from palaestra.testing.harness import CheckError
from palaestra.testing.subject import Subject

EXAMPLES = Path(__file__).parents[2] / "examples"
CAPTURE, PENDULUM = "examples/CaptureTheFlag-v0", "examples/Pendulum-v0"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(registry, "ROWS", dict(registry.ROWS))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_a_tagged_runner_waits_in_its_own_column_and_comes_back(rules, monkeypatch):
    game = load("capture_the_flag", monkeypatch).game()
    sim = rules(game)
    sim.reset(seed=0)
    sim.set_parameters(penalty_decisions=2)
    record = sim.states[0]
    record["ahead"][:], record["row"][:] = (6, 0, 0, 2, 0, 0), (3, 0, 0, 3, 6, 6)
    record["carries"][0] = 1
    acting = []
    for _ in range(3):
        sim.step(np.zeros(sim.actions.shape, int))
        acting.append(bool(sim.acting[0, 0]))
    assert acting == [False, False, True]
    assert sim.alive.all()
    assert (record["ahead"][0], record["carries"][0]) == (0, 0)
    assert sim.info["tags"][0].tolist() == [0, 1]


def test_a_flag_in_the_own_half_wins_the_match(rules, monkeypatch):
    module = load("capture_the_flag", monkeypatch)
    sim = rules(module.game())
    sim.reset(seed=0)
    sim.states[0]["ahead"][1], sim.states[0]["row"][1], sim.states[0]["carries"][1] = module.HALF, 0, 1
    sim.states[0]["ahead"][3:], sim.states[0]["row"][3:] = 0, 6
    sim.step(np.zeros(sim.actions.shape, int))  # writes the masks of the new positions
    sim.step(np.array([[0, module.BACK, 0, 0, 0, 0]]))
    assert sim.terminated[0]
    assert sim.rewards[0].tolist() == [1, 1, 1, -1, -1, -1]
    assert sim.info["winner"][0] == 0


def test_moves_off_the_grid_are_illegal_and_a_runner_that_waits_can_only_stay(rules, monkeypatch):
    module = load("capture_the_flag", monkeypatch)
    sim = rules(module.game())
    sim.reset(seed=0)
    assert not sim.legal[0, :, module.BACK].any()
    sim.states[0]["ahead"][:3], sim.states[0]["ahead"][3] = 8, 1
    sim.states[0]["row"][:4] = 5
    sim.step(np.zeros(sim.actions.shape, int))
    assert sim.legal[0, :3].tolist() == [[1, 0, 0, 0, 0]] * 3


def test_the_engine_moves_the_rod_by_its_own_formula(rules, monkeypatch):
    module = load("pendulum", monkeypatch)
    sim = rules(module.game(), 2)
    sim.reset(seed=0)
    before = float(sim.states["rods"]["angle_rad"][0, 0])
    sim.step(np.array([[2.0], [-2.0]]).reshape(sim.actions.shape))
    turned = sim.states["rods"]["angle_rad"][:, 0]
    assert abs(before - np.pi) < 0.2
    assert turned[0] > before - 0.05
    assert sim.states["rods"]["velocity_radps"][0, 0] > sim.states["rods"]["velocity_radps"][1, 0]


def test_the_pumping_script_swings_the_rod_up(rules, monkeypatch):
    module = load("pendulum", monkeypatch)
    sim = rules(module.game(), opponents={"motor": "pump"})
    sim.reset(seed=1)
    for _ in range(150):
        sim.step()
    assert np.cos(sim.states["rods"]["angle_rad"][0, 0]) > 0.9


@pytest.mark.parametrize(("name", "id"), [("capture_the_flag", CAPTURE), ("pendulum", PENDULUM)])
def test_the_page_of_an_example_is_complete(name: str, id: str, monkeypatch):
    load(name, monkeypatch)
    documentation_is_complete(Subject(id))


def test_an_incomplete_page_is_told_all_that_it_lacks_and_where_a_template_is(monkeypatch):
    module = load("pendulum", monkeypatch)
    module.__doc__ = "Pendulum.\n\n## Description\n\nA rod.\n"
    with pytest.raises(CheckError, match=r"no section Rewards.* no line <!-- table: parameters -->.*TEMPLATE"):
        documentation_is_complete(Subject(PENDULUM))
    module.__doc__ = pages.TEMPLATE
    for section in pages.SECTIONS:
        assert f"\n## {section}\n" in pages.page(PENDULUM)
