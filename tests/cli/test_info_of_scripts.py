"""`palaestra info` says which scripts are held out."""


def test_info_says_which_scripts_are_held_out(run):
    printed = run("info", "palaestra/Skirmish-3m-v0", "--json").json()
    assert printed["held_out"] == printed["opponents"][-5:-3] == ["kite", "retreat_heal"]
    assert printed["opponents"][-3:] == ["random", "mix", "held_out"]
    page = run("info", "palaestra/Skirmish-3m-v0").out
    assert "Held out for evaluation: `kite`, `retreat_heal`. For each match `held_out` draws one of these" in page
