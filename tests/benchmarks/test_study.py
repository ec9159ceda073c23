"""Studies: which runs there are, what is written, drawn and installed of them, and that all name what there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")
pytest.importorskip("jsbsim")
pytest.importorskip("mujoco")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

import learn
from learning import drawing, figures
from learning.drawing import read_table
from learning.figures import FigureArgs, Method
from learning.study import Entry, Place, Study, asked_of, median, panel_per_place, won_per_place
from palaestra import registry
from palaestra_baselines.common.agents import make_rules
from palaestra_baselines.common.run_folder import LOG, WEIGHTS, write_curve

METHODS = {
    "vdn": Method("VDN", "vdn", {"lanes": 8, "gamma": 0.5}),
    "qmix": Method("QMIX", "qmix", options=("horizon=9",)),
}
PLACES = {
    "3m": Place("three marines", "palaestra/Skirmish-3m-v0", ("map=3m",), "red", "builtin", {"gamma": 0.9}),
    "a b": Place(
        "another", "palaestra/Skirmish-8m-v0", ("map=8m",), opponent="nearest", column="return", label="return"
    ),
}
ENTRIES = (
    Entry("3m", "vdn", 300, bar=0.9, weights="learnt", arguments={"lanes": 4}),
    Entry("a b", "qmix", 200, seeds=1),
)
STUDY = Study("mine", ENTRIES, METHODS, PLACES, {"team": "blue", "matches": 6}, panels=won_per_place)
STUDIES = [study for study in learn.ALL.values() if isinstance(study, Study)]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Runs that were asked for; they are there at once, the second seed the better one."""
    asked: list[Any] = []

    def train_all(title: str, runs: Any, args: FigureArgs) -> None:
        asked.extend(runs)
        for _, run, _ in runs:
            run.folder.mkdir(parents=True, exist_ok=True)
            rows = [{"steps": 100.0 * k, "win_rate": 0.1 * k * (1 + run.seed), "return": 1.0 * k} for k in range(3)]
            write_curve(run.folder / LOG, rows)
            (run.folder / WEIGHTS).write_text(f"{run.seed}")

    monkeypatch.setattr(figures, "train_all", train_all)
    return asked


def test_arguments_of_an_entry_come_before_those_of_its_method_its_place_and_the_study(tmp_path: Path):
    run = STUDY.run_of(ENTRIES[0], 3, tmp_path, quiet=True)
    assert (run.env_id, run.options, run.team, run.opponent) == (PLACES["3m"].env_id, ("map=3m",), "red", "builtin")
    assert (run.lanes, run.gamma, run.matches, run.total_steps, run.seed) == (4, 0.5, 6, 300, 3)
    assert run.quiet
    other = STUDY.run_of(ENTRIES[1], 0, tmp_path)
    assert (other.team, other.opponent, other.options) == ("blue", "nearest", ("map=8m", "horizon=9"))


def test_first_seeds_come_first_and_an_entry_may_ask_for_fewer(trained: list[Any], figure_args: FigureArgs):
    made = replace(STUDY, evaluation=lambda entry: entry.place).train(figure_args)
    assert [(module, run.seed, what) for module, run, what in trained] == [
        *(("vdn", 0, "3m"), ("qmix", 0, "a b"), ("vdn", 1, "3m"))
    ]
    assert trained[1][1].directory == figure_args.runs / "mine" / "a_b" / "qmix"
    assert [(entry.place, run.seed, len(log)) for entry, run, log in made.each(ENTRIES)] == [
        *(("3m", 0, 3), ("3m", 1, 3), ("a b", 0, 3))
    ]


def test_seeds_are_those_of_the_study_or_of_the_entry_or_those_that_are_asked_for():
    args = FigureArgs(seeds=2)
    assert list(STUDY.seeds_of(replace(ENTRIES[0], seeds=3), args)) == [0, 1]
    assert list(replace(STUDY, fixed_seeds=True).seeds_of(replace(ENTRIES[0], seeds=3), args)) == [0, 1, 2]
    assert list(replace(STUDY, seeds=(100,)).seeds_of(ENTRIES[0], args)) == [100]


