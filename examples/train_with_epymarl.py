"""EPyMARL's QMIX, unmodified, trains the red team of TeamPong against the scripted `tracker`.

python examples/train_with_epymarl.py                  # says the command
python examples/train_with_epymarl.py ../epymarl 50000 # runs it in a checkout of EPyMARL, for so many decisions
"""

import re
import subprocess
import sys
from pathlib import Path

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
decisions = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
settings = {
    "env_args.key": "palaestra.adapters.epymarl:palaestra/TeamPong-tuple-v0",
    "env_args.opponent": "tracker",  # --force: EPyMARL's own settings have no such name
    "env_args.time_limit": 500,  # the horizon of the game
    "t_max": decisions,
    "test_interval": max(1000, decisions // 5),
    "use_cuda": False,
}
given = [f"{name}={value}" for name, value in settings.items()]
command = [sys.executable, "src/main.py", "--force", "--config=qmix", "--env-config=gymma", "with", *given]
print("in a checkout of EPyMARL:", " ".join(["python", *command[1:]]))
if folder is not None:
    if not (folder / "src" / "main.py").exists():
        raise SystemExit(f"{folder} is no checkout of EPyMARL: it has no src/main.py")
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        won = ""
        for line in run.stdout:
            if found := re.search(r"test_battle_won_mean:\s+([\d.]+)", line):
                won = found[1]
            if "Recent Stats" in line:
                print(line.strip(), flush=True)
    if run.returncode:
        raise SystemExit(f"EPyMARL ended with status {run.returncode}")
    print(f"share of the last test matches that red won: {won or 'not tested yet'}")
