// The index of the matches of an evaluation: filters and sorts the list, and shows the page of the chosen match.
// Names of players come from outside: they reach the page by textContent only.
(() => {
"use strict";

const byId = (id) => document.getElementById(id);
const { title, about, player, has_two: hasTwo, matches } = JSON.parse(byId("data").textContent);
const LONGEST_NAME = 60;
const WIDEST = 24; // digits of a column; longer names go on in the next line
const OUTCOMES = { 1: "won", "-1": "lost", 0: "" }; // of the first player: a class of its row
const number = (x) => (Number.isInteger(x) ? String(x) : x.toFixed(2));
const name = (text) => (text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME)}\u2026` : text);
const isSwapped = matches.some((match) => match.first !== matches[0].first);
const COLUMNS = [ // head, value to sort by, text
  ["match", (match) => match.number, String],
  ["first team", (match) => match.first, name],
  ["winner", (match) => match.winner || "none", name],
  ["end", (match) => match.end, String],
  ["decisions", (match) => match.decisions, String],
  [`return of ${name(player)}`, (match) => match.return, number],
].filter(([head]) => (hasTwo || head !== "winner") && (isSwapped || head !== "first team"));

let sorted = { column: COLUMNS[0], down: false };
let shown = matches; // those in the list, in its order
let chosen = null;

function make(tag, text = "", role = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (role) element.role = role; // rows are laid out as grids, which hides from screen readers that this is a table
  return element;
}

/** One row of the table; a click or Enter shows the match. */
function rowOf(match, number) {
  match.number = number;
  match.text = COLUMNS.map(([, value]) => value(match)).join("\n").toLowerCase();
  const row = make("tr", "", "row");
  row.tabIndex = 0;
  row.title = match.title.slice(0, 500);
  if (hasTwo) row.className = OUTCOMES[match.outcome];
  if (!match.file) row.classList.add("pageless");
  for (const [, value, text] of COLUMNS) row.append(make("td", text(value(match)), "cell"));
  row.addEventListener("click", () => choose(match));
  row.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(match); });
  match.row = row;
}

function choose(match) {
  if (!match?.file) return;
  chosen = match;
  for (const other of matches) other.row.setAttribute("aria-selected", String(other === match));
  byId("match").src = match.file;
  byId("match").title = match.title.slice(0, 500);
  history.replaceState(null, "", `#${match.number}`);
}

/** The next match of the list that has a page, or the one before. */
function step(by) {
  const paged = shown.filter((match) => match.file);
  const at = paged.indexOf(chosen);
  const next = paged[at < 0 ? 0 : at + by];
  if (!next) return;
  choose(next);
  next.row.focus({ preventScroll: true });
  next.row.scrollIntoView({ block: "nearest" });
}

function fill(select, name, all) {
  select.append(make("option", all), ...[...new Set(matches.map((match) => match[name]))].sort().map((value) => {
    const option = make("option", value || "none");
    option.value = value;
    return option;
  }));
  select.firstChild.value = "\0";
  select.value = "\0";
  select.addEventListener("change", list);
}

/** Shows the matches that have all words and pass the filters, in order. */
function list() {
  const words = byId("filter").value.toLowerCase().split(/\s+/);
  const passes = (name) => {
    const wanted = byId(name).value;
    return wanted === "\0" ? () => true : (match) => match[name] === wanted;
  };
  const [isWinner, isEnd] = [passes("winner"), passes("end")];
  const hasWords = (match) => words.every((word) => match.text.includes(word));
  shown = matches.filter((match) => hasWords(match) && isWinner(match) && isEnd(match));
  const value = sorted.column[1];
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  shown.sort((a, b) => (sorted.down ? -1 : 1) * compare(value(a), value(b)) || a.number - b.number);
  byId("matches").replaceChildren(...shown.map((match) => match.row));
  const paged = matches.filter((match) => match.file).length;
  const pages = paged < matches.length ? `, ${paged} with a page` : "";
  byId("count").textContent = `${shown.length} of ${matches.length} matches${pages}`;
}

function sortBy(column) {
  sorted = { column, down: sorted.column === column && !sorted.down };
  [...byId("heads").children].forEach((head, k) => {
    const order = sorted.down ? "descending" : "ascending";
    head.setAttribute("aria-sort", COLUMNS[k] === column ? order : "none");
  });
  list();
}

/** Columns are as wide as their longest text, in the width of a digit. */
function setWidths() {
  const widths = COLUMNS.map(([head, value, text]) =>
    Math.max(...head.split(" ").map((word) => word.length), ...matches.map((match) => text(value(match)).length)) + 3);
  const shares = widths.map((width) => `minmax(min(7ch, 14%), ${Math.min(width, WIDEST)}fr)`);
  document.body.style.setProperty("--columns", shares.join(" "));
  document.body.style.setProperty("--width", `${widths.reduce((sum, width) => sum + width, 0)}ch`);
}

byId("title").textContent = title;
byId("about").textContent = about;
byId("winner").hidden = !hasTwo;
matches.forEach(rowOf);
setWidths();
fill(byId("winner"), "winner", "any winner");
fill(byId("end"), "end", "any end");
for (const column of COLUMNS) {
  const head = make("th", "", "columnheader");
  const button = make("button", column[0]);
  button.addEventListener("click", () => sortBy(column));
  head.append(button);
  byId("heads").append(head);
}
byId("filter").addEventListener("input", list);
addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || event.target.closest?.("select, input")) return;
  event.preventDefault();
  step(by);
});
list();
choose(matches[Number(location.hash.slice(1))] ?? matches[0]);
})();
