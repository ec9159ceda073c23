"""The batch loop: templates whose free names (`reset`, `step`, ...) the linker binds to a game's hooks.

One match is *prepared* (scripts decide, illegal choices become no-ops), *played* (the rules, or another engine between
`command` and `evaluate`), *finished* (horizon, deaths, autoreset) and *observed* (observations and masks). `step_lanes`
is the whole of it for a kernel game, resets included; an engine game calls parts of `engine_lanes`. Arrays: S matches,
W action words, O observations, M masks, all one row a lane.

The names in capitals are compile-time constants of the game; the hooks are bound by
`palaestra.core.compile.linker.link`. What differs between games that share a kernel comes as data: the table of action
words, the first word of each visible slot, and the spans of bytes by which a *sized* game's work records (KO, KM, one a
thread) are packed into the rows that users see. Lanes are counted by unsigned integers because numba guards every
signed index against negative values, a tenth of the time of a small game.
"""

# pyright: reportUndefinedVariable=false
# ruff: noqa: F821, D103, E741  (hooks and constants are bound by the linker; the docstring above explains the pieces)

import numpy as np

from palaestra.core.rng import script_uniform

CALLER, RANDOM, MIX, HELD_OUT = -1, -2, -3, -4
"""Player of a slot: the caller of `step`, the uniform player, or (assigned only) a script drawn for each match, of
those that policies learn with or of those held out."""
NEXT_STEP, SAME_STEP, OFF = 0, 1, 2
RUNNING, RESET_DUE, WAITING, SKIP, REFRESH, ENDED = 0, 1, 2, 3, 4, 5
"""Values of ``s.pending``; the last three are set for the length of a call: pass the lane over, only write what it
shows, or start the next match at once (SAME_STEP)."""
HORIZON = 1
"""Number of the end reason of a match that the horizon truncated."""
TERMINATED, TRUNCATED = 1, 2
PREPARE, EVALUATE, COMMAND, FINISH, START, OBSERVE = 1, 2, 4, 8, 16, 32
"""Parts of `engine_lanes`, to be added up."""


def first_offender(lo, hi, S, words, WI, WF):
    """Number ``lane * words + word`` of the first action outside its space that counts in this decision, or -1.

    A finite real number beyond its bounds becomes the nearer bound where the table of words says so.
    """
    count = len(words) if SIZED else WORDS
    for i in range(np.uint64(lo), np.uint64(hi)):
        for w in range(count):
            word = words[w]
            c = np.uint64(word.column if SIZED else w)
            # False for NaN
            inside = 0 <= WI[i, c] < word.n if word.n > 0 else word.low <= WF[i, c] <= word.high
            if not inside:
                s, agent = S[i], np.uint64(word.agent)
                may_act = not MAY_FORBID or (s.alive[agent] != 0 and s.acting[agent] != 0)
                if s.pending == RUNNING and s.current_player[agent] == CALLER and may_act:
                    if word.clips == 0 or not abs(WF[i, c]) < np.inf:
                        return np.int64(i) * count + w
                    WF[i, c] = word.low if WF[i, c] < word.low else word.high
    return -1


def start_match(s, state_bytes, world, first_word, scratch):
    """Starts a match: clears the record, draws the scripts of ``"mix"`` and ``"held_out"``, calls the rules' reset."""
    state_bytes[CLEARED_FROM:] = 0
    if AT_START:
        for b in range(PARAMETER_BYTES):
            state_bytes[PARAMETERS_AT + b] = state_bytes[NEXT_PARAMETERS_AT + b]
    s.info.winner = -1
    agents = len(first_word) - 1
    for team in range(TEAMS):
        draw = script_uniform(s, 0.0, 1.0)  # always drawn, so that an assignment never shifts the stream
        for a in range(agents):
            if s.team[a] == team:
                s.current_player[a] = np.int64(draw * MIXED) if s.assigned_player[a] == MIX else s.assigned_player[a]
                if MIXED < SCRIPTS and s.assigned_player[a] == HELD_OUT:  # pruned where none is held out
                    s.current_player[a] = MIXED + np.int64(draw * (SCRIPTS - MIXED))
    for a in range(agents):
        s.alive[a] = 1
        s.acting[a] = 1
    reset(s, world)
    if HAS_LOAD:
        load(s, world, scratch)
    for a in range(agents):
        s.acting[a] = s.acting[a] and s.alive[a]


