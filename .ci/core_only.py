"""What must work after a bare ``pip install palaestra``: .ci/run runs it in a venv with just that."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import gymnasium

import palaestra

OPTIONAL = ("torch", "jsbsim", "mujoco", "scipy", "pygame", "matplotlib", "stable_baselines3", "rich")
ID = "palaestra/CartPole-v0"

installed = [name for name in OPTIONAL if find_spec(name)]
assert not installed, f"the core install brings optional packages: {installed}"
assert Path(palaestra.__file__).is_relative_to(sys.prefix), f"not the installed wheel: {palaestra.__file__}"
for package in ("palaestra", "palaestra_baselines", "palaestra_assets"):
    spec = find_spec(package)
    assert spec is not None, f"the wheel lacks {package}"
    assert Path(spec.origin or "").with_name("py.typed").exists(), f"the wheel lacks {package}/py.typed"

env = gymnasium.make(ID)
env.action_space.seed(0)
env.reset(seed=0)
for _ in range(100):
    *_, terminated, truncated, _ = env.step(env.action_space.sample())
    if terminated or truncated:
        env.reset()
env.close()

command = Path(sys.prefix, "Scripts" if sys.platform == "win32" else "bin", "palaestra")
listed = subprocess.run([command, "list"], capture_output=True, text=True, check=False)
assert listed.returncode == 0, f"palaestra list failed: {listed.stderr}"
assert ID in listed.stdout, f"palaestra list does not name {ID}: {listed.stdout}"
print(f"core install works: palaestra {palaestra.__version__}, {ID}, palaestra list")
