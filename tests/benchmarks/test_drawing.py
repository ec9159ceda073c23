"""Pictures of figures: one style a method, bands that say what they are, the same bytes from the same table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib")

import learn
from learning import drawing, figures, skirmish_figures
from learning.drawing import FORMATS, SETTINGS, SIZES, STYLES, Curve, Panel, curve_over_seeds, make_picture
from learning.figures import FigureArgs
from learning.study import Entry, Figure, Made, Study

pytestmark = pytest.mark.slow

FIGURES = FigureArgs().figures
LARGEST = 400_000
"""Bytes of a picture."""
COLUMN_PT = 736 * 72 / 96
"""Width of the site's column of text."""


def curve(seeds: int = 1, *, last: float = 10.0) -> Curve:
    """A curve of two evaluations whose seeds have 0, 0.1, 0.2, ... at both."""
    runs = [[{"steps": step, "won": 0.1 * seed} for step in (0.0, last)] for seed in range(seeds)]
    return curve_over_seeds(runs, "won")


def panel(*methods: str, **more: Any) -> Panel:
    return Panel("game", "won", {method: curve() for method in methods}, **more)


def style_of(picture: Any, axis: int, method: str) -> tuple[Any, ...]:
    (line,) = (line for line in picture.axes[axis].get_lines() if line.get_label() == method)
    return line.get_color(), line._unscaled_dash_pattern, line.get_marker()


@pytest.fixture(scope="module")
def committed() -> dict[str, Sequence[Panel]]:
    """What the tables of docs/figures give, by the name of the figure."""
    found: dict[str, Sequence[Panel]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "draw", lambda table, panels: found.update({table.stem: panels}))
        patch.setattr(drawing, "write_picture", lambda path, *_: found.setdefault(path.stem, []))  # one of no curves
        for picture in learn.PICTURES.values():
            picture.draw(FIGURES)
    return found


def test_a_method_has_the_same_style_in_all_pictures():
    one, other = make_picture([panel("VDN", "MAPPO")]), make_picture([panel("ARAC"), panel("MAPPO", "ARAC")])
    assert style_of(one, 0, "MAPPO") == style_of(other, 1, "MAPPO")
    assert style_of(other, 0, "ARAC") == style_of(other, 1, "ARAC")
    assert style_of(one, 0, "VDN") != style_of(one, 0, "MAPPO")


def test_no_two_methods_share_a_style_and_those_of_one_picture_differ_in_all_parts(
    committed: dict[str, Sequence[Panel]],
):
    assert len(set(STYLES.values())) == len(STYLES)
    assert set(committed) == set(learn.PICTURES)
    for name, panels in committed.items():
        drawing.check(panels)
        methods = {method for one in panels for method in one.curves}
        for parts in zip(*(STYLES[method] for method in methods), strict=True):
            assert len(set(parts)) == len(methods), name


def test_a_method_without_a_style_and_too_many_lines_are_refused_by_name():
    with pytest.raises(ValueError, match=r"no style for the method 'QPLEX'.* STYLES .*UNMAS"):
        make_picture([panel("VDN", "QPLEX")])
    lines = {f"script {number}": 0.1 * number for number in range(5)}
    with pytest.raises(ValueError, match=r"5 lines across \(script 0, .*script 4\): at most 4"):
        make_picture([panel("VDN", lines=lines)])


def test_lines_across_are_grey_with_dashes_of_their_own():
    picture = make_picture([panel("VDN", lines={"a": 0.1, "b": 0.2}), panel("VDN", lines={"b": 0.3})])
    styles = [style_of(picture, axis, name) for axis, name in ((0, "a"), (0, "b"), (1, "b"))]
    assert styles[0][0] == styles[1][0] == drawing.GREY
    assert styles[0][1] != styles[1][1] == styles[2][1]


def test_the_band_of_few_seeds_goes_from_the_least_to_the_most():
    runs = [[{"steps": 9.0 + seed, "won": won} for won in wins] for seed, wins in enumerate([(1, 5), (4, 2), (4, 8)])]
    few = curve_over_seeds(runs, "won")
    assert (few.low.tolist(), few.high.tolist()) == ([1.0, 2.0], [4.0, 8.0])
    assert (few.x.tolist(), few.middle.tolist(), few.seeds) == ([10.0, 10.0], [3.0, 5.0], 3)


def test_the_band_of_more_seeds_is_the_bootstrap_interval():
    won = [0.0, 0.4, 0.5, 0.6, 1.0]
    many = curve_over_seeds([[{"steps": 0.0, "won": value}] for value in won], "won")
    assert (many.middle[0], many.low[0], many.high[0]) == figures.bootstrap_interval(np.array(won))
    assert 0.0 < many.low[0] < 0.5 < many.high[0] < 1.0


def test_runs_with_other_numbers_of_evaluations_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        curve_over_seeds([[{"steps": 0.0, "won": 1.0}], []], "won")


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        (1, "line: one seed"),
        (2, "line: mean of 2 seeds\nband: least to most"),
        (4, "line: interquartile mean of 4 seeds\nband: least to most"),
        (5, "line: interquartile mean of 5 seeds\nband: 95 % bootstrap interval"),
    ],
)
def test_the_legend_says_what_line_and_band_are_and_one_seed_has_no_band(seeds: int, said: str):
    picture = make_picture([Panel("game", "won", {"VDN": curve(seeds)})])
    assert picture.legends[0].get_title().get_text() == said
    assert len(picture.axes[0].collections) == (seeds > 1)


