"""What a prompt or notebook shows of a simulation, a solution or a game is one line."""

import dataclasses
from operator import methodcaller
from typing import Any

import numpy as np
import pytest
from games import duel
from games.play import simulation

from palaestra import exact
from palaestra.core.files.short_repr import short_repr
from palaestra.evaluation import Rating

pytestmark = pytest.mark.check
html_of = methodcaller("_repr_html_")


@dataclasses.dataclass
class Found:
    """Fields of all kinds."""

    few: np.ndarray
    many: np.ndarray
    value: float
    names: list[str]
    gains: dict[str, float]
    pair: tuple[np.ndarray, int]
    text: str

    def __repr__(self) -> str:
        """One line."""
        return short_repr(self)


def test_arrays_lists_and_texts_are_cut_short():
    found = Found(
        np.array([0.5, 1 / 3]), np.zeros((3, 4)), 1 / 3, ["a"] * 9, {"red": 2 / 3}, (np.zeros(9), 1), "x" * 99
    )
    assert repr(found) == (
        "Found(few=[0.5     , 0.333333], many=float64[3, 4], value=0.333333, names=<9 list members>, "
        f"gains={{'red': 0.666667}}, pair=(float64[9], 1), text='{'x' * 59}...)"
    )


def test_a_simulation_says_what_it_plays():
    sim = simulation(duel.game(), 3, compiled=False)
    assert repr(sim) == "<KernelSimulation Duel: 3 lanes, autoreset_mode='next_step', reset() starts it>"
    sim.reset(seed=1)
    assert repr(sim).endswith(", started>")
    sim.close()
    assert repr(sim).endswith(", closed>")
    assert repr(sim.game) == "<Game Duel: red 1, blue 1>"


@pytest.mark.parametrize("size", [200, 481])
def test_solutions_are_one_line_however_many_positions_they_have(size: int):
    solution = exact.solve(duel.game(tries=size, players=1), symmetry=False)
    shown: list[Any] = [solution, solution.table, exact.exploitability(solution, "random", "red")]
    for found in shown:
        assert len(repr(found)) < 900
        assert "\n" not in repr(found)
    assert f"float64[{len(solution.table)}]" in repr(solution)
    assert repr(exact.matrix_game([[3, 0], [1, 2]])).startswith("MatrixGame(value=1.5, row_strategy=[")


def test_what_is_left_of_a_sum_that_is_0_is_shown_as_0_and_a_bound_as_it_is():
    shown = repr(exact.matrix_game([[1, -1], [-1, 1]]))
    assert shown.startswith("MatrixGame(value=0, row_strategy=[0.5, 0.5], column_strategy=[0.5, 0.5], lower=")
    assert "e-" not in shown.partition("gap=")[0]
    noisy = Found(np.array([-5e-17, 1.0]), np.zeros(9), -5e-17, [], {}, (np.zeros(9), 1), "")
    assert repr(noisy).startswith("Found(few=[0., 1.], many=float64[9], value=0, ")
    assert repr(exact.NashConv(0.5, {"red": 0.5}, 0.0, 3e-14)).endswith("value=0, error=3e-14)")


def test_a_notebook_shows_ratings_and_exact_values_a_line_a_field():
    made = [exact.matrix_game([[3, 0], [1, 2]]), exact.NashConv(0.5, {"<red>": 0.5}, 0.0, 1e-9), Rating(1012.5, 40.25)]
    for found in made:
        lines = html_of(found).split("\n")
        assert lines[0] == f"<pre>{type(found).__name__}"
        assert len(lines) == 1 + len(dataclasses.fields(found))
        assert lines[-1].endswith("</pre>")
    assert html_of(made[1]).count("&lt;red&gt;") == 1
    assert repr(made[2]) == "Rating(elo=1012.5, half_width=40.25)"
    assert html_of(made[2]) == "<pre>Rating\n  elo         1012.5\n  half_width  40.25</pre>"


def test_a_number_of_an_end_that_no_rule_has_is_refused_by_the_game():
    game = duel.game()
    assert [game.end_reason(k) for k in range(4)] == ["", "horizon", "goal", "spent"]
    for number in (4, -1):
        with pytest.raises(ValueError, match=rf"Duel: s\.info.end_reason is {number}, and the reasons are .*'spent'"):
            game.end_reason(number)
