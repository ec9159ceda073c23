"""EPyMARL: its programs, unchanged; ids with Tuple spaces from `palaestra.adapters.epymarl` through its ``gymma``."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from peers.libraries.trials import main, run_program, trial

SOURCE = Path(os.environ.get("PALAESTRA_PEER_SOURCE", ".")).resolve()
MODULE = "palaestra.adapters.epymarl"
SMALL = ("test_nepisode=2", "batch_size=2", "buffer_size=10", "hidden_dim=16", "use_cuda=False")


def run(method: str, id: str, time_limit: int, *settings: str) -> None:
    program = [sys.executable, SOURCE / "src" / "main.py", "--force", f"--config={method}", "--env-config=gymma"]
    game = (f"env_args.key={MODULE}:{id}", f"env_args.time_limit={time_limit}")
    with tempfile.TemporaryDirectory() as folder:
        said = run_program([*program, "with", *game, "t_max=200", *SMALL, *settings], Path(folder))
    assert "Finished Training" in said


@trial("opponent", "QMIX, VDN on TeamPong against a chosen script")
def _() -> None:
    for method in ("qmix", "vdn"):
        run(method, "palaestra/TeamPong-tuple-v0", 500, "env_args.opponent=chaser")


@trial("opponent", "MAPPO on TeamTag")
def _() -> None:
    run("mappo", "palaestra/TeamTag-tuple-v0", 50, "batch_size_run=2")


@trial("choices", "QMIX on composite choices (Arena) and unlike roles (SpeakerListener)")
def _() -> None:
    run("qmix", "palaestra/ArenaDuel2v2-tuple-v0", 50)
    run("qmix", "palaestra/SpeakerListener-tuple-v0", 25)


@trial("adapter", "QMIX on adapters.pymarl in EPyMARL's registry: masks, deaths and the state of the Arena")
def _() -> None:
    boot = "; ".join(
        (
            "import runpy, sys",
            f"sys.path.insert(0, {str(SOURCE / 'src')!r})",
            "import envs",
            "from palaestra.adapters.pymarl import TeamMultiAgentEnv",
            "envs.REGISTRY['palaestra'] = TeamMultiAgentEnv",
            f"runpy.run_path({str(SOURCE / 'src' / 'main.py')!r}, run_name='__main__')",
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "arena.yaml"
        config.write_text("env: palaestra\nenv_args: {key: palaestra/ArenaDuel2v2-v0, api: epymarl, opponent: mix}\n")
        named = Path(os.path.relpath(config, SOURCE / "src" / "config" / "envs")).with_suffix("")
        program = [sys.executable, "-c", boot, "--config=qmix", f"--env-config={named.as_posix()}", "with"]
        assert "Finished Training" in run_program([*program, "t_max=200", *SMALL], Path(folder))


if __name__ == "__main__":
    main("torch")