def read_int32(row, at):
    """A little-endian int32 in a row of int8."""
    value = int(row[at + 3]) << 24
    for b in range(3):
        value |= (int(row[at + b]) & 255) << (8 * b)
    return value


def write_int32(row, at, value):
    """Writes a little-endian int32 into a row of int8."""
    for b in range(4):
        byte = (value >> (8 * b)) & 255
        row[at + b] = byte - 256 if byte > 127 else byte


def candidate_count(word, mask_bytes):
    """How many alternatives a list of candidates holds; what was offered beyond its room is counted but not kept."""
    return min(max(read_int32(mask_bytes, word.mask_offset), 0), word.candidates)


def is_legal(word, alternative, mask_bytes):
    """Whether a choice may be made now."""
    if HAS_CANDIDATES and word.candidates > 0:
        for j in range(candidate_count(word, mask_bytes)):
            if read_int32(mask_bytes, word.mask_offset + 4 + 4 * j) == alternative:
                return True
        return False
    return mask_bytes[word.mask_offset + alternative] != 0


def random_choice(word, draw, mask_bytes):
    """The legal alternative number ``draw`` of [0, 1); the no-op if there is none."""
    if HAS_CANDIDATES and word.candidates > 0:
        count = candidate_count(word, mask_bytes)
        return read_int32(mask_bytes, word.mask_offset + 4 + 4 * np.int64(draw * count)) if count > 0 else word.noop
    legal_count = 0
    for j in range(word.n):
        legal_count += mask_bytes[word.mask_offset + j]
    chosen = np.int64(draw * legal_count)
    for j in range(word.n):
        if mask_bytes[word.mask_offset + j]:
            if chosen == 0:
                return j
            chosen -= 1
    return word.noop


def random_action(s, agent, words, first_word, wi, wf, mask_bytes):
    """Uniform over the legal alternatives and the boxes of one slot."""
    for w in range(first_word[agent], first_word[agent + 1]):
        word = words[w]
        c = word.column if SIZED else w
        draw = script_uniform(s, 0.0, 1.0)
        if word.n == 0:
            wf[c] = word.low + draw * (word.high - word.low)
        elif HAS_LEGAL:
            wi[c] = random_choice(word, draw, mask_bytes)
        else:
            wi[c] = np.int64(draw * word.n)


def apply_noop(w, words, wi, wf):
    """Replaces one word of an action by its no-op."""
    c = words[w].column if SIZED else w
    if words[w].n > 0:
        wi[c] = words[w].noop
    else:
        wf[c] = words[w].noop_value


def prepare(s, world, words, first_word, actions, wi, wf, mask_bytes, rewards, left, scratch):
    """Calls the scripts, replaces illegal choices by no-ops, initialises the counters and rewards of this step."""
    if SCRIPTS_PLAY:
        planned = 0
        for a in range(len(first_word) - 1):
            which = s.current_player[a]
            if which != CALLER and s.alive[a] and s.acting[a]:
                if HAS_PLAN and which >= 0:
                    bit = 1 << (s.team[a] * SCRIPTS + which)
                    if planned & bit == 0:
                        planned |= bit
                        plan(s, world, s.team[a], which, scratch)
                for w in range(first_word[a], first_word[a + 1]):
                    apply_noop(w, words, wi, wf)
                is_random = which == RANDOM
                if STRENGTH_IS_SHARE and not is_random and s.strength[a] < 1.0:
                    is_random = script_uniform(s, 0.0, 1.0) >= s.strength[a]
                if is_random:
                    random_action(s, a, words, first_word, wi, wf, mask_bytes)
                else:
                    script(s, world, a, which, actions, scratch)
    if MAY_FORBID:
        for w in range(len(words) if SIZED else WORDS):
            word = words[w]
            agent = np.uint64(word.agent)
            free = s.alive[agent] and s.acting[agent]
            c = word.column if SIZED else w
            if HAS_LEGAL and free and word.n > 0 and not is_legal(word, wi[c], mask_bytes):
                s.info.illegal[agent] += 1
                free = 0
            if not free:
                apply_noop(w, words, wi, wf)
    for a in range(AGENTS):
        rewards[a] = 0.0
        if MAY_FORBID:
            left[a] = s.alive[a] != 0
    s.steps += 1


