// Data of a match page: rewards and their plot, and the side panel.
const matchPanel = (() => {
"use strict";

const { byId, clamp, make, shorten, colorText, strokePath, onSizeChange } = matchPictures;
const MARK_SIGNS = { end: "\u25a0", death: "\u2715", arrival: "\u25b2" };
const MARKS_LISTED = 2000;
const PLOTS_LISTED = 300; // numbers that a reader may plot
const PIECES_LISTED = 400; // texts of a transcript, the last ones
const OPTIONS_LISTED = 64; // alternatives of a choice for which a player computed numbers

function formatNumber(x) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "none" : x > 0 ? "infinite" : "-infinite";
  const size = Math.abs(x);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return x.toExponential(2);
  return String(Number(size >= 1000 ? x.toFixed(1) : x.toPrecision(4)));
}

/** A unit after a number: " m"; " \u00d7 5 km" where it is a multiple; nothing for plain numbers. */
function formatUnit(unit) {
  if (!unit || unit === "1") return "";
  return /^\d/.test(unit) ? ` \u00d7 ${unit}` : ` ${unit}`;
}

const formatReward = (x) => (x > 0 ? "+" : "") + formatNumber(x);

/** How many values of a row stand before each agent's: one more entry than agents. */
function rowStarts(perAgent, sizeOf) {
  const starts = [0];
  for (const entries of perAgent) starts.push(entries.reduce((sum, entry) => sum + sizeOf(entry), starts.at(-1)));
  return starts;
}

/** Rewards of agents and teams, and their sums; a sum starts again after an end mark. */
class Rewards {
  constructor(header, rewards) {
    const agents = header.agents.length;
    this.agents = agents;
    this.rewards = rewards;
    this.sums = new Float64Array(rewards.length);
    this.ends = new Set(header.marks.filter((mark) => mark.kind === "end").map((mark) => mark.frame));
    for (let i = 0; i < rewards.length; i++) {
      const frame = Math.floor(i / agents);
      const before = frame === 0 || this.ends.has(frame - 1) ? 0 : this.sums[i - agents];
      this.sums[i] = before + (Number.isFinite(rewards[i]) ? rewards[i] : 0);
    }
  }

  /** One number a frame: the sum over a team's agents of rewards or running sums. */
  ofTeam(team, values) {
    return Float64Array.from({ length: values.length / this.agents }, (_, frame) =>
      team.agents.reduce((sum, agent) => sum + (values[frame * this.agents + agent] || 0), 0));
  }
}

// ---- plot ----------------------------------------------------------------------------------------------------------

const PLOT_SIDE = 8; // CSS pixels left and right of the plot, half of the range input's thumb
const SUM_BAND = [4, 72];
const REWARD_BAND = [88, 124];

/** Rewards and running sums of the teams, or one or two numbers that agents see, over the frames, with the marks. */
class Plot {
  constructor(header, blocks, rewards, seek, describe) {
    this.header = header;
    this.observations = blocks.observations;
    this.fieldStarts = rowStarts(header.fields, (field) => field.size);
    this.curves = [];
    this.teams = header.teams.map((team) => ({
      color: team.color, rewards: rewards.ofTeam(team, rewards.rewards), sums: rewards.ofTeam(team, rewards.sums),
    }));
    this.ends = rewards.ends;
    this.seek = seek;
    this.describe = describe;
    this.host = byId("plot");
    this.canvas = byId("plot_canvas");
    this.last = header.frames - 1;
    this.frame = 0;
    this.offer();
    onSizeChange(this.host, () => this.draw());
    this.listen();
  }

  /** Fills the list of what can be plotted; the game's own choice comes first and is shown. */
  offer() {
    const select = byId("plot_what");
    const numbers = this.header.fields.flatMap((fields) => fields.filter((field) => field.size === 1));
    const names = this.observations ? [...new Set(numbers.map((field) => field.name))].slice(0, PLOTS_LISTED) : [];
    const own = (this.header.plots ?? []).filter((name) => names.includes(name));
    const choices = [...(own.length > 0 ? [own] : []), [], ...names.map((name) => [name])];
    for (const choice of choices) select.append(make("option", "stranger", choice.join(", ") || "rewards"));
    select.hidden = names.length === 0;
    select.addEventListener("change", () => this.show(choices[select.selectedIndex]));
    this.curves = choices[0].map((name) => this.curvesOf(name));
  }

  show(names) {
    this.curves = names.map((name) => this.curvesOf(name));
    this.draw();
  }

  /** A field as every agent sees it that has it: its label, and a colour and values for each agent. */
  curvesOf(name) {
    const width = this.fieldStarts.at(-1);
    let unit = "";
    const lines = this.header.fields.flatMap((fields, agent) => {
      const place = fields.findIndex((field) => field.name === name);
      if (place < 0) return [];
      unit = formatUnit(fields[place].unit);
      const start = this.fieldStarts[agent] + fields.slice(0, place).reduce((sum, field) => sum + field.size, 0);
      const team = this.header.teams.find((other) => other.agents.includes(agent));
      const values = Array.from({ length: this.last + 1 }, (_, k) => this.observations[k * width + start]);
      return [{ team: { color: team?.color ?? [128, 145, 161] }, values }];
    });
    return { label: name + unit, lines };
  }

  x(frame) {
    return PLOT_SIDE + (this.last > 0 ? frame / this.last : 0) * (this.width - 2 * PLOT_SIDE);
  }

  frameAt(event) {
    const x = event.clientX - this.host.getBoundingClientRect().left - PLOT_SIDE;
    return clamp(Math.round((x / (this.width - 2 * PLOT_SIDE)) * this.last), 0, this.last);
  }

  listen() {
    this.host.addEventListener("pointerdown", (event) => {
      this.host.setPointerCapture(event.pointerId);
      this.seek(this.frameAt(event));
    });
    this.host.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) this.seek(this.frameAt(event));
      this.hovered = this.frameAt(event);
      this.describe(this.hovered);
    });
    this.host.addEventListener("pointerleave", () => this.describe((this.hovered = null)));
  }

  setCursor(frame) {
    this.frame = frame;
    byId("plot_cursor").style.transform = `translateX(${this.x(frame) - 0.5}px)`;
  }

  draw() {
    const ratio = devicePixelRatio || 1;
    this.width = this.host.clientWidth;
    this.canvas.width = Math.max(1, Math.round(this.width * ratio));
    this.canvas.height = Math.max(1, Math.round(this.host.clientHeight * ratio));
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.colors = getComputedStyle(this.host);
    this.labels = [];
    this.isDark = document.documentElement.dataset.theme === "dark";
    this.drawMarks(context);
    const bands = this.curves.length === 1 ? [[SUM_BAND[0], REWARD_BAND[1]]] : [SUM_BAND, REWARD_BAND];
    this.curves.forEach(({ label, lines }, k) => {
      const y = this.drawAxis(context, bands[k], label, lines.map((line) => line.values));
      for (const { team, values } of lines) this.drawCurve(context, y, this.color(team), values);
    });
    if (this.curves.length === 0) {
      const sums = this.teams.map((team) => team.sums);
      const y = this.drawAxis(context, SUM_BAND, "sum of rewards", sums);
      for (const team of this.teams) this.drawCurve(context, y, this.color(team), team.sums);
      const rewards = this.teams.map((team) => team.rewards);
      this.drawRewards(context, this.drawAxis(context, REWARD_BAND, "reward", rewards));
    }
    this.drawLabels(context);
    this.setCursor(this.frame);
  }

  /** Draws the zero line of one band and notes its labels; returns the height of a value in it. */
  drawAxis(context, [top, bottom], name, series) {
    let [low, high] = [0, 0];
    for (const x of series.flatMap((values) => [...values])) {
      if (Number.isFinite(x)) [low, high] = [Math.min(low, x), Math.max(high, x)];
    }
    const y = (x) => (high > low ? bottom - ((x - low) / (high - low)) * (bottom - top) : (top + bottom) / 2);
    context.fillStyle = this.colors.borderTopColor;
    context.fillRect(PLOT_SIDE, Math.round(y(0)), this.width - 2 * PLOT_SIDE, 1);
    this.labels.push([high > 0 ? `${formatNumber(high)}  ${name}` : name, top + 9]);
    if (low < 0) this.labels.push([formatNumber(low), bottom]);
    return y;
  }

  /** Labels stand above the curves, with an edge in the colour of the page. */
  drawLabels(context) {
    context.fillStyle = this.colors.color;
    context.strokeStyle = this.colors.backgroundColor;
    context.lineWidth = 4;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "left";
    for (const [words, y] of this.labels) {
      context.strokeText(words, PLOT_SIDE, y);
      context.fillText(words, PLOT_SIDE, y);
    }
  }

  color(team) {
    return colorText(this.isDark ? team.color : team.color.map((x) => 0.85 * x));
  }

  /** The frames of each column of about half a CSS pixel: [first, beyond the last]. */
  * columns() {
    const step = Math.max(1, (this.last + 1) / (2 * this.width));
    for (let from = 0; from <= this.last; from += step) {
      yield [Math.floor(from), Math.max(Math.floor(from) + 1, Math.min(Math.floor(from + step), this.last + 1))];
    }
  }

  drawCurve(context, y, color, values) {
    context.beginPath();
    let starts = true;
    for (const [from, to] of this.columns()) {
      for (let frame = from; frame < to; frame++) {
        if (!Number.isFinite(values[frame])) starts = true;
        else if (starts) context.moveTo(this.x(frame), y(values[frame]));
        else if (frame === from || frame === to - 1 || this.isPeak(values, frame)) {
          context.lineTo(this.x(frame), y(values[frame]));
        }
        if (Number.isFinite(values[frame])) starts = this.ends.has(frame);
      }
    }
    context.lineJoin = "round";
    strokePath(context, color, 1.5);
  }

  isPeak(values, frame) {
    return (values[frame] - values[frame - 1]) * (values[frame + 1] - values[frame]) < 0;
  }

  /** One bar a column from the lowest to the highest reward in it; the teams stand side by side where there is room. */
  drawRewards(context, y) {
    const room = (this.width - 2 * PLOT_SIDE) / (this.last + 1) / this.teams.length;
    const bar = clamp(room * 0.8, 1.5, 5);
    this.teams.forEach((team, k) => {
      context.fillStyle = this.color(team);
      const shift = room > 1 ? (k - this.teams.length / 2) * bar : -bar / 2;
      for (const [from, to] of this.columns()) {
        let [low, high] = [0, 0];
        for (let frame = from; frame < to; frame++) {
          low = Math.min(low, team.rewards[frame]);
          high = Math.max(high, team.rewards[frame]);
        }
        if (high > low) context.fillRect(this.x(from) + shift, y(high), bar, Math.max(1, y(low) - y(high)));
      }
    });
  }

  drawMarks(context) {
    context.font = "10px system-ui, sans-serif";
    context.textAlign = "center";
    for (const mark of this.header.marks) {
      const x = this.x(mark.frame);
      const isEnd = mark.kind === "end";
      context.fillStyle = this.colors.color;
      if (isEnd) context.fillRect(Math.round(x) - 0.5, 0, 1, REWARD_BAND[1]);
      context.fillText(MARK_SIGNS[mark.kind] ?? "\u25cf", x, isEnd ? 8 : SUM_BAND[1] + 11);
    }
  }
}

