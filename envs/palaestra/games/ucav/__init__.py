"""UCAV: six-degree-of-freedom air combat on JSBSim's F-16, from following a command to a gunfight."""

from palaestra.game import Family, Preset, presets

CONTEST = {
    "cone_half_angle_deg": 1.0,
    "posture_weight": 0.0,
    "altitude_weight": 0.0,
    "energy_weight": 0.0,
    "aim_weight": 0.0,
    "shaping_discount": 1.0,
}
"""A cone as narrow as that of contests, and nothing paid but damage and the end."""

FAMILY = Family(
    "ucav",
    rows=(
        *presets(
            "palaestra.games.ucav.track:game",
            Preset("palaestra/UcavTrack-v3", "inner loop: fly a commanded attitude, heading or load factor"),
        ),
        *presets(
            "palaestra.games.ucav.pursuit:game",
            Preset("palaestra/UcavPursuit-v2", "one learner hunts a scripted target: PPO learns it in a minute"),
            Preset(
                "palaestra/UcavPursuit-Contest-v2",
                "a cone of 1 degree, 200 s, any start, and no pay before the gun hits",
                **CONTEST,
                start="mix",
                duration_s=200.0,
            ),
        ),
        *presets(
            "palaestra.games.ucav.dogfight:game",
            Preset("palaestra/UcavDogfight-v2", "1v1 gunfight, zero-sum"),
            Preset("palaestra/UcavDogfight-Contest-v2", "a cone of 1 degree, and no pay before a gun hits", **CONTEST),
        ),
        *presets(
            "palaestra.games.ucav.evade:game",
            Preset("palaestra/UcavEvade-v0", "an unarmed aircraft survives one or two missiles"),
        ),
        *presets(
            "palaestra.games.ucav.team:game",
            Preset("palaestra/UcavTeam-v0", "gunfight of teams, one to eight aircraft each, zero-sum"),
            Preset("palaestra/UcavTeam-2v2-v0", "two against two", red=2, blue=2),
            Preset("palaestra/UcavTeam-4v4-v0", "four against four", red=4, blue=4),
        ),
    ),
    order=2,
    needs={"jsbsim": "palaestra[flight]", "safetensors": "palaestra[flight]"},
    example="palaestra/UcavTrack-v3",
    players=("expert",),
    exports={"acmi": ("a flight recording for Tacview", "palaestra.games.ucav.acmi:write_acmi")},
)