def play_periods(s, world, actions, rewards, scratch):
    """One decision of a game with a compiled engine."""
    result = 0
    for _ in range(PERIODS):
        command(s, world, actions, scratch)
        advance(s, world, scratch)
        result = np.int64(evaluate(s, world, rewards, scratch))
        if result != 0:
            break
    return result


def finish_step(s, result, left):
    """Ends a step: agents that left, and the horizon if no rule ended the match. Returns 0 while it goes on."""
    if MAY_FORBID:  # else no agent ever leaves
        for a in range(AGENTS):
            left[a] = left[a] and not s.alive[a]
            s.acting[a] = s.acting[a] and s.alive[a]
    if result != 0 or s.steps < s.parameters.horizon:
        return result
    s.info.end_reason = HORIZON
    return TRUNCATED


def pack(spans, work, row, started):
    """Copies the visible bytes of a work record into a row; what is fixed during a match only when it has started.

    A span is read once, as the compiler must suppose that the row overlaps it; unsigned indices let it copy many bytes
    at a time. Together that is a half of the time of a game of 40 agents.
    """
    for k in range(len(spans)):
        span = spans[k]
        if started or not span.at_reset:
            source, target = np.uint64(span.source), np.uint64(span.target)
            for b in range(np.uint64(span.length)):
                row[target + np.uint64(b)] = work[source + np.uint64(b)]


def clear(spans, record_bytes, started):
    """Zeroes the visible bytes of a record, likewise."""
    for k in range(len(spans)):
        span = spans[k]
        if started or not span.at_reset:
            record_bytes[span.source : span.source + span.length] = 0


def keep_final(i, OB, MB, FOB, FMB):
    """Keeps what a finished match last showed."""
    for b in range(OB.shape[1]):
        FOB[i, b] = OB[i, b]
    if HAS_LEGAL:
        for b in range(MB.shape[1]):
            FMB[i, b] = MB[i, b]


def write_match_observations(s, world, started, spans, row_bytes, row, work_bytes, work, scratch):
    """Writes the observations of one match."""
    record_bytes = work_bytes if SIZED else row_bytes
    record = work if SIZED else row
    if SIZED or RESET_FIELDS or OBSERVATION_BYTES == 0:
        clear(spans, record_bytes, started)
    else:
        for b in range(np.uint64(OBSERVATION_BYTES)):  # a constant: a few stores in a small game
            record_bytes[np.uint64(b)] = 0
    observe(s, world, record, scratch)
    if RESET_FIELDS and started:
        observe_reset(s, world, record, scratch)
    if SIZED:
        pack(spans, record_bytes, row_bytes, started)


def write_match_masks(s, world, words, spans, row_bytes, row, work_bytes, work):
    """Writes the masks of one match."""
    if SIZED:
        work_bytes[:] = 0
    elif HAS_CANDIDATES:
        clear_masks(words, row_bytes)
    else:
        row_bytes[:] = 0
    legal(s, world, work if SIZED else row)
    if SIZED:
        pack(spans, work_bytes, row_bytes, True)
    for w in range(len(words) if SIZED else WORDS):
        word = words[w]
        if word.n > 0:
            agent = np.uint64(word.agent)
            is_active = s.alive[agent] and s.acting[agent]
            if HAS_CANDIDATES and word.candidates > 0:
                finish_candidates(word, is_active, row_bytes)
            elif not is_active:  # nothing but the no-op
                row_bytes[word.mask_offset : word.mask_offset + word.n] = 0
                row_bytes[word.mask_offset + word.noop] = 1


def clear_masks(words, mask_bytes):
    """Zeroes dense masks and the counts of lists; places of a list are written once, by `finish_candidates`."""
    for w in range(WORDS):
        word = words[w]
        mask_bytes[word.mask_offset : word.mask_offset + (4 if word.candidates > 0 else word.n)] = 0


def finish_candidates(word, is_active, mask_bytes):
    """Ends a list of candidates: ids beyond it are -1; a slot that is not asked has its no-op alone."""
    count = candidate_count(word, mask_bytes)
    if not is_active:
        count = 1
        write_int32(mask_bytes, word.mask_offset + 4, word.noop)
        write_int32(mask_bytes, word.mask_offset, 1)
    first = word.mask_offset + 4
    mask_bytes[first + 4 * count : first + 4 * word.candidates] = -1


def clear_rewards(i, R, LEFT):
    for a in range(AGENTS):
        R[i, a] = 0.0
        LEFT[i, a] = False


