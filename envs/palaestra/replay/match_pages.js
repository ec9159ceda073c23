// Several matches on one page: one clock moves all, from the keys and the buttons of each.
(() => {
"use strict";

const pages = [...document.querySelectorAll("iframe")].map((frame) => frame.contentWindow);
const lasts = new Map(); // last frame by page that has opened

const send = (message, without) => {
  for (const page of pages) if (page !== without) page.postMessage(message, "*");
};

const seekHash = () => {
  const found = /^#t=(\d+)$/.exec(location.hash);
  if (found) send({ match: "moved", time: Number(found[1]), playing: false });
};

addEventListener("message", ({ source, data }) => {
  if (!pages.includes(source)) return;
  if (data?.match === "moved") send(data, source);
  if (data?.match !== "opened") return;
  lasts.set(source, data.last);
  if (lasts.size < pages.length) return;
  send({ match: "beside", end: Math.max(...lasts.values()) });
  seekHash();
  document.querySelector("iframe").focus(); // its keys move all
});
addEventListener("hashchange", seekHash);
})();
