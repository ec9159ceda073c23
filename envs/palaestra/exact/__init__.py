"""Exact solutions of small games: matrix games with certificates, exact values, exact exploitability of any policy.

Example::

    from palaestra import exact

    exact.matrix_game([[3, 0], [1, 2]]).value  # 1.5, with both strategies and a certificate
    solution = exact.solve("palaestra/GridSoccer-v0", symmetry=False)
    solution.values[solution.table.starts]  # +-0.218484, to the guaranteed error 1e-8
    red = solution.policy("red")  # [positions, joint actions]
    exact.exploitability(solution, red, "red").exploitability  # 0
    exact.exploitability(solution, "random", "red").exploitability  # 0.553684
    # or of a saved policy ("policy.safetensors"), a callable, an SB3 model, a torch module
    exact.nash_conv(solution, {"red": red, "blue": "random"}).gains

Pursuit on graphs is solved for hundreds of nodes: alternating moves, full information, no limit of time::

    exact.cop_number("petersen")  # 3
    grid = exact.pursuit("grid:10x10", pursuers=2)
    grid.capture_time  # 9 moves from the best start
    grid.times[0, 0, 99]  # 18 from two corners
    grid.pursuer_moves((0, 0), 99), grid.evader_move((0, 1), 99)

Games define how their positions are counted (`palaestra.game.Enumeration`); the transitions are found by playing
their own compiled step from each of them, so a solution is one of the environment itself. The modules:

* `palaestra.exact.matrix_solver`: von Neumann's matrix games by a compiled simplex method;
* `palaestra.exact.positions`: all positions and transitions;
* `palaestra.exact.values`: Shapley's value iteration with guaranteed bounds;
* `palaestra.exact.policies` and `palaestra.exact.exploitability`: best responses to policies of all kinds;

Families add solvers of their games (`palaestra.game.Family`), such as ``pursuit``, ``cop_number`` and ``capture_time``;
``dir(exact)`` names all. Their types stand in the modules that they come from.
"""

from typing import Any

from palaestra import registry
from palaestra.core.contract import factories
from palaestra.exact.exploitability import Exploitability, NashConv, exploitability, nash_conv
from palaestra.exact.matrix_solver import MatrixGame, MatrixGames, matrix_game, matrix_games
from palaestra.exact.positions import PositionTable, enumerate_positions
from palaestra.exact.values import Solution, solve

__all__ = [
    "Exploitability",
    "MatrixGame",
    "MatrixGames",
    "NashConv",
    "PositionTable",
    "Solution",
    "enumerate_positions",
    "exploitability",
    "matrix_game",
    "matrix_games",
    "nash_conv",
    "solve",
]


def __getattr__(name: str) -> Any:
    """A solver of a family, imported when it is asked for."""
    offered = registry.offers("exact")
    if name in offered:
        return factories.load(offered[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *registry.offers("exact")])
