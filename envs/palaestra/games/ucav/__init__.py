"""UCAV: six-degree-of-freedom air combat on JSBSim's F-16, from following a command to a gunfight."""

from palaestra.game import Family, Preset, presets

AS_INSTALLED = {"engine": "jsbsim", "airframe": "f16-jsbsim", "planet": "wgs84"}
"""JSBSim itself with its own aircraft: what the first versions of the ids fly."""

FAMILY = Family(
    "ucav",
    rows=(
        *presets(
            "palaestra.games.ucav.track:game",
            Preset("palaestra/UcavTrack-v1", "inner loop: fly a commanded attitude, heading or load factor"),
            Preset("palaestra/UcavTrack-v0", "the same with JSBSim's aircraft as installed", **AS_INSTALLED),
        ),
        *presets(
            "palaestra.games.ucav.pursuit:game",
            Preset("palaestra/UcavPursuit-v1", "one learner hunts a scripted target"),
            Preset("palaestra/UcavPursuit-v0", "the same with JSBSim's aircraft as installed", **AS_INSTALLED),
        ),
        *presets(
            "palaestra.games.ucav.dogfight:game",
            Preset("palaestra/UcavDogfight-v1", "1v1 gunfight, zero-sum"),
            Preset("palaestra/UcavDogfight-v0", "the same with JSBSim's aircraft as installed", **AS_INSTALLED),
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
    example="palaestra/UcavTrack-v0",
    players=("expert",),
    exports={"acmi": ("a flight recording for Tacview", "palaestra.games.ucav.acmi:write_acmi")},
)
