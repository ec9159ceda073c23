"""Skirmish: battles of small armies whose numbers of agents and actions change during a match.

What the units can do is a ruleset (`palaestra.skirmish.ruleset`), where they meet is a map
(`palaestra.skirmish.maps`). Both are versioned files, bundled ones or your own. Distances are in cells, times in
seconds of 16 loops; a decision lasts 8 loops. Red is the team that learns, blue follows an order. The rules are in
`palaestra.skirmish.battle`: a map of yours becomes an environment by
``palaestra.register("mine/Crossing-v0", "palaestra.skirmish.battle:game", map="crossing.json")``.
"""
