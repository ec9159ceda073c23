"""The command of a method: its words, what it says after Ctrl-C and at its end."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")

from palaestra.cli import main as command_line
from palaestra_baselines import fm3q, iql, mappo, minimax_q, ppo_tracking, vdn
from palaestra_baselines.common.run_folder import evaluation_hint, resume_hint, run_command


def test_a_short_name_of_an_environment_is_written_in_full():
    args, trained = run_command(vdn.Args, "vdn", "VDN.", ["--env-id", "GridSoccer"], lambda args: args.env_id)
    assert args.env_id == trained == "palaestra/GridSoccer-v0"
    with pytest.raises(KeyError, match="did you mean 'palaestra/GridSoccer-v0'"):
        run_command(vdn.Args, "vdn", "VDN.", ["--env-id", "GridSocer"], lambda args: args.env_id)


@pytest.mark.parametrize("module", [fm3q, iql, mappo, minimax_q, ppo_tracking, vdn])
def test_the_help_names_the_command_and_says_what_the_method_is(module, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        module.main(["--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith(f"usage: palaestra train {module.METHOD} ")
    assert module.__doc__.splitlines()[0] in printed
    assert "beside those of" not in printed
    assert "`" not in printed, "a terminal shows no markup"
    assert any("`" in (each.__doc__ or "") for each in module.Args.__mro__), "the docstrings are as they were"


def test_ctrl_c_names_the_command_that_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def interrupted(args: vdn.Args) -> None:
        args.folder.mkdir(parents=True)
        (args.folder / "checkpoint.safetensors").touch()
        raise KeyboardInterrupt

    words = ["--seed", "3", "--overwrite", "--directory", str(tmp_path)]
    with pytest.raises(KeyboardInterrupt):
        run_command(vdn.Args, "vdn", "VDN.", words, interrupted)
    wanted = f"to continue from the last evaluation: palaestra train vdn --seed 3 --directory {tmp_path} --resume"
    assert capsys.readouterr().err.splitlines() == [wanted]


def test_before_the_first_evaluation_nothing_is_to_resume(tmp_path: Path):
    hint = resume_hint("vdn", [], vdn.Args(directory=tmp_path))
    assert hint == "no evaluation was reached, so nothing was saved: start again with palaestra train vdn --overwrite"
    assert resume_hint("pid", ["--grid"], SimpleNamespace()) == "the same command continues: palaestra train pid --grid"


@pytest.mark.check
def test_the_last_line_is_a_command_that_evaluates_the_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    args = vdn.Args(env_id="palaestra/GridSoccer-v0", options=("order=alternating",))
    line = evaluation_hint(args, "runs/last.safetensors", "random")
    assert line == (
        "runs/last.safetensors is the policy; to evaluate it: palaestra eval palaestra/GridSoccer-v0 "
        "--a runs/last.safetensors --b random --set order=alternating"
    )
    as_second = evaluation_hint(args, "runs/last.safetensors", "random", is_second=True)
    assert as_second == line.replace("--a runs/last.safetensors --b random", "--a random --b runs/last.safetensors")
    words = line.partition("palaestra eval ")[2].replace("runs/last.safetensors", "random").split()
    assert command_line(["eval", *words, "--matches", "2"]) == 0