@pytest.mark.parametrize("groups", [[("VDN", "IQL")], [("VDN",), ("VDN", "IQL")]], ids=["beside", "below"])
def test_the_legend_names_all_once_and_stands_outside_the_axes(groups: list[tuple[str, ...]]):
    picture: Any = make_picture([panel(*methods, lines={"a": 0.1}) for methods in groups])
    (legend,) = picture.legends
    assert [text.get_text() for text in legend.get_texts()] == ["VDN", "IQL", "a"]
    picture.draw_without_rendering()
    box = legend.get_window_extent()
    assert not any(axis.get_tightbbox().overlaps(box) for axis in picture.axes)
    assert picture.bbox.x0 <= box.x0 < box.x1 <= picture.bbox.x1
    assert picture.bbox.y0 <= box.y0 < box.y1 <= picture.bbox.y1


def test_pictures_of_shares_go_from_0_to_1():
    free, share = (axis.get_ylim() for axis in make_picture([panel("VDN"), panel("VDN", is_share=True)]).axes)
    assert share == (-0.03, 1.03)
    assert free != share


def test_ticks_of_logarithmic_axes_are_plain_numbers():
    errors = Curve(np.array([0.0, 1.0]), *3 * [np.array([2.0, 30.0])], seeds=1)
    picture = make_picture([Panel("game", "error", {"PPO": errors}, is_log=True)])
    picture.draw_without_rendering()
    axis = picture.axes[0]
    ticks = [text.get_text() for text in axis.get_yticklabels(which="both")]
    assert axis.get_yscale() == "log"
    assert [tick for tick in ticks if tick] == ["1", "2", "5", "10", "20", "50"]


@pytest.mark.parametrize(
    ("last", "label", "tick"),
    [(3.0, "decisions", 2.0), (200_000.0, "decisions (thousands)", 2e3), (1e6, "decisions (millions)", 2e6)],
)
def test_x_is_counted_in_units_that_the_label_names(last: float, label: str, tick: float):
    axis = make_picture([Panel("game", "won", {"VDN": curve(last=last)})]).axes[0]
    assert (axis.get_xlabel(), axis.xaxis.get_major_formatter()(tick)) == (label, "2")


def test_x_is_logarithmic_where_one_curve_is_much_longer():
    scales = [
        make_picture([Panel("game", "won", {"MAPPO": curve(), "ARAC": curve(last=last)})]).axes[0].get_xscale()
        for last in (120.0, 121.0)
    ]
    assert scales == ["linear", "log"]


def test_words_have_eight_points_where_they_are_shown():
    widths = [72 * columns * width for columns, (width, _) in SIZES.items()]
    assert all(SETTINGS["font.size"] * min(1.0, COLUMN_PT / width) >= 8.0 for width in widths)


def test_a_picture_is_redrawn_from_its_table_to_the_bytes_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entries = tuple(Entry("3m", method, 100, bar=0.9) for method in ("vdn", "qmix"))
    log = [{"steps": 98765.4321 * k, "win_rate": k / 3} for k in range(3)]  # a table holds five digits
    made_up: Any = {entry.key: [SimpleNamespace(seed=seed) for seed in range(3)] for entry in entries}
    runs = Made(made_up, {key: [log, log, log] for key in made_up}, FigureArgs(figures=tmp_path))
    study = replace(skirmish_figures.STUDIES["skirmish_solved"], entries=entries, results=None, lines=lambda *_: ())
    monkeypatch.setitem(learn.ALL, "skirmish_solved", study)
    monkeypatch.setattr(Study, "train", lambda *_: runs)
    monkeypatch.setitem(SETTINGS, "savefig.dpi", 40)
    study.make(runs.args)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(made) == {f"skirmish_solved.{end}" for end in ("csv", *FORMATS)}
    for suffix in FORMATS:
        (tmp_path / f"skirmish_solved.{suffix}").unlink()
    learn.main(["skirmish_solved", "--redraw", "--figures", str(tmp_path)])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == made


def test_every_committed_picture_is_that_of_its_table(committed: dict[str, Sequence[Panel]]):
    assert {path.stem for suffix in FORMATS for path in FIGURES.glob(f"*.{suffix}")} == set(committed)
    for name, panels in committed.items():
        digest = drawing.table_digest(FIGURES / f"{name}.csv").encode()
        pictures = {suffix: (FIGURES / f"{name}.{suffix}").read_bytes() for suffix in FORMATS}
        for suffix, content in pictures.items():
            assert digest in content, f"python benchmarks/learn.py {name} --redraw"
            assert len(content) < LARGEST, (name, suffix)
        words = pictures["svg"].decode()
        titles = (line for one in panels for line in one.title.split("\n"))
        for word in (*titles, *(n for one in panels for n in (*one.curves, *one.lines))):
            assert f">{word}</text>" in words, (name, word)


def test_only_figures_with_curves_can_be_redrawn(tmp_path: Path):
    with pytest.raises(SystemExit, match=r"no picture of the table 'fm3q_limit': choose from tracking"):
        learn.main(["fm3q_limit", "--redraw"])
    with pytest.raises(FileNotFoundError, match=r"fm3q_exact\.csv is missing: `python benchmarks/learn.py fm3q_exact`"):
        learn.main(["fm3q_exact", "--redraw", "--figures", str(tmp_path)])


def test_all_figures_are_made_where_none_is_named(monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []
    figures = {name: Figure(name, lambda _, name=name: made.append(name)) for name in ("one", "two")}
    monkeypatch.setattr(learn, "FIGURES", figures)
    learn.main([])
    assert made == ["one", "two"]
