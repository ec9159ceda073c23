// The index of the matches of an evaluation: filters and sorts the list, and shows the page of the chosen match.
// Names of players come from outside: they reach the page by textContent only.
(() => {
"use strict";

const byId = (id) => document.getElementById(id);
const { title, about, player, has_two: hasTwo, matches } = JSON.parse(byId("data").textContent);
const COLUMNS = [
  ["file", "match", (match) => match.number],
  ["first", "first team", (match) => match.first],
  ["winner", "winner", (match) => match.winner || "none"],
  ["end", "end", (match) => match.end],
  ["decisions", "decisions", (match) => match.decisions],
  ["return", `return of ${player.slice(0, 20)}`, (match) => match.return],
].filter(([name]) => hasTwo || !["first", "winner"].includes(name));

let sorted = { column: COLUMNS[0], down: false };

function make(tag, text = "", role = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (role) element.role = role; // rows are laid out as grids, which hides from screen readers that this is a table
  return element;
}

/** One row of the table; a click or Enter shows the match. */
function rowOf(match, number) {
  match.number = number;
  match.text = COLUMNS.map(([, , value]) => value(match)).join("\n").toLowerCase();
  const row = make("tr", "", "row");
  row.tabIndex = 0;
  for (const [, , value] of COLUMNS) {
    const cell = make("td", String(value(match)), "cell");
    cell.title = cell.textContent;
    row.append(cell);
  }
  row.addEventListener("click", () => choose(match));
  row.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(match); });
  match.row = row;
}

function choose(match) {
  for (const other of matches) other.row.setAttribute("aria-selected", String(other === match));
  byId("match").src = match.file;
  history.replaceState(null, "", `#${match.number}`);
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
  const shown = matches.filter((match) => hasWords(match) && isWinner(match) && isEnd(match));
  const value = sorted.column[2];
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  shown.sort((a, b) => (sorted.down ? -1 : 1) * compare(value(a), value(b)) || a.number - b.number);
  byId("matches").replaceChildren(...shown.map((match) => match.row));
  byId("count").textContent = `${shown.length} of ${matches.length} matches`;
}

function sortBy(column) {
  sorted = { column, down: sorted.column === column && !sorted.down };
  [...byId("heads").children].forEach((head, k) => {
    const order = sorted.down ? "descending" : "ascending";
    head.setAttribute("aria-sort", COLUMNS[k] === column ? order : "none");
  });
  list();
}

byId("title").textContent = title;
byId("about").textContent = about;
byId("winner").hidden = !hasTwo;
matches.forEach(rowOf);
fill(byId("winner"), "winner", "any winner");
fill(byId("end"), "end", "any end");
for (const column of COLUMNS) {
  const head = make("th", "", "columnheader");
  const button = make("button", column[1]);
  button.addEventListener("click", () => sortBy(column));
  head.append(button);
  byId("heads").append(head);
}
byId("filter").addEventListener("input", list);
list();
choose(matches[Number(location.hash.slice(1))] ?? matches[0]);
})();
