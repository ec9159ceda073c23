"""Faults of rules: a line of a test game is changed."""

from __future__ import annotations

from testing.planting import changed_rule

changed_rule(
    "observing changes the match",
    "Raid",
    "            guard.node, guard.energy = s.node[a], s.energy[a]",
    "            guard.node, guard.energy = s.node[a], s.energy[a]\n            s.energy[a] *= 0.999",
)
changed_rule(
    "writing masks changes the match",
    "Raid",
    "        k = INDEX[a]\n        for number in range(1 + EXITS):\n            moves",
    "        k = INDEX[a]\n        s.energy[a] *= 0.999\n        for number in range(1 + EXITS):\n            moves",
)
changed_rule(
    "writing the global state changes the match",
    "Raid",
    "    out[2 * AGENTS] = s.phase",
    "    out[2 * AGENTS] = s.phase\n    s.energy[0] *= 0.999",
)
changed_rule(
    "a script draws from the stream of the rules",
    "Raid",
    "    move = 1 + script_integer(s, EXITS)",
    "    move = 1 + int(uniform(s, 0.0, 1.0) * EXITS)",
)
changed_rule(
    "a script reads what a teammate does",
    "Raid",
    "    move = 1 + script_integer(s, EXITS)\n",
    "    move = 1 + script_integer(s, EXITS)\n    if slot > 0 and actions.scout[0].move > 0:\n        move = 1\n",
)
changed_rule(
    "a script moves its own body",
    "Raid",
    "    if which == IDLER:\n        return",
    "    if which == IDLER:\n        s.node[slot] = 1\n        return",
)
changed_rule(
    "one of three scripts chooses beyond its space",
    "Raid",
    "    if which == IDLER:\n        return",
    "    if which == IDLER:\n        actions.guard[1].effort = 0.95 if IS_GUARD[slot] else 0.1\n        return",
)
changed_rule(
    "the loser of a double score pays too little",
    "Raid",
    "rewards[a] = points if TEAM[a] == RED else -points",
    "rewards[a] = points if TEAM[a] == RED else max(-points, -1.0) * (1.0 if s.steps < 12 else 0.9)",
)
changed_rule(
    "the dead are not paid with their team",
    "Raid",
    "rewards[a] = points if TEAM[a] == RED else -points",
    "rewards[a] = 0.0 if s.energy[a] <= 0.0 else points if TEAM[a] == RED else -points",
)
changed_rule(
    "a winner that is no team",
    "Raid",
    "s.info.winner, s.info.end_reason = team, SCORED",
    "s.info.winner, s.info.end_reason = team + 1, SCORED",
)
changed_rule(
    "an end reason while the match goes on",
    "Raid",
    "    return s.info.end_reason != 0",
    "    return s.info.end_reason == SCORED",
)
changed_rule(
    "a match ends without a reason",
    "Raid",
    "    return s.info.end_reason != 0",
    "    return s.info.end_reason != 0 or s.steps >= 33",
)
changed_rule(
    "time left is told for the default horizon alone",
    "Raid",
    "max(0.0, 1.0 - s.steps / s.parameters.horizon)",
    "1.0 - s.steps / 40.0",
)
changed_rule(
    "not a number where a parameter is 0",
    "Raid",
    "            guard.node, guard.energy = s.node[a], s.energy[a]",
    "            guard.node, guard.energy = s.node[a], s.energy[a] / s.parameters.damage * s.parameters.damage",
)
changed_rule(
    "a guard without energy may do nothing at all",
    "Raid",
    "            mask.guard[k].trigger[0] = 1",
    "            mask.guard[k].trigger[0] = s.energy[a] > 0.4",
)
changed_rule(
    "a mask that is 2",
    "Raid",
    "moves[number] = number == 0 or exit_node(world, s.node[a], number) >= 0",
    "moves[number] = 2 if number == 0 else exit_node(world, s.node[a], number) >= 0",
)
changed_rule(
    "the dead come back",
    "Raid",
    "    if s.steps == s.parameters.arrival:\n        s.alive[LATE] = 1",
    "    if s.steps == s.parameters.arrival:\n        s.alive[LATE] = 1"
    "\n    if s.steps == 25:\n        s.alive[2], s.energy[2] = 1, 0.5",
)
changed_rule(
    "work memory of another lane is read",
    "Raid",
    "        scratch.damage[a] = 0.0\n",
    "        if a != LATE:\n            scratch.damage[a] = 0.0\n",
)
changed_rule(
    "compiled and interpreted numbers differ",
    "Raid",
    "        s.energy[a] = max(0.0, s.energy[a] - scratch.damage[a])",
    "        s.energy[a] = np.float32(max(0.0, s.energy[a] - scratch.damage[a])) * 0.97",
)
changed_rule(
    "the rules set the clock back",
    "Raid",
    "            s.info.goals[team] += 1\n",
    "            s.info.goals[team] += 1\n            s.steps = 0\n",
)
changed_rule(
    "a draw from outside the lane's streams",
    "Raid",
    "        draw = uniform(s, 0.0, 1.0)  # always drawn",
    "        draw = np.random.random()",
)
changed_rule(
    "a codec writes a character beyond its space",
    "Raid",
    '        return f"{words}, {turn} to move"',
    '        return f"{words}, {turn} to move" + ("!" if view.team["goals"] > 0 else "")',
)
changed_rule(
    "an info beyond its bounds",
    "Raid",
    "            s.info.strikes[a] += 1\n",
    "            s.info.strikes[a] += 400\n",
)
changed_rule(
    "the rules forget that an illegal choice was counted",
    "Raid",
    "    points = 0.0\n",
    "    points = 0.0\n    s.info.illegal[0] = 0\n",
)
changed_rule(
    "a plan that is not made anew reads that of another lane",
    "Orchard",
    "    scratch.token[team] = 100 * (which + 1) + s.steps",
    "    if s.steps % 2 == 0:\n        scratch.token[team] = 100 * (which + 1) + s.steps + int(10 * s.drawn[0])",
)
changed_rule(
    "an agent is paid after it has left",
    "Orchard",
    "        if s.steps == 1 and s.parameters.leaver == a:",
    "        if not s.alive[a]:\n            rewards[a] = 1.0\n        if s.steps == 1 and s.parameters.leaver == a:",
)
changed_rule(
    "an offer beyond the choice, in matches with a certain parameter",
    "Orchard",
    "                    offer(loads, 5000 + extra)",
    "                    offer(loads, GOODS + extra)",
)
changed_rule(
    "a rule's end told as a truncation's, in matches with a certain parameter",
    "Orchard",
    "            s.info.end_reason = SOLD",
    "            s.info.end_reason = SPOILT",
)
changed_rule(
    "a mirror that forgets the velocity",
    "Pong",
    '    states["ball_velocity"][:, 0] *= -1.0\n',
    "",
)