def step_lanes(  # noqa: C901 (one more level of calls would add a tenth to the time that each game takes to compile)
    lo, hi, check, mode, thread,
    S, SB, world, words, first_word, A, WI, WF, R, TERM, TRUNC, WINNER, REASON, LEFT, SCRATCH,
    O, OB, M, MB, FOB, FMB, FI, KO, KOB, KM, KMB, spans, mask_spans,
):  # fmt: skip
    """One decision of the lanes [lo, hi). Returns -1, or the first offending action (then nothing has moved).

    Matches that end under SAME_STEP start anew in a second pass over the lanes, after what they last showed was kept:
    a second place that calls the rules would be compiled a second time.
    """
    if check:
        offender = first_offender(lo, hi, S, words, WI, WF)
        if offender >= 0:
            return offender
    scratch = SCRATCH[thread]
    ended, restart = 0, False
    while True:
        for i in range(np.uint64(lo), np.uint64(hi)):
            s = S[i]
            task = s.pending
            if task == RUNNING:
                if restart:
                    continue
                prepare(s, world, words, first_word, A[i], WI[i], WF[i], MB[i], R[i], LEFT[i], scratch)
                result = finish_step(s, np.int64(play(s, world, A[i], R[i], scratch)), LEFT[i])
                TERM[i] = result == TERMINATED
                TRUNC[i] = result == TRUNCATED
                WINNER[i] = -1
                REASON[i] = 0
                if result != 0:
                    WINNER[i] = s.info.winner
                    REASON[i] = s.info.end_reason
                    s.pending = RESET_DUE if mode == NEXT_STEP else WAITING if mode == OFF else ENDED
                    ended += mode == SAME_STEP
            elif restart:
                if task != ENDED:
                    continue
                keep_final(i, OB, MB, FOB, FMB)
                FI[i] = s.info
            elif task != REFRESH:
                if task == SKIP:
                    continue
                clear_rewards(i, R, LEFT)
                if task == WAITING:
                    continue
                TERM[i] = False
                TRUNC[i] = False
                WINNER[i] = -1
                REASON[i] = 0
            if task in (RESET_DUE, ENDED):
                start_match(s, SB[i], world, first_word, scratch)
            row = np.uint64(0) if SIZED else i
            write_match_observations(s, world, task != RUNNING, spans, OB[i], O[row], KOB[thread], KO[thread], scratch)
            if HAS_LEGAL:
                write_match_masks(s, world, words, mask_spans, MB[i], M[row], KMB[thread], KM[thread])
        if ended == 0 or restart:
            return -1
        restart = True


def result_lanes(
    lo, hi, check, plays, thread, mask_rows,
    S, SB, world, words, first_word, A, WI, WF, R, TERM, TRUNC, WINNER, REASON, LEFT, SCRATCH,
    O, OB, M, MB, FOB, FMB, FI, KO, KOB, KM, KMB, spans, mask_spans,
):  # fmt: skip
    """One decision without outputs of lanes that wait for a reset when their match is over; results as of `step_lanes`.

    Lane i is held to the masks in row ``mask_rows[i]``. The call before the decision, with ``plays`` False, writes
    those of running lanes that have none (-1): another thread's lanes may be held to them. A driver of its own, as an
    argument or a branch more in `step_lanes` costs a small game up to a quarter of its speed.
    """
    if check:
        offender = first_offender(lo, hi, S, words, WI, WF)
        if offender >= 0:
            return offender
    for i in range(np.uint64(lo), np.uint64(hi)):
        s = S[i]
        if not plays:
            if s.pending == RUNNING and mask_rows[i] < 0:
                if HAS_LEGAL:
                    row = np.uint64(0) if SIZED else i
                    write_match_masks(s, world, words, mask_spans, MB[i], M[row], KMB[thread], KM[thread])
                mask_rows[i] = i
        elif s.pending == RUNNING:
            held_to = MB[np.uint64(mask_rows[i])]
            prepare(s, world, words, first_word, A[i], WI[i], WF[i], held_to, R[i], LEFT[i], SCRATCH[thread])
            result = finish_step(s, np.int64(play(s, world, A[i], R[i], SCRATCH[thread])), LEFT[i])
            TERM[i] = result == TERMINATED
            TRUNC[i] = result == TRUNCATED
            WINNER[i] = s.info.winner if result != 0 else -1
            REASON[i] = s.info.end_reason if result != 0 else 0
            if result != 0:
                s.pending = WAITING
            mask_rows[i] = -1
        elif s.pending != SKIP:
            clear_rewards(i, R, LEFT)
    return -1


