"""Pursuit: teams move along the edges of a graph, hunt evaders, guard exits, or fight another team.

Graphs are read by `palaestra.games.pursuit.graphs` and become the arrays of `palaestra.games.pursuit.graph_ground`. The
rules are in `palaestra.games.pursuit.graph_pursuit` and `palaestra.games.pursuit.confront`, what agents see in
`palaestra.games.pursuit.graph_sight`. Optimal play is computed by `palaestra.games.pursuit.solver`.
"""

from palaestra.game import Family, Page, Preset, presets

FAMILY = Family(
    "pursuit",
    rows=(
        *presets(
            "palaestra.games.pursuit.graph_pursuit:game",
            Preset("palaestra/GraphPursuit-v0", "two pursuers and an evader on a grid of 10 x 10 nodes"),
            Preset(
                "palaestra/GraphPursuit-Grid10-v0",
                "the same with alternating moves, and optimal play of both sides",
                order="alternating",
                starts="winnable",
                solve=True,
            ),
            Preset(
                "palaestra/GraphPursuit-Petersen-v0",
                "three pursuers on the Petersen graph, where two are not enough",
                graph="petersen",
                pursuers=3,
                order="alternating",
                solve=True,
            ),
            Preset(
                "palaestra/GraphPursuit-Cube4-v0",
                "three pursuers on the cube of four dimensions",
                graph="cube:4",
                pursuers=3,
                order="alternating",
                solve=True,
            ),
            Preset(
                "palaestra/GraphPursuit-Torus8-v0",
                "three pursuers on a torus of 8 x 8 nodes",
                graph="torus:8x8",
                pursuers=3,
                order="alternating",
            ),
            Preset(
                "palaestra/GraphPursuit-Regular200-v0",
                "six pursuers on a random graph of 200 nodes with four neighbours each",
                graph="regular:200x4",
                pursuers=6,
                need=3,
                radius=1,
                start_hops=5,
            ),
            Preset(
                "palaestra/GraphPursuit-Dungeons-v0",
                "256 dungeons of 200 nodes, of which each match draws one",
                graph="dungeons:256x200",
                start_hops=6,
            ),
            Preset(
                "palaestra/GraphPursuit-Streets-v0",
                "64 networks of 200 streets, of which each match draws one",
                graph="streets:64x200",
                start_hops=5,
            ),
            Preset(
                "palaestra/GraphPursuit-Exits-v0",
                "five pursuers keep an evader from eight exits of a dungeon",
                graph="dungeons:64x200",
                pursuers=5,
                exits=8,
                starts="together",
                start_hops=6,
            ),
            page=Page("GraphPursuit", "pursuers hunt evaders on any graph, with optimal play known"),
        ),
        *presets(
            "palaestra.games.pursuit.confront:game",
            Preset("palaestra/GraphConfront-v0", "three against three on a grid of 8 x 8 nodes"),
            Preset(
                "palaestra/GraphConfront-Dungeons-v0",
                "three against three in one of 64 dungeons of 100 nodes",
                graph="dungeons:64x100",
            ),
            page=Page("GraphConfront", "two teams move and shoot on any graph"),
        ),
    ),
    order=4,
    demo=("palaestra/GraphPursuit-Grid10-v0", "shortest_path", "flee"),
    exact={
        "PursuitSolution": "palaestra.games.pursuit.solver:PursuitSolution",
        "capture_time": "palaestra.games.pursuit.solver:capture_time",
        "cop_number": "palaestra.games.pursuit.solver:cop_number",
        "pursuit": "palaestra.games.pursuit.solver:solve_pursuit",
    },
)