// ---- side panel ----------------------------------------------------------------------------------------------------

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
    this.legalStarts = rowStarts(header.actions, (field) => field.options?.length ?? 0);
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
      this.totals.push({ team, reward, sum });
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
    for (const { team, reward, sum } of this.totals) {
      const total = (values) => team.agents.reduce((x, agent) => x + (values[at + agent] || 0), 0);
      setText(reward, formatReward(total(this.rewards.rewards)));
      setText(sum, formatNumber(total(this.rewards.sums)));
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

  makeActions(agent) {
    const list = make("dl");
    let start = this.actionStarts[agent];
    for (const field of this.header.actions[agent]) {
      const value = make("span", "stranger");
      addTerm(list, field.name, field.about).append(value);
      this.updates.push(this.valueUpdate(value, this.blocks.actions, this.actionStarts.at(-1), start, field));
      start += field.size;
    }
    return list;
  }

  /** A function that writes the values of a field in a frame. */
  valueUpdate(element, values, rowSize, start, field, limit = 16) {
    return (frame) => {
      const from = frame * rowSize + start;
      const row = Array.from(values.subarray(from, from + Math.min(field.size, limit)));
      const words = row.map((x) => (field.options && Number.isFinite(x) ? field.options[x] ?? x : formatNumber(x)));
      const unit = !field.options && row.some(Number.isFinite) ? formatUnit(field.unit) : "";
      setText(element, words.join(", ") + (field.size > limit ? ", \u2026" : "") + unit);
    };
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
    const options = this.header.actions[agent][0]?.options ?? Array.from({ length: size }, (_, k) => String(k));
    const bars = options.slice(0, Math.min(size, OPTIONS_LISTED)).map((option) => {
      const [bar, text] = [make("meter"), make("span")];
      bar.ariaLabel = option;
      addTerm(list, option).append(bar, text);
      return { bar, text };
    });
    this.updates.push((frame) => {
      const from = frame * this.outputWidth + first;
      const row = this.blocks.outputs.subarray(from, from + size);
      const known = row.filter(Number.isFinite);
      const [lowest, highest] = [Math.min(...known), Math.max(...known)];
      const [low, high] = lowest >= 0 && highest <= 1 ? [0, 1] : [lowest, highest];
      setText(value, known.length > 0 ? `highest: ${options[row.indexOf(highest)]}` : "none");
      bars.forEach(({ bar, text }, k) => {
        bar.value = Number.isFinite(row[k]) && high > low ? (row[k] - low) / (high - low) : 0;
        setText(text, Number.isFinite(row[k]) ? formatNumber(row[k]) : "");
      });
    });
    return list;
  }

  makeForbidden(agent) {
    const list = make("dl");
    let start = this.legalStarts[agent];
    for (const field of this.header.actions[agent]) {
      if (!field.options) continue;
      const options = field.options.map((option) => make("s", "option stranger", option));
      const none = make("span", "muted", "all allowed");
      addTerm(list, field.name, field.about).append(none, ...options);
      const first = start;
      this.updates.push((frame) => {
        const from = frame * this.legalStarts.at(-1) + first;
        options.forEach((option, k) => { option.hidden = this.blocks.legal[from + k] === 1; });
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
      this.updates.push(write(short, 6));
      if (field.size <= 6) description.append(short);
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

/** What the agents read and wrote up to a frame, as one transcript. */
class TextPanel {
  constructor(header, texts, turns) {
    Object.assign(this, { header, texts, turns });
    this.choice = byId("text_agent");
    byId("tab_text").hidden = !texts;
    if (!texts) return;
    this.choice.append(new Option("all agents", "-1"));
    header.agents.forEach((name, agent) => this.choice.append(new Option(shorten(name, 60), String(agent))));
    this.choice.addEventListener("change", () => this.update(this.frame));
  }

  /** Agent, whether it wrote, and the number of the text, in the order in which they came; nothing twice in a row. */
  * pieces(frame) {
    const count = this.header.agents.length;
    const last = new Array(count).fill(0);
    for (let k = 0; k <= frame; k++) {
      for (let agent = 0; agent < count; agent++) {
        const written = this.turns?.[k * count + agent] ?? 0;
        if (written === 0) continue;
        yield [agent, true, written];
        last[agent] = 0;
      }
      for (let agent = 0; agent < count; agent++) {
        const read = this.texts[k * count + agent];
        if (read !== 0 && read !== last[agent]) yield [agent, false, read];
        last[agent] = read;
      }
    }
  }

  update(frame) {
    this.frame = frame;
    if (!this.texts || byId("tab_text_panel").hidden) return;
    const chosen = Number(this.choice.value);
    if (this.shown === `${frame} ${chosen}`) return;
    this.shown = `${frame} ${chosen}`;
    const pieces = [...this.pieces(frame)].filter(([agent]) => chosen === -1 || agent === chosen);
    const elements = pieces.slice(-PIECES_LISTED).flatMap(([agent, isWritten, text]) => {
      const name = shorten(this.header.agents[agent], 200);
      const body = make("pre", isWritten ? "stranger written" : "stranger", this.header.strings[text - 1]);
      return [make("h3", "stranger", `${name} ${isWritten ? "wrote" : "read"}`), body];
    });
    byId("text_list").replaceChildren(...(elements.length > 0 ? elements : [make("p", "muted", "(nothing)")]));
    byId("tab_text_panel").scrollTop = byId("tab_text_panel").scrollHeight;
  }
}

function fillMarks(header, seek) {
  const list = byId("mark_list");
  if (header.marks.length === 0) list.append(make("p", "muted", "no ends, deaths or arrivals"));
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

return {
  formatNumber, formatReward, Rewards, Plot, AgentPanel, TextPanel, setText, setUpTabs, fillMarks, fillAbout, copyText,
};
})();
