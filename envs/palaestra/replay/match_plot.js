// Numbers of a match page: rewards, what else can be plotted, and the plot under the picture.
const matchPlot = (() => {
"use strict";

const { byId, clamp, make, shorten, colorText, strokePath, onSizeChange } = matchPictures;
const MARK_SIGNS = { end: "\u25a0", death: "\u2715", arrival: "\u25b2", fall: "\u25bc" };
const PLOTS_LISTED = 300; // numbers that a reader may plot
const NUMBERS_LISTED = 12; // of a field of many
const LINES_TOLD = 4; // lines whose values are written under the plot
const NO_TEAM = [128, 145, 161];

/** A number in so many digits; what is below ``noise`` is 0. */
function formatNumber(x, digits = 4, noise = 1e-12) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "none" : x > 0 ? "infinite" : "-infinite";
  const size = Math.abs(x);
  if (size < noise) return "0";
  if (size >= 1e7 || size < 1e-4) return x.toExponential(2);
  return String(Number(size >= 1000 ? x.toFixed(1) : x.toPrecision(size < 1 ? Math.min(digits, 3) : digits)));
}

const formatReward = (x) => (x > 0 ? "+" : "") + formatNumber(x);

/** A number of a field in its unit; the numbers of a page are exact to three digits. */
const formatValue = (x, { factor = 1, noise = 1e-12 }) =>
  formatNumber(x * factor, Number.isInteger(x * factor) ? 12 : 3, noise * factor);

/** How many values of a row stand before each agent's: one more entry than agents. */
function rowStarts(perAgent, sizeOf) {
  const starts = [0];
  for (const entries of perAgent) starts.push(entries.reduce((sum, entry) => sum + sizeOf(entry), starts.at(-1)));
  return starts;
}

/** Names of the numbers of a field; those of a table by row and column. */
function numberNames({ name, size, columns, parts }) {
  const inRow = columns ? columns.flatMap((column) => numberNames(column)) : parts ?? [];
  const width = Math.max(1, inRow.length);
  return Array.from({ length: size }, (_, k) => {
    const row = size > width ? `[${Math.floor(k / width)}]` : "";
    return `${name}${row}${inRow.length > 0 ? ` ${inRow[k % width]}` : ""}`;
  });
}

/** Rewards of agents and teams, and their sums; a sum starts again after an end mark. */
class Rewards {
  constructor(header, rewards, teamRewards) {
    this.ends = new Set(header.marks.filter((mark) => mark.kind === "end").map((mark) => mark.frame));
    this.rewards = rewards;
    this.sums = this.sumsOf(rewards, header.agents.length);
    const count = header.teams.length;
    const teamSums = this.sumsOf(teamRewards, count);
    const column = (values, k) => Float64Array.from({ length: header.frames }, (_, frame) => values[frame * count + k]);
    this.teams = header.teams.map((team, k) => ({
      color: team.color, rewards: column(teamRewards, k), sums: column(teamSums, k),
    }));
  }

  sumsOf(rewards, width) {
    const sums = new Float64Array(rewards.length);
    for (let i = 0; i < rewards.length; i++) {
      const frame = Math.floor(i / width);
      const before = frame === 0 || this.ends.has(frame - 1) ? 0 : sums[i - width];
      sums[i] = before + (Number.isFinite(rewards[i]) ? rewards[i] : 0);
    }
    return sums;
  }
}

/** All that can be plotted: {group, label, field, lines: () => [{color, values}]}, the rewards first. */
function listSeries(header, blocks, rewards) {
  const colorOf = (agent) => header.teams.find((team) => team.agents.includes(agent))?.color ?? NO_TEAM;
  const sums = () => rewards.teams.map(({ color, sums: values }) => ({ color, values }));
  const found = [{ group: "Rewards", label: "rewards", field: {}, lines: sums }];
  const column = (block, width, at, { factor = 1 }) =>
    Array.from({ length: header.frames }, (_, frame) => block[frame * width + at] * factor);

  const seen = new Map(); // name of a number: places in a row of observations
  const starts = rowStarts(header.fields, (field) => field.size);
  header.fields.forEach((fields, agent) => {
    let at = starts[agent];
    for (const field of fields) {
      numberNames(field).slice(0, NUMBERS_LISTED).forEach((name, k) => {
        if (!seen.has(name)) seen.set(name, { field, places: [] });
        seen.get(name).places.push({ agent, at: at + k });
      });
      at += field.size;
    }
  });
  for (const [label, { field, places }] of "observations" in blocks ? seen : []) {
    const part = field.columns?.length === 1 ? field.columns[0] : field;
    found.push({ group: "Seen by agents", label, field: part, lines: () => places.map(({ agent, at }) => (
      { color: colorOf(agent), values: column(blocks.observations, starts.at(-1), at, part) })) });
  }

  let at = 0;
  const width = header.match.reduce((sum, entry) => sum + entry.size, 0);
  for (const entry of "match" in blocks ? header.match : []) {
    const first = at;
    const colors = entry.size === header.teams.length && entry.size > 1 ? header.teams.map((team) => team.color)
      : entry.size === header.agents.length ? header.agents.map((_, agent) => colorOf(agent)) : [NO_TEAM];
    found.push({ group: "Of the match", label: entry.name, field: entry, lines: () => colors.map((color, k) => (
      { color, values: column(blocks.match, width, first + k, entry) })) });
    at += entry.size;
  }

  const outputWidth = header.outputs.reduce((sum, output) => sum + output.agents.length * output.size, 0);
  at = 0;
  for (const { name, agents, size } of header.outputs) {
    const first = at;
    if ("outputs" in blocks && size === 1) {
      found.push({ group: "Computed by players", label: name, field: {}, lines: () => agents.map((agent, k) => (
        { color: colorOf(agent), values: column(blocks.outputs, outputWidth, first + k, {}) })) });
    }
    at += agents.length * size;
  }
  return found.slice(0, PLOTS_LISTED);
}

// ---- plot ----------------------------------------------------------------------------------------------------------

const PLOT_SIDE = 8; // CSS pixels left and right of the plot, half of the range input's thumb
const LEAST_HEIGHT = 128;
const BAND_HEIGHT = 57; // of each curve where there are many
const MARKS_HEIGHT = 14; // at the bottom
const LABEL_HEIGHT = 10; // at the top of a band

/** What the reader has ticked over the frames, one band each, with the marks. */
class Plot {
  constructor(header, blocks, rewards, seek, describe) {
    this.header = header;
    this.rewards = rewards;
    this.seek = seek;
    this.describe = describe;
    this.host = byId("plot");
    this.canvas = byId("plot_canvas");
    this.last = header.frames - 1;
    this.frame = 0;
    this.series = listSeries(header, blocks, rewards);
    this.offer();
    onSizeChange(this.host, () => this.draw());
    this.listen();
  }

  /** Fills the list of what can be plotted. The game's own choice is ticked, and what a critic values; else rewards. */
  offer() {
    const named = (names) => names.map((name) => this.series.find((one) => one.label === name)).filter(Boolean);
    const own = [...named(this.header.plots ?? []), ...this.series.filter((one) => one.group === "Computed by players"
      && one.label === "value").slice(0, 1)];
    this.ticked = new Set(own.some((one) => one.label !== "value") ? own : [this.series[0], ...own]);
    for (const [group, members] of Map.groupBy(this.series, (one) => one.group)) {
      byId("plot_list").append(make("h3", "", group), ...members.map((one) => this.makeTick(one)));
    }
    this.choose();
  }

  makeTick(one) {
    const label = make("label", "stranger", shorten(one.label, 80));
    const tick = make("input");
    tick.type = "checkbox";
    tick.checked = this.ticked.has(one);
    tick.addEventListener("change", () => {
      if (tick.checked) this.ticked.add(one);
      else this.ticked.delete(one);
      this.choose();
      this.draw();
      this.describe();
    });
    label.prepend(tick);
    return label;
  }

  choose() {
    const unit = (field) => (field.unit ? ` (${field.unit})` : "");
    this.curves = [...this.ticked].map((one) => {
      one.drawn ??= one.lines();
      const label = one === this.series[0] ? "sum of rewards" : one.label + unit(one.field);
      return { label, lines: one.drawn, field: one.field };
    });
    const isBars = this.ticked.size === 1 && this.ticked.has(this.series[0]);
    const bands = this.curves.length + isBars;
    this.height = Math.max(LEAST_HEIGHT, bands * BAND_HEIGHT + MARKS_HEIGHT);
    this.host.style.height = `${this.height}px`;
    const share = (this.height - MARKS_HEIGHT) / Math.max(1, bands);
    this.bands = Array.from({ length: bands }, (_, k) => [k * share + LABEL_HEIGHT, (k + 1) * share - 3]);
    this.isBars = isBars;
  }

  /** Values in a frame of what is plotted. */
  describeCurves(frame) {
    return this.curves.filter(({ label, lines }) => label !== "sum of rewards" && lines.length <= LINES_TOLD).map(
      ({ label, lines }) => `${shorten(label, 60)} ${lines.map(({ values }) => formatNumber(values[frame], 3)).join(" / ")}`);
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
      this.describe();
    });
    this.host.addEventListener("pointerleave", () => {
      this.hovered = null;
      this.describe();
    });
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
    this.curves.forEach(({ label, lines }, k) => {
      const y = this.drawAxis(context, this.bands[k], label, lines.map((line) => line.values));
      for (const { color, values } of lines) this.drawCurve(context, y, this.color(color), values);
    });
    if (this.isBars) {
      const series = this.rewards.teams.map((team) => team.rewards);
      this.drawRewards(context, this.drawAxis(context, this.bands[1], "reward", series));
    }
    this.drawLabels(context);
    this.setCursor(this.frame);
  }

  /** Draws the zero line of one band and notes its labels; returns the height of a value in it. */
  drawAxis(context, [top, bottom], name, series) {
    let [low, high] = [Infinity, -Infinity];
    for (const values of series) {
      for (const x of values) if (Number.isFinite(x)) [low, high] = [Math.min(low, x), Math.max(high, x)];
    }
    if (low > high) [low, high] = [0, 0];
    if (low <= 0.5 * high) low = Math.min(low, 0); // farther from 0 the differences count
    if (high >= 0.5 * low) high = Math.max(high, 0);
    const y = (x) => (high > low ? bottom - ((x - low) / (high - low)) * (bottom - top) : (top + bottom) / 2);
    context.fillStyle = this.colors.borderTopColor;
    context.fillRect(PLOT_SIDE, Math.round(y(clamp(0, low, high))), this.width - 2 * PLOT_SIDE, 1);
    this.labels.push([`${formatNumber(high, 3)}  ${shorten(name, 60)}`, top]);
    if (low !== 0 && high > low) this.labels.push([formatNumber(low, 3), bottom]);
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

  color(color) {
    return colorText(this.isDark ? color : color.map((x) => 0.85 * x));
  }

  /** The frames of each column of about half a CSS pixel: [first, beyond the last]. */
  * columns() {
    const step = Math.max(1, (this.last + 1) / (2 * this.width));
    for (let from = 0; from <= this.last; from += step) {
      yield [Math.floor(from), Math.max(Math.floor(from) + 1, Math.min(Math.floor(from + step), this.last + 1))];
    }
  }

  /** A number stays until the next frame has another one: jumps are steps. */
  drawCurve(context, y, color, values) {
    context.beginPath();
    let before = NaN;
    for (const [from, to] of this.columns()) {
      for (let frame = from; frame < to; frame++) {
        const value = values[frame];
        const isSeen = frame === from || frame === to - 1 || this.isPeak(values, frame);
        if (!Number.isFinite(value)) before = NaN;
        else if (Number.isNaN(before)) context.moveTo(this.x(frame), y(value));
        else if (isSeen) {
          if (value !== before) context.lineTo(this.x(frame), y(before));
          context.lineTo(this.x(frame), y(value));
        }
        if (Number.isFinite(value) && (isSeen || Number.isNaN(before))) before = value;
        if (this.rewards.ends.has(frame)) before = NaN;
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
    const room = (this.width - 2 * PLOT_SIDE) / (this.last + 1) / this.rewards.teams.length;
    const bar = clamp(room * 0.8, 1.5, 5);
    this.rewards.teams.forEach((team, k) => {
      context.fillStyle = this.color(team.color);
      const shift = room > 1 ? (k - this.rewards.teams.length / 2) * bar : -bar / 2;
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
      context.fillStyle = this.colors.color;
      if (mark.kind === "end") context.fillRect(Math.round(x) - 0.5, 0, 1, this.height - MARKS_HEIGHT);
      context.fillText(MARK_SIGNS[mark.kind] ?? "\u25cf", x, this.height - 3);
    }
  }
}

return { MARK_SIGNS, formatNumber, formatReward, formatValue, rowStarts, Rewards, Plot };
})();