def test_a_study_writes_curves_results_a_picture_and_the_best_weights(
    trained: list[Any], figure_args: FigureArgs, capsys: pytest.CaptureFixture[str]
):
    results = lambda study, made: [{"method": e.method, "seed": run.seed} for e, run, _ in made.each(study.entries)]  # noqa: E731
    replace(STUDY, results=results).make(figure_args)
    rows = read_table(figure_args.figures / "mine.csv")
    assert list(rows[0]) == ["setting", "method", "seed", "steps", "win_rate", "return"]
    assert [row["seed"] for row in rows] == ["0"] * 3 + ["1"] * 3 + ["0"] * 3
    assert len(read_table(figure_args.figures / "mine_results.csv")) == 3
    assert (figure_args.figures / "mine.png").exists()
    assert (figure_args.assets / "weights" / "learnt.safetensors").read_text() == "1"
    assert capsys.readouterr().out.splitlines() == ["vdn  0", "vdn  1", "qmix  0"]


def test_panels_show_the_column_of_their_place_and_the_bars_that_are_asked_there(
    trained: list[Any], figure_args: FigureArgs, monkeypatch: pytest.MonkeyPatch
):
    drawn: list[Any] = []
    monkeypatch.setattr(drawing, "draw", lambda table, panels: drawn.append(panels))
    for panels in (won_per_place, panel_per_place):
        replace(STUDY, panels=panels).make(figure_args)
    (won, _), (_, other) = drawn
    assert (won.title, won.y_label, won.lines) == (
        *("three marines", "share won against builtin"),
        {"threshold: 90 %": 0.9},
    )
    assert won.curves["VDN"].middle.tolist() == pytest.approx([0.0, 0.15, 0.3])
    assert (other.y_label, other.curves["QMIX"].middle.tolist()) == ("return", [0.0, 1.0, 2.0])


def test_rows_without_a_seed_are_lines_across_and_those_without_a_number_are_left_out():
    rows = [{"arm": "a", "seed": s, "steps": t, "y": y} for s, t, y in (("0", "0", "nan"), ("0", "5", "2"))]
    rows += [{"arm": "random play", "seed": "", "steps": "", "y": "0.5"}]
    panel = drawing.panel_of("title", "label", rows, "arm", "y", titles={"a": "A"}, lines={"more": 1.0}, is_log=True)
    assert {name: curve.middle.tolist() for name, curve in panel.curves.items()} == {"A": [2.0]}
    assert (panel.lines, panel.is_log) == ({"random play": 0.5, "more": 1.0}, True)


def test_medians_are_held_against_what_an_entry_asks():
    rows = [{"arm": "a", "won": won} for won in (0.1, 0.7, 0.9)] + [{"arm": "b", "won": 0.5}]
    assert median(rows, "won", arm="a") == 0.7
    entry = Entry("3m", "vdn", 1, bar=0.7, minutes=2.0, ahead={"qmix": 0.1})
    assert asked_of(STUDY, entry, 0.7, 2.0, lambda _: 0.5) == [
        *(("at least 0.70", True), ("at most 2 min", True), ("+0.10 over QMIX (+0.20)", True))
    ]
    missed = asked_of(STUDY, replace(entry, bar=0.71, minutes=1.9, ahead={"qmix": 0.21}), 0.7, 2.0, lambda _: 0.5)
    assert not any(holds for _, holds in missed)


# -- all studies -------------------------------------------------------------------------------------------------------


def entries() -> Iterator[Any]:
    """Each method of each study in each of its places, once."""
    seen = set[Any]()
    for study in STUDIES:
        for entry in study.entries:
            key = study.name.partition("_")[0], entry.place, entry.method, repr(entry.arguments)
            if key not in seen:
                seen.add(key)
                yield pytest.param(study, entry, id=f"{study.name}: {entry.place} {entry.arm}")


@pytest.mark.check
@pytest.mark.parametrize(("study", "entry"), list(entries()))
def test_an_entry_is_a_run_that_its_method_takes_in_a_game_that_there_is(study: Study, entry: Entry, tmp_path: Path):
    run = study.run_of(entry, 1, tmp_path)
    assert (run.seed, run.total_steps) == (1, entry.steps)
    assert study.methods[entry.method].title
    if run.env_id in registry.ROWS:
        run.check()
        game = make_rules(run.env_id, getattr(run, "options", ()))
        assert getattr(run, "team", next(iter(game.teams))) in ("", *game.teams)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_study_has_one_entry_of_each_arm_in_a_place_and_compares_methods_that_it_has(study: Study, tmp_path: Path):
    keys = [entry.key for entry in study.entries]
    assert len(set(keys)) == len(keys)
    assert all((entry.place, other) in keys for entry in study.entries for other in entry.ahead)
    titles = [method.title for method in study.methods.values()]
    assert len(set(titles)) == len(titles)
    assert study.name in learn.FIGURES
    folders = {study.folder(study, entry) for entry in study.entries}
    assert len(folders) == len(keys)