def check_lanes(lo, hi, S, words, WI, WF):
    """Number of the first action outside its space, or -1."""
    return first_offender(lo, hi, S, words, WI, WF)


def engine_lanes(  # noqa: C901 (one function: each driver is linked and optimised with all that it calls)
    lo, hi, mode, thread, stage, results, shown,
    S, SB, world, words, first_word, A, WI, WF, R, TERM, TRUNC, WINNER, REASON, LEFT, SCRATCH,
    O, OB, M, MB, FOB, FMB, FI, KO, KOB, KM, KMB, spans, mask_spans, parts,
):  # fmt: skip
    """Parts of a decision of an engine game, in this order; Python calls the engine between them.

    ``stage`` says what each lane does in this decision (RUNNING, RESET_DUE, WAITING, SKIP, ENDED), ``results`` what its
    rules returned, ``shown`` what it is about to show: 0 nothing, 1 as after a decision, 2 as after a reset.

    Returns the count of the last part that counts: PREPARE the first offending action (then nothing has moved), or -1
    minus the number of matches that play; EVALUATE how many still play; FINISH how many matches are to start.
    """
    counted, scratch = np.int64(0), SCRATCH[thread]
    if parts & PREPARE:
        offender = first_offender(lo, hi, S, words, WI, WF)
        if offender >= 0:
            return offender
        counted = -1
        for i in range(np.uint64(lo), np.uint64(hi)):
            s = S[i]
            stage[i] = s.pending
            results[i] = 0
            if s.pending == RUNNING:
                counted -= 1
                prepare(s, world, words, first_word, A[i], WI[i], WF[i], MB[i], R[i], LEFT[i], scratch)
                continue
            clear_rewards(i, R, LEFT)
            if s.pending == RESET_DUE:
                TERM[i] = False
                TRUNC[i] = False
                WINNER[i] = -1
                REASON[i] = 0
    if parts & EVALUATE:
        counted = 0
        for i in range(np.uint64(lo), np.uint64(hi)):
            if stage[i] == RUNNING and results[i] == 0:
                results[i] = np.int64(evaluate(S[i], world, R[i], scratch))
                counted += results[i] == 0
    if parts & COMMAND:
        for i in range(np.uint64(lo), np.uint64(hi)):
            if stage[i] == RUNNING and results[i] == 0:
                command(S[i], world, A[i], scratch)
    if parts & FINISH:
        counted = 0
        for i in range(np.uint64(lo), np.uint64(hi)):
            shown[i] = stage[i] != RESET_DUE and stage[i] != SKIP
            counted += stage[i] == RESET_DUE
            if stage[i] != RUNNING:
                continue
            s = S[i]
            result = finish_step(s, results[i], LEFT[i])
            TERM[i] = result == TERMINATED
            TRUNC[i] = result == TRUNCATED
            WINNER[i] = -1
            REASON[i] = 0
            if result != 0:
                WINNER[i] = s.info.winner
                REASON[i] = s.info.end_reason
                if mode == SAME_STEP:
                    stage[i] = ENDED
                    counted += 1
                else:
                    s.pending = RESET_DUE if mode == NEXT_STEP else WAITING
    if parts & START:
        for i in range(np.uint64(lo), np.uint64(hi)):
            if stage[i] == ENDED:
                keep_final(i, OB, MB, FOB, FMB)
                FI[i] = S[i].info
                stage[i] = RESET_DUE
            if stage[i] == RESET_DUE:
                start_match(S[i], SB[i], world, first_word, scratch)
                shown[i] = 2
    if parts & OBSERVE:
        for i in range(np.uint64(lo), np.uint64(hi)):
            if shown[i]:
                s, row = S[i], np.uint64(0) if SIZED else i
                write_match_observations(
                    s, world, shown[i] == 2, spans, OB[i], O[row], KOB[thread], KO[thread], scratch
                )
                if HAS_LEGAL:
                    write_match_masks(s, world, words, mask_spans, MB[i], M[row], KMB[thread], KM[thread])
                shown[i] = 0
    return counted


def state_lanes(lo, hi, thread, S, world, STATE, SCRATCH):
    """Writes the global state of each lane."""
    for i in range(np.uint64(lo), np.uint64(hi)):
        global_state(S[i], world, STATE[i])
