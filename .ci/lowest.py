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

families = registry.FAMILIES.values()
pins = dict(line.split("==") for line in (ROOT / "constraints-lowest.txt").read_text().splitlines() if "==" in line)
needed = {package for family in families for package in family.needs if package in pins}
for package in ("gymnasium", "numba", "numpy", "pettingzoo", *needed):
    assert version(package) == pins[package], f"{package} is {version(package)}, not the lowest"

for id in registry.ROWS:
    golden.compare_rules(id, ROOT / "tests" / "golden")
examples = [family.example for family in families]
for id in examples:
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
print(f"works with the oldest dependencies: numpy {version('numpy')}, {len(registry.ROWS)} ids, {', '.join(examples)}")
