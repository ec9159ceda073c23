"""What must work with the oldest supported dependencies: .ci/run runs it in a venv of constraints-lowest.txt.

The rules of all ids are those recorded; one game a family is compiled and repeats its replay; the smallest passes the
conformance kit. `make test-lowest` runs all tests.
"""

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from palaestra import make_batch, registry
from palaestra.replay import Recorder, load, verify
from palaestra.testing import check
from palaestra.testing.players import Player

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "tools"))

import golden  # noqa: E402 (found by the line above)

EXAMPLES = (
    *("CartPole", "TeamMatrix", "UcavTrack", "Skirmish-3m", "GraphPursuit", "MaHopper"),
    *("SearchQA-2Hop", "MathText-Arith", "LLMEnsemble"),
)

pins = dict(line.split("==") for line in (ROOT / "constraints-lowest.txt").read_text().splitlines() if "==" in line)
for package in ("gymnasium", "numba", "numpy", "pettingzoo", "jsbsim", "mujoco"):
    assert version(package) == pins[package], f"{package} is {version(package)}, not the lowest"

ids = {f"palaestra/{name}-v0" for name in EXAMPLES}
families = {row.family for row in registry.ROWS.values()}
assert {registry.ROWS[id].family for id in ids} == families, f"one id of each of {sorted(families)}"
for id in registry.ROWS:
    golden.compare_rules(id, ROOT / "tests" / "golden")
for id in sorted(ids):
    sim = make_batch(id, 2)
    player = Player(sim)
    with Recorder(sim) as recorder, tempfile.TemporaryDirectory() as folder:
        sim.reset(seed=1)
        for _ in range(20):
            player.play(sim)
            sim.step()
        recorder.replay().save(Path(folder, "match.npz"))
        assert verify(load(Path(folder, "match.npz"))).ok, f"{id} does not repeat its replay"
    sim.close()
check("palaestra/CartPole-v0").raise_if_failed()
print(f"works with the oldest dependencies: numpy {version('numpy')}, {len(registry.ROWS)} ids, {', '.join(EXAMPLES)}")
