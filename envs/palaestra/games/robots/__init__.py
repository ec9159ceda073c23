"""Robots that MuJoCo moves: running robots whose joints are divided among agents, teams of quadrupeds, two hands.

`palaestra.games.robots.engine` is the engine, `palaestra.games.robots.picture` draws by casting rays, without a
graphics library.
"""

from palaestra.game import Family, Page, Preset, presets

FAMILY = Family(
    "robots",
    rows=(
        *presets(
            "palaestra.games.robots.ma:game",
            Preset("palaestra/MaHalfCheetah-v0", "a half cheetah runs, its two legs are agents"),
            Preset("palaestra/MaAnt-v0", "an ant runs, its four legs are agents", robot="ant"),
            Preset("palaestra/MaHopper-v0", "a hopper runs, its three joints are agents", robot="hopper"),
            Preset("palaestra/MaWalker2d-v0", "a walker runs, its two legs are agents", robot="walker2d"),
            Preset(
                "palaestra/SparseMaHalfCheetah-v0", "a half cheetah is paid every 5 metres", reward="sparse", metres=5.0
            ),
            Preset(
                "palaestra/SparseMaAnt-v0", "an ant is paid every 3 metres", robot="ant", reward="sparse", metres=3.0
            ),
            Preset(
                "palaestra/SparseMaHopper-v0",
                "a hopper is paid every 0.25 metres",
                robot="hopper",
                reward="sparse",
                metres=0.25,
            ),
            page=Page("MaMuJoCo", "Gymnasium's running robots, each driven by several agents"),
        ),
        *presets(
            "palaestra.games.robots.meta_cheetah:game",
            Preset("palaestra/MetaCheetahVel-v0", "a half cheetah runs at one of 50 speeds that only its rewards tell"),
            Preset(
                "palaestra/MetaCheetahParam-v0",
                "a half cheetah runs in one of 50 bodies that it cannot see",
                differ="body",
            ),
            page=Page("MetaCheetah", "a half cheetah with 50 hidden speeds, or 50 bodies"),
        ),
        *presets(
            "palaestra.games.robots.quad_gate:game",
            *(
                Preset(f"palaestra/QuadGate{n}-v0", f"{n} quadrupeds pass a narrow gate", robots=n)
                for n in (2, 3, 4, 5)
            ),
            page=Page("QuadGate", "quadrupeds pass a narrow gate"),
        ),
        *presets(
            "palaestra.games.robots.quad_box:game",
            Preset("palaestra/QuadPushBox-v0", "two quadrupeds push a box to a goal"),
            page=Page("QuadPushBox", "two quadrupeds push a box to a goal"),
        ),
        *presets(
            "palaestra.games.robots.quad_shepherd:game",
            Preset("palaestra/QuadShepherd-v0", "two quadrupeds drive a sheep through a gate"),
            page=Page("QuadShepherd", "two quadrupeds drive a sheep through a gate"),
        ),
        *presets(
            "palaestra.games.robots.quad_sumo:game",
            Preset("palaestra/QuadSumo-v0", "two quadrupeds push each other out of a ring (zero-sum)"),
            page=Page("QuadSumo", "two quadrupeds push each other out of a ring"),
        ),
        *presets(
            "palaestra.games.robots.quad_football:game",
            Preset("palaestra/QuadFootball1v1-v0", "two quadrupeds play football (zero-sum)"),
            Preset("palaestra/QuadFootball2v2-v0", "two teams of two quadrupeds play football (zero-sum)", size=2),
            page=Page("QuadFootball", "teams of quadrupeds play football"),
        ),
        *presets(
            "palaestra.games.robots.hand_throw:game",
            Preset("palaestra/HandOver-v0", "a hand throws a ball, another one catches it"),
            Preset("palaestra/HandCatchAbreast-v0", "a hand tosses a ball to the one beside it", task="abreast"),
            Preset(
                "palaestra/HandCatchOver2Underarm-v0", "a hand throws a ball down to another one", task="over2underarm"
            ),
            page=Page("HandThrow", "a dexterous hand throws a ball, another one catches it"),
        ),
        *presets(
            "palaestra.games.robots.hand_open:game",
            Preset("palaestra/HandBottleCap-v0", "two hands draw the cap off a bottle"),
            Preset("palaestra/HandPen-v0", "two hands draw the cap off a pen", task="pen"),
            Preset("palaestra/HandScissors-v0", "two hands open scissors", task="scissors"),
            page=Page("HandOpen", "two dexterous hands open what has two parts"),
        ),
    ),
    order=5,
    needs={"mujoco": "palaestra[robots]"},
    example="palaestra/MaHopper-v0",
    demo=("palaestra/QuadGate2-v0",),
)
