"""Ensembles of language models: experts write one text together, agents weight them.

The page and the factory are in `palaestra.games.ensemble.llm_ensemble`, the rules in
`palaestra.games.ensemble.ensemble_rules`.
"""

from palaestra.game import Family, Page, Preset, presets

FAMILY = Family(
    "ensemble",
    rows=presets(
        "palaestra.games.ensemble.llm_ensemble:game",
        Preset("palaestra/LLMEnsemble-v0", "one agent weights the language models that write a text together"),
        Preset(
            "palaestra/LLMEnsemble-Multi-v0", "each language model is weighted by an agent of its own", agents="experts"
        ),
        page=Page("LLMEnsemble", "weight language models that write one text together"),
    ),
    order=8,
    speed=[(f"palaestra/LLMEnsemble{agents}-v0", "oracle", 300e3) for agents in ("", "-Multi")],
)
