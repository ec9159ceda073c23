// A match page: the canvas with its zoom, playing, controls and keyboard.
(() => {
"use strict";

const { byId, clamp, shorten, showError, onSizeChange, readMatch, VectorPicture, ImagePicture } = matchPictures;
const { formatNumber, formatReward, Rewards, Plot } = matchPlot;
const { AgentPanel, TextPanel, setText, setUpTabs, fillMarks, fillAbout, copyText } = matchPanel;
const PANEL_INTERVAL_MS = 80; // while playing, the side panel changes at most this often
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];

/** The canvas on the page: its size, zoom and position. */
class PictureView {
  constructor(header, picture, currentFrame) {
    this.header = header;
    this.picture = picture;
    this.currentFrame = currentFrame;
    this.host = byId("view");
    this.canvas = byId("picture");
    this.context = this.canvas.getContext("2d");
    this.pointers = new Map();
    this.reset();
    onSizeChange(this.host, () => this.resize());
    this.resize();
    this.listen();
  }

  reset() {
    this.zoom = 1;
    this.centerX = this.header.width / 2; // the picture's point at the middle of the canvas
    this.centerY = this.header.height / 2;
    this.host.classList.remove("zoomed");
    this.invalidate();
  }

  resize() {
    this.ratio = devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(this.host.clientWidth * this.ratio));
    this.canvas.height = Math.max(1, Math.round(this.host.clientHeight * this.ratio));
    this.draw();
  }

  view() {
    const { width, height } = this.canvas;
    const scale = this.zoom * Math.min(width / this.header.width, height / this.header.height);
    return { scale, x: width / 2 - this.centerX * scale, y: height / 2 - this.centerY * scale };
  }

  invalidate() {
    this.request ??= requestAnimationFrame(() => {
      this.request = null;
      this.draw();
    });
  }

  draw() {
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    try {
      this.picture.draw(this.currentFrame(), this.context, this.view());
    } catch (error) {
      showError(error);
    }
  }

  /** Zooms; the picture's point under (x, y), in CSS pixels of the canvas, stays where it is. */
  zoomBy(factor, x = this.host.clientWidth / 2, y = this.host.clientHeight / 2) {
    const before = this.view();
    const pointX = (x * this.ratio - before.x) / before.scale;
    const pointY = (y * this.ratio - before.y) / before.scale;
    const zoom = clamp(this.zoom * factor, 1, 64);
    this.centerX = pointX + ((this.centerX - pointX) * this.zoom) / zoom;
    this.centerY = pointY + ((this.centerY - pointY) * this.zoom) / zoom;
    this.zoom = zoom;
    this.move(0, 0);
  }

  /** Moves the picture by CSS pixels; at zoom 1 it stays in the middle. */
  move(x, y) {
    const { width, height } = this.header;
    const scale = this.view().scale / this.ratio;
    this.centerX = this.zoom === 1 ? width / 2 : clamp(this.centerX - x / scale, 0, width);
    this.centerY = this.zoom === 1 ? height / 2 : clamp(this.centerY - y / scale, 0, height);
    this.host.classList.toggle("zoomed", this.zoom > 1);
    this.invalidate();
  }

  listen() {
    this.host.addEventListener("wheel", (event) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 30 : 1;
      const box = this.host.getBoundingClientRect();
      this.zoomBy(Math.exp(-event.deltaY * lines * 0.0015), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    this.host.addEventListener("dblclick", () => this.reset());
    this.host.addEventListener("pointerdown", (event) => {
      this.host.setPointerCapture(event.pointerId);
      this.drag = [event.clientX, event.clientY];
    });
    this.host.addEventListener("pointermove", (event) => {
      if (!this.drag) return;
      this.move(event.clientX - this.drag[0], event.clientY - this.drag[1]);
      this.drag = [event.clientX, event.clientY];
    });
    for (const name of ["pointerup", "pointercancel"]) this.host.addEventListener(name, () => { this.drag = null; });
  }
}

/** The present frame, and what follows from it on the page. */
class MatchPage {
  /** Shows the picture alone, see `open`. */
  constructor(header, picture) {
    this.header = header;
    this.last = this.end = header.frames - 1; // of this match, and of the longest one beside it
    this.time = this.frameOfHash() ?? 0; // beyond the last frame where a match beside this one is longer
    this.speed = 1;
    this.playing = false;
    this.leads = true; // false while a page beside this one keeps the time of both
    this.turn = 0; // counts who keeps it: what a page told before is too late
    this.view = new PictureView(header, picture, () => this.frame);
    this.firstFrameMs = performance.now();
  }

  /** Shows all the rest. */
  open(blocks) {
    const { header } = this;
    this.rewards = new Rewards(header, blocks.rewards, blocks.team_rewards);
    const seek = (frame) => this.seek(frame);
    this.plot = new Plot(header, blocks, this.rewards, seek, () => this.updateTexts());
    this.agents = new AgentPanel(header, blocks, this.rewards);
    this.texts = new TextPanel(header, blocks, this.rewards, seek);
    this.marksAt = Map.groupBy(header.marks, (mark) => mark.frame);
    fillMarks(header, seek);
    fillAbout(header);
    setUpTabs(() => this.updatePanel());
    this.setUpControls();
    this.setUpTheme();
    addEventListener("keydown", (event) => this.onKey(event));
    addEventListener("hashchange", () => this.seek(this.frameOfHash() ?? this.time));
    addEventListener("message", (event) => this.onMessage(event));
    if (parent !== window) parent.postMessage({ match: "opened", last: this.last }, "*");
    this.update();
  }

  tell() {
    const { time, playing, speed, turn } = this;
    if (this.isBeside) parent.postMessage({ match: "moved", time, playing, speed, turn }, "*");
  }

  get frame() {
    return Math.min(this.time, this.last);
  }

  /** What the page around several matches tells: that there are others, and how one of them moved. */
  onMessage({ source, data }) {
    if (source !== parent || parent === window) return;
    if (data?.match === "beside") {
      this.end = byId("scrub").max = Math.max(this.last, Number(data.end) || 0);
      this.isBeside = true;
    } else if (data?.match === "moved" && (data.turn ?? this.turn) >= this.turn) {
      this.turn = data.turn ?? this.turn + 1;
      this.leads = false;
      this.playing = data.playing === true;
      if (SPEEDS.includes(data.speed)) this.showSpeed(data.speed);
      this.time = clamp(Math.round(data.time) || 0, 0, this.end);
      this.update();
    }
  }

  /** Once the reader has moved this page, it keeps the time for those beside it too; they took turns at that before. */
  lead() {
    this.leads = true;
    this.turn++;
    this.tell();
    if (this.playing && !this.isTicking) {
      this.isTicking = true;
      this.tickTime = performance.now();
      requestAnimationFrame((now) => this.tick(now));
    }
  }

  frameOfHash() {
    const found = /^#t=(\d+)$/.exec(location.hash);
    return found ? clamp(Number(found[1]), 0, this.last) : null;
  }

  seek(frame) {
    this.time = clamp(Math.round(frame) || 0, 0, this.end);
    this.startClock();
    this.lead();
    this.update();
  }

  step(frames) {
    this.pause();
    this.seek(this.time + frames);
  }

  /** To the next event or the one before. */
  goToMark(by) {
    const frames = this.header.marks.map((mark) => mark.frame).filter((frame) => by * (frame - this.frame) > 0);
    this.pause();
    if (frames.length > 0) this.seek(by > 0 ? Math.min(...frames) : Math.max(...frames));
  }

  play() {
    if (this.time === this.end) this.time = 0;
    if (this.playing) return;
    this.playing = true;
    this.startClock();
    this.lead();
    this.update();
  }

  pause() {
    this.playing = false;
    this.lead();
    this.update();
  }

  /** Playing counts from here: the frame and the time of the last change. */
  startClock() {
    this.clock = { frame: this.time, time: performance.now() };
  }

  tick(now) {
    this.isTicking = this.playing && this.leads;
    if (!this.isTicking) return;
    if (now - this.tickTime > 1000) this.startClock(); // the page was hidden: goes on where it stood
    this.tickTime = now;
    const passed = Math.max(0, now - this.clock.time) / 1000;
    const frame = Math.min(this.clock.frame + Math.floor(passed * this.header.fps * this.speed), this.end);
    if (frame === this.end) this.playing = false;
    if (frame !== this.time || !this.playing) {
      this.time = frame;
      this.tell();
      this.update();
    }
    requestAnimationFrame((later) => this.tick(later));
  }

  setSpeed(speed) {
    this.showSpeed(speed);
    this.startClock();
    this.lead();
  }

  showSpeed(speed) {
    this.speed = speed;
    byId("speed").value = String(speed);
  }

  changeSpeed(step) {
    this.setSpeed(SPEEDS[clamp(SPEEDS.indexOf(this.speed) + step, 0, SPEEDS.length - 1)]);
  }

  update() {
    this.view.invalidate();
    byId("scrub").value = this.time;
    byId("scrub").setAttribute("aria-valuetext", `frame ${this.frame} of ${this.last}`);
    byId("play").toggleAttribute("data-playing", this.playing);
    byId("play").setAttribute("aria-label", this.playing ? "Pause" : "Play");
    byId("frame_text").setAttribute("aria-live", this.playing ? "off" : "polite");
    this.plot.setCursor(this.frame);
    const now = performance.now();
    if (this.playing && now - (this.panelTime ?? 0) < PANEL_INTERVAL_MS) return;
    this.panelTime = now;
    this.updateTexts();
    this.updatePanel();
    this.updateLink();
  }

  updateTexts() {
    const { frame, header } = this;
    const step = header.steps[frame];
    const seconds = header.fps > 0 ? `, ${(step / header.fps).toFixed(header.fps > 10 ? 2 : 1)} s` : "";
    setText(byId("frame_text"), `frame ${frame} of ${this.last} (decision ${step}${seconds})`);
    setText(byId("plot_text"), this.describeFrame(this.plot.hovered ?? frame));
    byId("plot_text").title = byId("plot_text").textContent.slice(0, 1000);
  }

  describeFrame(frame) {
    const teams = this.header.teams.map((team, k) => {
      const { rewards, sums } = this.rewards.teams[k];
      return `${shorten(team.name, 40)} ${formatReward(rewards[frame])} (sum ${formatNumber(sums[frame])})`;
    });
    const marks = (this.marksAt.get(frame) ?? []).map((mark) => `${mark.kind}: ${shorten(mark.text, 200)}`);
    return [`frame ${frame}`, ...teams, ...this.plot.describeCurves(frame), ...marks].join("  \u00b7  ");
  }

  updatePanel() {
    this.agents.update(this.frame);
    this.texts.update(this.frame);
    if (byId("tab_marks_panel").hidden) return;
    for (const button of byId("mark_list").querySelectorAll("button")) {
      button.toggleAttribute("aria-current", Number(button.dataset.frame) === this.frame);
    }
  }

  /** Browsers limit how often the address may change, so it waits for a pause in the changes. */
  updateLink() {
    byId("frame_link").href = `#t=${this.frame}`;
    clearTimeout(this.linkTimer);
    if (this.playing) return;
    this.linkTimer = setTimeout(() => this.setHash(), 200);
  }

  setHash() {
    if (this.frameOfHash() === this.frame) return;
    try {
      history.replaceState(null, "", `#t=${this.frame}`);
    } catch {
      // Pages within another page's frame may not change their address; the link still works.
    }
  }

  setUpControls() {
    byId("title").textContent = byId("title").title = this.header.title;
    for (const speed of SPEEDS) byId("speed").append(new Option(`${speed}\u00d7`, String(speed)));
    byId("speed").value = "1";
    byId("scrub").max = this.end;
    byId("full_screen").hidden = !document.fullscreenEnabled; // within another page's frame, on telephones
    const actions = {
      play: () => this.togglePlay(), back: () => this.step(-1), forward: () => this.step(1),
      zoom_in: () => this.view.zoomBy(1.5), zoom_out: () => this.view.zoomBy(1 / 1.5),
      zoom_reset: () => this.view.reset(), full_screen: () => this.toggleFullScreen(),
      help_button: () => byId("help").showModal(), help_close: () => byId("help").close(),
    };
    for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
    byId("speed").addEventListener("change", (event) => this.setSpeed(Number(event.target.value)));
    byId("scrub").addEventListener("input", (event) => this.seek(Number(event.target.value)));
    byId("frame_link").addEventListener("click", (event) => {
      event.preventDefault();
      this.pause();
      this.setHash();
      copyText(byId("frame_link").href, byId("frame_link"));
    });
    // After a mouse click the space bar plays again instead of pressing the same button.
    addEventListener("click", (event) => {
      if (event.detail > 0) event.target.closest?.("#player button, header button")?.blur();
    });
  }

  setUpTheme() {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const set = (isDark) => {
      document.documentElement.dataset.theme = isDark ? "dark" : "light";
      this.plot.draw();
    };
    system.addEventListener("change", () => set(system.matches));
    byId("theme").addEventListener("click", () => set(document.documentElement.dataset.theme !== "dark"));
    set(system.matches);
  }

  togglePlay() {
    if (this.playing) this.pause();
    else this.play();
  }

  toggleFullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else if (document.fullscreenEnabled) byId("player").requestFullscreen().catch(() => {}); // the browser says why
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const focused = event.target.closest?.("button, select, a, summary");
    if (focused?.tagName === "SELECT" || (event.key === " " && focused)) return;
    const many = event.shiftKey ? 10 : 1;
    const keys = {
      " ": () => this.togglePlay(), ArrowLeft: () => this.step(-many), ArrowRight: () => this.step(many),
      Home: () => this.seek(0), End: () => this.seek(this.end), "+": () => this.changeSpeed(1),
      "=": () => this.changeSpeed(1), "-": () => this.changeSpeed(-1), f: () => this.toggleFullScreen(),
      0: () => this.view.reset(), i: () => this.view.zoomBy(1.5), o: () => this.view.zoomBy(1 / 1.5),
      n: () => this.goToMark(1), p: () => this.goToMark(-1), "?": () => byId("help").showModal(),
    };
    const action = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (!action) return;
    event.preventDefault();
    action();
  }
}

/** Draws a frame on a canvas, one canvas pixel a picture pixel. */
async function drawFrame(header, picture, frame, canvas) {
  canvas.width = header.width;
  canvas.height = header.height;
  await picture.drawExact(frame, canvas.getContext("2d"), { scale: 1, x: 0, y: 0 });
}

/** Resolves once the browser has painted, or does not do so, as the page is not seen. */
function nextPaint() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    setTimeout(resolve, 50);
  });
}

async function main() {
  const { header, blocks } = await readMatch(byId("match"));
  let page = null;
  const picture = blocks.op_styles
    ? new VectorPicture(header, blocks)
    : new ImagePicture(header, blocks.images, blocks.image_starts, () => page?.view.invalidate());
  await picture.load();
  page = new MatchPage(header, picture);
  await nextPaint();
  page.open(blocks);
  Object.assign(window.palaestraMatch, {
    header, firstFrameMs: page.firstFrameMs, plot: page.plot, rewards: page.rewards,
    seek: (frame) => page.seek(frame), play: () => page.play(),
    pause: () => page.pause(), draw: (frame, canvas) => drawFrame(header, picture, frame, canvas),
  });
  Object.defineProperty(window.palaestraMatch, "frame", { get: () => page.frame });
}

window.palaestraMatch = {};
window.palaestraMatch.ready = main();
window.palaestraMatch.ready.catch(showError);
})();
