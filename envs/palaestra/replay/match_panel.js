// The side panel of a match page: agents, texts, events, and what is told of the match.
const matchPanel = (() => {
"use strict";

const { byId, make, shorten, colorText } = matchPictures;
const { MARK_SIGNS, formatNumber, formatReward, formatValue, rowStarts } = matchPlot;
const MARKS_LISTED = 2000;
const PIECES_LISTED = 2000; // texts of a transcript
const OPTIONS_LISTED = 64; // alternatives of a choice for which a player computed numbers

/** Tabs by click and by arrow keys. */
function setUpTabs(onChange) {
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  const select = (tab) => {
    for (const other of tabs) {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
      byId(other.getAttribute("aria-controls")).hidden = other !== tab;
    }
    onChange();
  };
  for (const tab of tabs) {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.stopPropagation();
      const shown = tabs.filter((other) => !other.hidden);
      const next = shown[(shown.indexOf(tab) + step + shown.length) % shown.length];
      select(next);
      next.focus();
    });
  }
  select(tabs[0]);
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A term with its description; returns the element of the description. */
function addTerm(list, name, about) {
  const term = make("dt", "stranger", name);
  term.title = about ? `${name}: ${about}`.slice(0, 500) : name.slice(0, 500);
  const description = make("dd");
  list.append(term, description);
  return description;
}

/** The list of the agents, and what one of them did and observes. */
class AgentPanel {
  constructor(header, blocks, rewards) {
    Object.assign(this, { header, blocks, rewards });
    this.actionStarts = rowStarts(header.actions, (field) => field.size);
    this.optionStarts = rowStarts(header.actions, (field) => field.options?.length ?? 0);
    this.fieldStarts = rowStarts(header.fields, (field) => field.size);
    this.outputWidth = 0;
    this.outputs = header.outputs.map((output) => {
      const start = this.outputWidth;
      this.outputWidth += output.agents.length * output.size;
      return { ...output, start };
    });
    this.frame = 0;
    this.kept = 0;
    this.pointed = null;
    this.rows = [];
    this.totals = [];
    this.addRows();
  }

  addRows() {
    const list = byId("agent_list");
    const columns = make("div", "row columns");
    columns.append(make("span"), make("span"), make("span", "", "reward"), make("span", "", "sum"));
    list.append(columns);
    const listed = new Set(this.header.teams.flatMap((team) => team.agents));
    const others = this.header.agents.map((_, agent) => agent).filter((agent) => !listed.has(agent));
    const groups = [...this.header.teams];
    if (others.length > 0) groups.push({ name: "no team", color: [128, 145, 161], agents: others });
    for (const team of groups) {
      const [heading, reward, sum] = this.makeRow("div", "row heading", team.name, team.color);
      list.append(heading);
      const paid = this.rewards.teams[this.header.teams.indexOf(team)];
      if (paid) this.totals.push({ paid, reward, sum });
      for (const agent of team.agents) list.append(this.makeAgentRow(agent, team.color));
    }
  }

  makeRow(tag, className, name, color) {
    const row = make(tag, className);
    const swatch = make("span", "swatch");
    swatch.style.setProperty("--team", colorText(color));
    const label = make("span", "name stranger", name);
    label.title = name.slice(0, 500);
    const [reward, sum] = [make("span"), make("span")];
    row.append(swatch, label, reward, sum);
    return [row, reward, sum];
  }

  makeAgentRow(agent, color) {
    const [row, reward, sum] = this.makeRow("button", "row", this.header.agents[agent], color);
    row.type = "button";
    row.dataset.agent = agent;
    this.rows[agent] = { row, reward, sum };
    row.addEventListener("click", () => {
      this.kept = agent;
      this.update(this.frame);
    });
    const point = (value) => () => {
      this.pointed = value;
      this.update(this.frame);
    };
    for (const name of ["pointerenter", "focus"]) row.addEventListener(name, point(agent));
    for (const name of ["pointerleave", "blur"]) row.addEventListener(name, point(null));
    return row;
  }

  update(frame) {
    this.frame = frame;
    if (byId("tab_agents_panel").hidden) return;
    const shown = this.pointed ?? this.kept;
    const at = frame * this.header.agents.length;
    this.rows.forEach(({ row, reward, sum }, agent) => {
      row.classList.toggle("out", this.blocks.alive?.[at + agent] === 0);
      row.classList.toggle("shown", agent === shown);
      row.setAttribute("aria-pressed", String(agent === this.kept));
      setText(reward, formatReward(this.rewards.rewards[at + agent]));
      setText(sum, formatNumber(this.rewards.sums[at + agent]));
    });
    for (const { paid, reward, sum } of this.totals) {
      setText(reward, formatReward(paid.rewards[frame]));
      setText(sum, formatNumber(paid.sums[frame]));
    }
    if (this.header.agents.length > 0) this.updateDetail(shown, frame);
  }

  updateDetail(agent, frame) {
    if (this.detailAgent !== agent) {
      this.detailAgent = agent;
      this.updates = [];
      byId("agent_detail").replaceChildren(...this.makeDetail(agent));
    }
    for (const change of this.updates) change(frame);
  }

  /** The elements of one agent; ``this.updates`` gets a function of the frame for each changing one. */
  makeDetail(agent) {
    const name = make("h2", "stranger", this.header.agents[agent]);
    const state = make("div", "muted");
    this.updates.push((frame) => setText(state, this.describeState(agent, frame)));
    const parts = [name, state];
    if (this.blocks.turns) parts.push(...this.makeTurn(agent));
    if (this.blocks.actions && this.header.actions[agent].length > 0) {
      parts.push(make("h3", "", "Action that led to this frame"), this.makeActions(agent));
    }
    const outputs = this.blocks.outputs ? this.outputs.filter((output) => output.agents.includes(agent)) : [];
    if (outputs.length > 0) parts.push(make("h3", "", "Computed by the player for that action"));
    for (const output of outputs) parts.push(this.makeOutput(agent, output));
    if (this.blocks.legal && this.header.actions[agent].some((field) => field.options)) {
      parts.push(make("h3", "", "Not allowed in this frame"), this.makeForbidden(agent));
    }
    if (this.blocks.observations && this.header.fields[agent].length > 0) {
      parts.push(make("h3", "", "Observation"), this.makeObservation(agent));
    }
    return parts;
  }

  describeState(agent, frame) {
    const at = frame * this.header.agents.length + agent;
    const team = this.header.teams.find((other) => other.agents.includes(agent));
    const alive = this.blocks.alive?.[at] === 0 ? "out of the match" : "in the match";
    const acting = this.blocks.acting?.[at] === 1 ? ", acts" : "";
    return `${team ? `team ${shorten(team.name, 60)}, ` : ""}${alive}${acting}`;
  }

  /** The turn that led to the frame, as it was written. */
  makeTurn(agent) {
    const [title, turn] = [make("h3", "", "Turn that led to this frame"), make("pre", "stranger written")];
    this.updates.push((frame) => {
      const number = this.blocks.turns[frame * this.header.agents.length + agent];
      title.hidden = turn.hidden = number === 0;
      if (number > 0) setText(turn, this.header.strings[number - 1]);
    });
    return [title, turn];
  }

  makeActions(agent) {
    const list = make("dl");
    let [start, option] = [this.actionStarts[agent], this.optionStarts[agent]];
    for (const field of this.header.actions[agent]) {
      const value = make("span", "stranger");
      const first = option;
      const name = (x, frame) => this.optionName(field, first, x, Math.max(0, frame - 1)); // as it was decided
      addTerm(list, field.name, field.about).append(value);
      this.updates.push(this.valueUpdate(value, this.blocks.actions, this.actionStarts.at(-1), start, field, 16, name));
      start += field.size;
      option += field.options?.length ?? 0;
    }
    return list;
  }

  /** What alternative x of a choice does as the match stands in a frame; empty for one that is not there. */
  optionName(field, first, x, frame) {
    const names = this.blocks.option_names;
    if (!names) return field.options[x] ?? String(x);
    const number = names[frame * this.optionStarts.at(-1) + first + x];
    return number > 0 ? this.header.strings[number - 1] : "";
  }

  /** A function that writes the values of a field in a frame: alternatives by name, numbers by part, row and column. */
  valueUpdate(element, values, rowSize, start, field, limit = 16, name = null) {
    const columns = field.columns ?? (field.parts?.length > 0 ? [{ ...field, name: "", size: field.parts.length }] : []);
    const labels = columns.flatMap((column) => Array.from({ length: column.size }, (_, k) => (
      { ...column, noise: field.noise, label: [k === 0 ? column.name : "", column.parts?.[k]].filter(Boolean).join(" ") })));
    const labelled = (x, k) => {
      const label = labels[k % labels.length];
      const isFirst = k % labels.length === 0 && field.size > labels.length;
      const row = isFirst ? `${k > 0 ? "\n" : ""}[${k / labels.length}] ` : "";
      return `${row}${label.label ? `${label.label} ` : ""}${this.valueText(x, label)}`;
    };
    return (frame) => {
      const from = frame * rowSize + start;
      const row = Array.from(values.subarray(from, from + Math.min(field.size, limit)));
      const isNamed = name !== null && field.options;
      const words = labels.length > 0 ? row.map(labelled) : row.map((x) => (
        isNamed && Number.isFinite(x) ? name(x, frame) || `${field.name} ${x}` : formatValue(x, field)));
      const unit = !isNamed && labels.length === 0 && row.some(Number.isFinite) && field.unit ? ` ${field.unit}` : "";
      setText(element, words.join(", ") + (field.size > limit ? ", \u2026" : "") + unit);
    };
  }

  valueText(x, field) {
    return formatValue(x, field) + (field.unit && Number.isFinite(x) ? ` ${field.unit}` : "");
  }

  /** A number, or a bar for each alternative: from 0 to 1, or from the lowest to the highest of them. */
  makeOutput(agent, { name, agents, size, start }) {
    const list = make("dl");
    const first = start + agents.indexOf(agent) * size;
    const value = make("span", "stranger");
    addTerm(list, name).append(value);
    if (size === 1) {
      this.updates.push(this.valueUpdate(value, this.blocks.outputs, this.outputWidth, first, { size, unit: "" }));
      return list;
    }
    const field = this.header.actions[agent][0];
    const isNamed = field?.options?.length >= size;
    const optionOf = (k, frame) => (isNamed ? this.optionName(field, this.optionStarts[agent], k, Math.max(0, frame - 1))
      || `${field.name} ${k}` : String(k));
    const bars = Array.from({ length: Math.min(size, OPTIONS_LISTED) }, () => {
      const [bar, text] = [make("meter"), make("span")];
      const description = addTerm(list, " ");
      description.append(bar, text);
      return { bar, text, term: description.previousSibling };
    });
    this.updates.push((frame) => {
      const from = frame * this.outputWidth + first;
      const row = this.blocks.outputs.subarray(from, from + size);
      const known = row.filter(Number.isFinite);
      const [lowest, highest] = [Math.min(...known), Math.max(...known)];
      const [low, high] = lowest >= 0 && highest <= 1 ? [0, 1] : [lowest, highest];
      setText(value, known.length > 0 ? `highest: ${optionOf(row.indexOf(highest), frame)}` : "none");
      bars.forEach(({ bar, text, term }, k) => {
        setText(term, optionOf(k, frame));
        term.title = bar.ariaLabel = term.textContent;
        bar.value = Number.isFinite(row[k]) && high > low ? (row[k] - low) / (high - low) : 0;
        setText(text, Number.isFinite(row[k]) ? formatNumber(row[k], 3) : "");
      });
    });
    return list;
  }

  makeForbidden(agent) {
    const list = make("dl");
    let start = this.optionStarts[agent];
    for (const field of this.header.actions[agent]) {
      if (!field.options) continue;
      const options = field.options.map(() => make("s", "option stranger"));
      const none = make("span", "muted", "all allowed");
      addTerm(list, field.name, field.about).append(none, ...options);
      const first = start;
      this.updates.push((frame) => {
        const from = frame * this.optionStarts.at(-1) + first;
        options.forEach((option, k) => {
          const name = this.optionName(field, first, k, frame);
          option.hidden = this.blocks.legal[from + k] === 1 || name === "";
          setText(option, name);
        });
        none.hidden = options.some((option) => !option.hidden);
      });
      start += field.options.length;
    }
    return list;
  }

  makeObservation(agent) {
    const list = make("dl");
    let start = this.fieldStarts[agent];
    for (const field of this.header.fields[agent]) {
      const description = addTerm(list, field.name, field.about);
      const short = make("span", "stranger");
      const write = (element, limit) => this.valueUpdate(
        element, this.blocks.observations, this.fieldStarts.at(-1), start, field, limit);
      const few = field.columns?.reduce((sum, column) => sum + column.size, 0) ?? 8; // of a table the first row
      this.updates.push(write(short, few));
      if (field.size <= few) description.append(short);
      else description.append(this.makeFold(short, write, field.size));
      start += field.size;
    }
    return list;
  }

  /** Many values: the first of them, and all once it is opened. */
  makeFold(short, write, size) {
    const fold = make("details");
    const summary = make("summary");
    const all = make("div", "values");
    summary.append(short, make("span", "muted", ` (${size} values)`));
    fold.append(summary, all);
    const writeAll = write(all, 4096);
    const change = (frame) => { if (fold.open) writeAll(frame); };
    this.updates.push(change);
    fold.addEventListener("toggle", () => change(this.frame));
    return fold;
  }
}

/** A text whose tags (<search>) stand out, and the thoughts of a turn. */
function tagged(text, isTurn) {
  let isThought = false;
  return text.split(/(<\/?[a-z_]{1,20}>)/).filter(Boolean).map((part) => {
    if (isTurn && part === "<think>") isThought = true;
    const element = make("span", /^<\/?[a-z_]{1,20}>$/.test(part) ? "tag" : isThought ? "thought" : "", part);
    if (part === "</think>") isThought = false;
    return element;
  });
}

/** What the agents read and wrote in the match, and what they were paid, as one transcript. */
class TextPanel {
  constructor(header, blocks, rewards, seek) {
    Object.assign(this, { header, texts: blocks.texts, turns: blocks.turns, rewards, seek });
    this.choice = byId("text_agent");
    byId("tab_text").hidden = !this.texts && !this.turns;
    if (byId("tab_text").hidden) return;
    this.choice.hidden = header.agents.length === 1;
    this.choice.append(new Option("all agents", "-1"));
    header.agents.forEach((name, agent) => this.choice.append(new Option(shorten(name, 60), String(agent))));
    this.choice.addEventListener("change", () => this.fill());
  }

  /** Frame, agent, kind and text, in the order in which they came; nothing twice in a row. */
  * pieces() {
    const count = this.header.agents.length;
    const last = new Array(count).fill(0);
    const strings = this.header.strings;
    for (let frame = 0; frame < this.header.frames; frame++) {
      for (let agent = 0; agent < count; agent++) {
        const written = this.turns?.[frame * count + agent] ?? 0;
        if (written > 0) yield [frame, agent, "written", strings[written - 1]];
        if (written > 0) last[agent] = 0;
      }
      for (let agent = 0; agent < count; agent++) {
        const read = this.texts?.[frame * count + agent] ?? 0;
        if (read > 0 && read !== last[agent]) yield [frame, agent, "read", strings[read - 1]];
        last[agent] = read;
        const reward = this.rewards.rewards[frame * count + agent];
        if (reward !== 0) yield [frame, agent, "reward", formatReward(reward)];
      }
    }
  }

  fill() {
    const chosen = Number(this.choice.value);
    const pieces = [...this.pieces()].filter(([, agent]) => chosen === -1 || agent === chosen);
    this.elements = pieces.slice(0, PIECES_LISTED).map(([frame, agent, kind, text]) => {
      const piece = make("section", kind);
      piece.dataset.frame = frame;
      const words = { written: "wrote", read: "read", reward: "reward" }[kind];
      const heading = make("button", "stranger", `${shorten(this.header.agents[agent], 200)} ${words}`);
      heading.type = "button";
      const body = make("pre", `stranger ${kind}`);
      body.append(...tagged(text.trim(), kind === "written"));
      piece.append(heading, body);
      piece.addEventListener("click", () => {
        if (getSelection().isCollapsed) this.seek(frame); // words can be selected, too
      });
      return piece;
    });
    const more = pieces.length - PIECES_LISTED;
    const note = more > 0 ? `${more} more are not listed` : pieces.length === 0 ? "(nothing)" : "";
    byId("text_list").replaceChildren(...this.elements, ...(note ? [make("p", "muted", note)] : []));
    this.shown = null;
    this.update(this.frame);
  }

  update(frame) {
    this.frame = frame;
    if (byId("tab_text_panel").hidden || this.shown === frame) return;
    if (!this.elements) {
      this.fill();
      return;
    }
    this.shown = frame;
    let current = null;
    for (const piece of this.elements) {
      const at = Number(piece.dataset.frame);
      piece.toggleAttribute("data-current", at === frame);
      piece.toggleAttribute("data-later", at > frame);
      if (at <= frame && (!current || at > Number(current.dataset.frame))) current = piece;
    }
    const panel = byId("tab_text_panel");
    if (current) panel.scrollTop = Math.max(0, current.offsetTop - 60);
  }
}

function fillMarks(header, seek) {
  const list = byId("mark_list");
  if (header.marks.length === 0) list.append(make("p", "muted", "no events"));
  for (const mark of header.marks.slice(0, MARKS_LISTED)) {
    const button = make("button");
    button.type = "button";
    button.dataset.frame = mark.frame;
    const words = make("span", "words stranger", `${mark.kind}: ${mark.text}`);
    const sign = make("span", "", MARK_SIGNS[mark.kind] ?? "\u25cf");
    button.append(sign, make("span", "muted", String(mark.frame)), words);
    button.addEventListener("click", () => seek(mark.frame));
    list.append(button);
  }
  const more = header.marks.length - MARKS_LISTED;
  if (more > 0) list.append(make("p", "muted", `${more} more are not listed`));
}

async function copyText(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copy failed: select the text";
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}

function fillAbout(header) {
  for (const [name, text] of header.about) {
    const row = make("tr");
    const cell = make("td");
    const holder = make("div");
    holder.append(make(name === "command" ? "code" : "span", "stranger", text));
    cell.append(holder);
    if (name === "command") {
      const button = make("button", "", "Copy");
      button.id = "copy_command";
      button.type = "button";
      button.addEventListener("click", () => copyText(text, button));
      cell.append(button);
    }
    row.append(make("th", "stranger", name), cell);
    byId("about").append(row);
  }
  if (header.notes.length === 0) return;
  const list = make("ul");
  for (const note of header.notes) list.append(make("li", "stranger", note));
  byId("notes").append(make("h3", "", "Notes"), list);
}

return { AgentPanel, TextPanel, setText, setUpTabs, fillMarks, fillAbout, copyText };
})();
