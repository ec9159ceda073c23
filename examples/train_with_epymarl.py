"""EPyMARL's QMIX, unmodified, trains three marines against three that follow a script.

python examples/train_with_epymarl.py                                    # prints the command
python examples/train_with_epymarl.py ../epymarl 50000                   # runs it in a checkout, for so many decisions
python examples/train_with_epymarl.py ../epymarl 50000 TeamPong tracker  # another environment, another opponent

EPyMARL's own `gymma` knows neither masks nor global states (`palaestra.adapters.epymarl` is for it). So a line puts
`TeamMultiAgentEnv`, which has both, into EPyMARL's table of environments; its files stay as they are. EPyMARL logs all
that it can, numba's steps of compilation too, which takes minutes: another line forbids that.
"""

import re
import subprocess
import sys
from pathlib import Path

from palaestra import registry
from palaestra.console import find_id

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
decisions = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
id = find_id(sys.argv[3] if len(sys.argv) > 3 else "Skirmish-3m")
game, parameters = registry.make_game(id)
opponent = sys.argv[4] if len(sys.argv) > 4 else game.default_opponent

START = """
import logging, runpy, sys
logging.getLogger("numba").setLevel("WARNING")
sys.path.insert(0, "src")
import envs
from palaestra.adapters.pymarl import TeamMultiAgentEnv
envs.REGISTRY["palaestra"] = lambda pretrained_wrapper, **given: TeamMultiAgentEnv(api="epymarl", **given)
runpy.run_path("src/main.py", run_name="__main__")
"""
settings = {
    "env": "palaestra",
    "env_args.key": id,
    "env_args.opponent": opponent,  # --force: EPyMARL's own settings have no such name
    "env_args.time_limit": int(parameters.get("horizon", game.horizon)),
    "t_max": decisions,
    "epsilon_anneal_time": min(50_000, decisions // 2),
    "test_interval": max(1000, decisions // 5),
    "log_interval": max(1000, decisions // 5),
    "test_nepisode": 32,
    "use_cuda": False,
}
given = [f"{name}={value}" for name, value in settings.items()]
command = [sys.executable, "-c", START, "--force", "--config=qmix", "--env-config=gymma", "with", *given]
print("in a checkout of EPyMARL: python src/main.py, after the lines", START, "with", " ".join(command[3:]))
if folder is not None:
    if not (folder / "src" / "main.py").exists():
        raise SystemExit(f"{folder} is no checkout of EPyMARL: it has no src/main.py")
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        won, last = "", ""
        for line in run.stdout:
            if found := re.search(r"test_battle_won_mean:\s+([\d.]+)", line):
                won = found[1]
            if "Recent Stats" in line:
                print(line.strip(), "| won:", won or "-", flush=True)
            last = line if line.strip() else last
    if run.returncode:
        raise SystemExit(f"EPyMARL ended with status {run.returncode}: {last.strip()}")
    print(f"share of the last test matches that red won: {won or 'not tested yet'}")
