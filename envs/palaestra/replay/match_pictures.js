// Pictures of a match page: reads the data of the page and draws the picture of a frame.
// Names and words come from outside: they reach the page by textContent and fillText only.
const matchPictures = (() => {
"use strict";

const LIST_EVERY = 32; // frames between two stored operation lists
const CACHED_LAYER = 30; // a layer with fewer operations is drawn anew each time
const IMAGES_KEPT = 48; // decoded images in memory
const IMAGES_AHEAD = 4; // images decoded before they are needed
const BACKGROUND = "rgb(13, 19, 26)"; // of a picture
const WORDS_DRAWN = 1000; // characters of one text in a picture
const GROWTH = 0.22; // pixels by which Pillow, at twice the size, draws a disc larger than asked

const byId = (id) => document.getElementById(id);
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/** A new element with a class and a text; "stranger" is the class of text from outside. */
function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== "") element.textContent = text;
  return element;
}

/** A short text from outside for use within a sentence: without marks that turn the direction of writing. */
function shorten(text, length) {
  const plain = text.slice(0, length).replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
  return text.length > length ? `${plain}\u2026` : plain;
}

function colorText(color) {
  const [red, green, blue, opacity = 255] = color;
  return `rgba(${red}, ${green}, ${blue}, ${opacity / 255})`;
}

/** Calls ``action`` when an element has another size, or the screen another number of pixels to a CSS pixel. */
function onSizeChange(element, action) {
  new ResizeObserver(action).observe(element);
  const watch = () => matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", () => {
    action();
    watch();
  }, { once: true });
  watch();
}

function showError(error) {
  byId("message").textContent = `This match cannot be shown: ${error.message ?? error}`;
  byId("message").hidden = false;
}

// ---- data ----------------------------------------------------------------------------------------------------------

function decodeBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Opens zlib-compressed bytes given as base64. */
async function unpack(text) {
  try {
    const inflater = new DecompressionStream("deflate");
    const writer = inflater.writable.getWriter();
    const written = writer.write(decodeBase64(text)).then(() => writer.close()); // a Blob would go through another process
    const [buffer] = await Promise.all([new Response(inflater.readable).arrayBuffer(), written]);
    return buffer;
  } catch (error) {
    throw new Error("the data of the page are damaged", { cause: error });
  }
}

/** Whole numbers in LEB128: seven bits a byte, the lowest first; the highest bit says that more follow. */
class Integers {
  constructor(bytes) {
    this.bytes = bytes;
    this.offset = 0;
  }

  /** The next natural number. */
  next() {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.bytes[this.offset++];
      if (byte === undefined) throw new Error("the data of the match are cut off");
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  }

  /** The next number of any sign: 0, 1, 2, 3, 4 stand for 0, -1, 1, -2, 2. */
  nextSigned() {
    const value = this.next();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

/** A table of numbers [frames, width]: the first bits of float32, column by column, as differences down a column. */
function unpackFloats(bytes, frames, width, droppedBits) {
  const bits = new Int32Array(frames * width);
  const integers = new Integers(bytes);
  for (let column = 0; column < width; column++) {
    let value = 0;
    for (let frame = 0; frame < frames; frame++) {
      value += integers.nextSigned();
      bits[frame * width + column] = value << droppedBits;
    }
  }
  return new Float32Array(bits.buffer);
}

/** Unpacks a block when it is first read: the first picture needs no tables. */
function unpackLater(blocks, name, unpackBlock) {
  const bytes = blocks[name];
  Object.defineProperty(blocks, name, {
    configurable: true,
    get() {
      const value = unpackBlock(bytes);
      Object.defineProperty(blocks, name, { value });
      return value;
    },
  });
}

/** The header and the blocks (typed arrays by name) of the page. */
async function readMatch(holder) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser has no DecompressionStream; open the page in a browser of 2024 or later");
  }
  const buffer = await unpack(holder.textContent.trim());
  holder.remove();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  if (header.format !== 1) throw new Error(`this page reads format 1, the data have format ${header.format}`);
  const arrays = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
  const area = Math.ceil((4 + length) / 8) * 8;
  const blocks = {};
  for (const [name, block] of Object.entries(header.blocks)) {
    const size = block.shape.reduce((a, b) => a * b, 1);
    blocks[name] = new arrays[block.dtype](buffer, area + block.start, size);
  }
  const outputs = header.outputs.flatMap((output) => output.agents.map(() => output));
  const columns = { actions: header.actions.flat(), observations: header.fields.flat(), outputs, match: header.match };
  for (const [name, dropped] of Object.entries(header.dropped_bits)) {
    const width = columns[name].reduce((sum, field) => sum + field.size, 0);
    unpackLater(blocks, name, (bytes) => unpackFloats(bytes, header.frames, width, dropped));
  }
  return { header, blocks };
}

// ---- operations ----------------------------------------------------------------------------------------------------

/** How many numbers follow the style code of an operation. */
function numberCount(style) {
  switch (style[0]) {
    case "layer": return 0;
    case "line": case "polygon": case "marks": return 2 * style[3];
    case "cells": return 4 + style[2] * style[3];
    case "panel": case "rectangle": return 4;
    case "rounded": case "arc": case "segment": case "dashes": return 5;
    case "circle": return 3;
    case "text": return 2;
    default: throw new Error(`unknown operation ${style[0]}`);
  }
}

/** Decodes the operation lists. A list is {styles, starts, numbers}: operation i begins at numbers[starts[i]]. */
class OperationReader {
  constructor(blocks, header) {
    this.streams = [blocks.op_styles, blocks.op_xs, blocks.op_ys].map((bytes) => new Integers(bytes));
    this.counts = Int32Array.from(header.styles, numberCount);
    this.scratch = new Int32Array(4096);
    this.empty = { styles: new Int32Array(0), starts: new Int32Array(0), numbers: new Int32Array(0) };
    this.layers = Array.from({ length: header.layers }, () => this.readList(this.empty));
    this.frame = 0;
    this.list = this.readList(this.empty);
    this.stored = [this.state()]; // entry k: the state after frame k * LIST_EVERY
  }

  state() {
    return { offsets: this.streams.map((stream) => stream.offset), list: this.list };
  }

  goTo(state) {
    this.list = state.list;
    this.streams.forEach((stream, k) => { stream.offset = state.offsets[k]; });
  }

  /** The operations of a frame. Frames are differences, so this decodes from the nearest stored list on. */
  at(frame) {
    const nearest = Math.min(Math.floor(frame / LIST_EVERY), this.stored.length - 1);
    if (frame < this.frame || nearest * LIST_EVERY > this.frame) {
      this.frame = nearest * LIST_EVERY;
      this.goTo(this.stored[nearest]);
    }
    while (this.frame < frame) {
      this.list = this.readList(this.list);
      this.frame++;
      if (this.frame === this.stored.length * LIST_EVERY) this.stored.push(this.state());
    }
    return this.list;
  }

  /** The next list, whose operations are differences to those of the list before that have their styles. */
  readList(before) {
    const [codes] = this.streams;
    const size = codes.next();
    const styles = new Int32Array(size);
    const starts = new Int32Array(size);
    const alike = this.placesByStyle(before);
    let [end, expected] = [0, 0];
    for (let i = 0; i < size; i++) {
      const code = codes.next();
      if (code === 0 && expected >= before.styles.length) throw new Error("an operation continues none of the list before");
      const style = styles[i] = code > 0 ? code - 1 : before.styles[expected];
      starts[i] = end;
      const place = alike.first[style];
      if (place >= 0) {
        alike.first[style] = alike.next[place];
        expected = place + 1;
      }
      end = this.readNumbers(this.counts[style], end, place >= 0 ? before.numbers : null, before.starts[place]);
    }
    return { styles, starts, numbers: this.scratch.slice(0, end) };
  }

  /** The first operation of each style, and of each operation the next one of its style; -1 for none. */
  placesByStyle(list) {
    const first = new Int32Array(this.counts.length).fill(-1);
    const next = new Int32Array(list.styles.length);
    for (let place = next.length - 1; place >= 0; place--) {
      next[place] = first[list.styles[place]];
      first[list.styles[place]] = place;
    }
    return { first, next };
  }

  /** Reads signed numbers into the scratch array; with ``base`` they are differences to its numbers. */
  readNumbers(count, end, base, baseStart) {
    if (end + count > this.scratch.length) {
      const larger = new Int32Array(2 * (end + count));
      larger.set(this.scratch);
      this.scratch = larger;
    }
    for (let k = 0; k < count; k++) {
      const number = this.streams[1 + k % 2].nextSigned();
      this.scratch[end + k] = base === null ? number : base[baseStart + k] + number;
    }
    return end + count;
  }
}

// ---- pictures ------------------------------------------------------------------------------------------------------

/** A style with its colours as CSS text. */
function prepareStyle(style, letters) {
  const kind = style[0];
  const color = (value) => (value ? colorText(value) : null);
  switch (kind) {
    case "panel": return { kind, fill: color(style[1]) };
    case "layer": return { kind, layer: style[1] };
    case "line": return { kind, stroke: color(style[1]), width: style[2], count: style[3] };
    case "dashes": return { kind, stroke: color(style[1]), width: style[2], count: 2 };
    case "polygon": return { kind, fill: color(style[1]), stroke: color(style[2]), count: style[3] };
    case "circle": return { kind, fill: color(style[1]), stroke: color(style[2]), width: style[3] };
    case "arc": return { kind, stroke: color(style[1]), width: style[2] };
    case "marks": return { kind, fill: color(style[1]), radius: style[2], count: style[3] };
    case "cells": return { kind, fills: style[1].map(color), rows: style[2], columns: style[3] };
    case "text": return {
      kind, words: shorten(String(style[1]), WORDS_DRAWN), letters: letters[style[3]] ?? {}, spacing: null,
      fill: color(style[2]), font: `${style[3]}px palaestra, sans-serif`, align: style[4],
    };
    default: return { kind, fill: color(style[1]) };
  }
}

function tracePoints(context, points, count) {
  context.beginPath();
  context.moveTo(points[0], points[1]);
  for (let i = 1; i < count; i++) context.lineTo(points[2 * i], points[2 * i + 1]);
}

/** Puts an upright or level line where Pillow draws it, which is sharp: on whole halves of a pixel. */
function snapLine(n, width) {
  const shift = Math.round(2 * width) % 2 === 0 ? 1 : 0.5;
  const snap = (x) => (Math.floor(2 * x) + shift) / 2;
  if (n[0] === n[2]) n[0] = n[2] = snap(n[0]);
  if (n[1] === n[3]) n[1] = n[3] = snap(n[1]);
}

/** One path for each kind of shape: fills and strokes it. ``n`` are the numbers of the operation, in pixels. */
const SHAPES = {
  line(context, style, n) {
    if (style.count === 0 || !style.stroke) return;
    if (style.count === 2) snapLine(n, style.width);
    tracePoints(context, n, style.count);
    context.lineJoin = style.width > 1 ? "round" : "bevel";
    strokePath(context, style.stroke, style.width);
  },
  dashes(context, style, n) {
    const [x, y, endX, endY, count] = n;
    const [dx, dy] = [(endX - x) / count, (endY - y) / count];
    for (let i = 0; i < count; i++) {
      const [left, top] = [x + i * dx, y + i * dy];
      SHAPES.line(context, style, [left, top, left + 0.5 * dx, top + 0.5 * dy]);
    }
  },
  polygon(context, style, n) {
    if (style.count === 0) return;
    tracePoints(context, n, style.count);
    context.closePath();
    fillPath(context, style.fill);
    context.lineJoin = "bevel";
    strokePath(context, style.stroke, 0.5);
  },
  rectangle(context, style, n) {
    context.beginPath();
    context.rect(n[0], n[1], n[2] - n[0], n[3] - n[1]);
    fillPath(context, style.fill);
  },
  rounded(context, style, n) {
    roundedPath(context, n[0], n[1], n[2] - n[0], n[3] - n[1], n[4]);
    fillPath(context, style.fill);
  },
  circle(context, style, n) {
    arcPath(context, n[0], n[1], n[2] + GROWTH, 0, 360);
    fillPath(context, style.fill);
    if (style.stroke) ringPath(context, style, n[0], n[1], n[2], 0, 360);
  },
  arc(context, style, n) {
    if (style.stroke) ringPath(context, style, n[0], n[1], n[2], n[3], n[4]);
  },
  marks(context, style, n) {
    context.beginPath();
    for (let i = 0; i < style.count; i++) {
      context.moveTo(n[2 * i] + style.radius + GROWTH, n[2 * i + 1]);
      context.arc(n[2 * i], n[2 * i + 1], style.radius + GROWTH, 0, 2 * Math.PI);
    }
    fillPath(context, style.fill);
  },
  /** Cells of one colour side by side are one rectangle; edges are those of the Python canvas, at twice the size. */
  cells(context, style, n) {
    const [left, top, right, bottom] = [n[0], n[1], n[2], n[3]].map((x) => Math.round(2 * x));
    const edge = (start, end, k, count) => (start + Math.ceil((k * (end - start)) / count)) / 2;
    for (let row = 0; row < style.rows; row++) {
      const [y, below] = [edge(top, bottom, row, style.rows), edge(top, bottom, row + 1, style.rows)];
      for (let start = 0, end = 1; start < style.columns; start = end++) {
        const first = 4 + row * style.columns;
        while (end < style.columns && n[first + end] === n[first + start]) end++;
        const [x, far] = [edge(left, right, start, style.columns), edge(left, right, end, style.columns)];
        context.fillStyle = style.fills[Math.round(n[first + start])];
        context.fillRect(x, y, far - x, below - y);
      }
    }
  },
  segment(context, style, n) {
    arcPath(context, n[0], n[1], n[2] + GROWTH, n[3], n[4]);
    context.closePath();
    fillPath(context, style.fill);
  },
};

function fillPath(context, fill) {
  if (!fill) return;
  context.fillStyle = fill;
  context.fill();
}

function strokePath(context, stroke, width) {
  if (!stroke) return;
  context.strokeStyle = stroke;
  context.lineWidth = width;
  context.stroke();
}

function roundedPath(context, x, y, width, height, radius) {
  context.beginPath();
  context.roundRect(x, y, width, height, clamp(radius, 0, Math.min(Math.abs(width), Math.abs(height)) / 2));
}

function arcPath(context, x, y, radius, startDeg, endDeg) {
  while (endDeg < startDeg) endDeg += 360;
  const start = (startDeg * Math.PI) / 180;
  context.beginPath();
  context.arc(x, y, Math.max(radius, 0), start, start + (Math.min(endDeg - startDeg, 360) * Math.PI) / 180);
}

/** Strokes inside of the radius. */
function ringPath(context, style, x, y, radius, startDeg, endDeg) {
  const width = Math.min(style.width, radius + GROWTH);
  arcPath(context, x, y, radius + GROWTH - width / 2, startDeg, endDeg);
  strokePath(context, style.stroke, width);
}

/** Length of plain words in Pillow; null for others, which stay as the browser places them. */
function lengthOf(words, widths) {
  const letters = Array.from(words);
  const isPlain = letters.every((letter) => Object.hasOwn(widths, letter));
  return isPlain ? letters.reduce((sum, letter) => sum + widths[letter], 0) : null;
}

/** By how much letters stand farther apart than the browser puts them, so that words are as long as in Pillow. */
function spacingOf(context, { words, letters }) {
  const length = lengthOf(words, letters);
  context.letterSpacing = "0px";
  return length === null ? 0 : (length - context.measureText(words).width) / Math.max(1, Array.from(words).length);
}

/** Pictures made of operations. A view is {scale, x, y}: device pixels a picture pixel, and of the picture's corner. */
class VectorPicture {
  constructor(header, blocks) {
    this.header = header;
    this.reader = new OperationReader(blocks, header);
    this.styles = header.styles.map((style) => prepareStyle(style, header.letters));
    this.numbers = new Float64Array(64);
    this.layerBitmaps = new Map();
    this.bitmapView = "";
  }

  /** Resolves when the font can be used. */
  async load() {
    await document.fonts.load("12px palaestra").catch(() => []);
  }

  async drawExact(frame, context, view) {
    this.draw(frame, context, view, false);
  }

  draw(frame, context, view, keepLayers = true) {
    const { width, height } = this.header;
    if (keepLayers) this.selectBitmaps(context, view);
    this.keepLayers = keepLayers;
    this.context = context;
    this.view = view;
    context.direction = "ltr";
    context.fontKerning = "none";
    this.beginPanel(0, 0, width, height, BACKGROUND);
    this.drawList(this.reader.at(frame));
    this.endPanel();
  }

  /** Layers are kept as bitmaps for one view only. */
  selectBitmaps(context, view) {
    const key = [view.scale, view.x, view.y, context.canvas.width, context.canvas.height].join();
    if (key !== this.bitmapView) this.layerBitmaps.clear();
    this.bitmapView = key;
  }

  drawList(list) {
    for (let i = 0; i < list.styles.length; i++) {
      const style = this.styles[list.styles[i]];
      const n = this.readOperation(list, i);
      if (style.kind === "panel") {
        this.endPanel();
        this.beginPanel(n[0], n[1], n[2], n[3], style.fill);
      } else if (style.kind === "layer") this.drawLayer(style.layer);
      else if (style.kind === "text") this.texts.push([style, n[0], n[1]]);
      else SHAPES[style.kind](this.context, style, n);
    }
  }

  /** The numbers of an operation in pixels, in an array that the next call overwrites. */
  readOperation(list, i) {
    const start = list.starts[i];
    const count = this.reader.counts[list.styles[i]];
    if (count > this.numbers.length) this.numbers = new Float64Array(2 * count);
    for (let k = 0; k < count; k++) this.numbers[k] = list.numbers[start + k] / this.header.scale;
    return this.numbers;
  }

  beginPanel(x, y, width, height, fill) {
    const { context, view } = this;
    this.panel = { x, y, width, height };
    this.texts = [];
    context.save();
    context.setTransform(view.scale, 0, 0, view.scale, view.x + x * view.scale, view.y + y * view.scale);
    context.beginPath();
    context.rect(0, 0, width, height);
    context.clip();
    fillPath(context, fill);
  }

  /** Texts stand above all shapes of their panel, as in the Python canvas. */
  endPanel() {
    const { context } = this;
    for (const [style, x, y] of this.texts) {
      if (context.font !== style.font) context.font = style.font;
      context.textAlign = style.align;
      context.fillStyle = style.fill;
      context.letterSpacing = `${(style.spacing ??= spacingOf(context, style))}px`;
      context.fillText(style.words, x, y);
    }
    context.restore();
  }

  drawLayer(layer) {
    const list = this.reader.layers[layer];
    if (!this.keepLayers || list.styles.length < CACHED_LAYER) {
      this.drawList(list);
      return;
    }
    const { context, view, panel } = this;
    const left = clamp(Math.floor(view.x + panel.x * view.scale), 0, context.canvas.width);
    const top = clamp(Math.floor(view.y + panel.y * view.scale), 0, context.canvas.height);
    const right = clamp(Math.ceil(view.x + (panel.x + panel.width) * view.scale), 0, context.canvas.width);
    const bottom = clamp(Math.ceil(view.y + (panel.y + panel.height) * view.scale), 0, context.canvas.height);
    if (right <= left || bottom <= top) return;
    const key = [layer, panel.x, panel.y, panel.width, panel.height].join();
    let kept = this.layerBitmaps.get(key);
    if (!kept) this.layerBitmaps.set(key, (kept = this.paintLayer(list, left, top, right - left, bottom - top)));
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(kept.bitmap, left, top);
    context.restore();
    this.texts.push(...kept.texts);
  }

  /** The shapes of a layer as a bitmap of the panel's visible part, and its texts. */
  paintLayer(list, left, top, width, height) {
    const { context, texts, view, panel } = this;
    const bitmap = make("canvas");
    bitmap.width = width;
    bitmap.height = height;
    this.context = bitmap.getContext("2d");
    this.texts = [];
    const { scale } = view;
    this.context.setTransform(scale, 0, 0, scale, view.x + panel.x * scale - left, view.y + panel.y * scale - top);
    this.drawList(list);
    const kept = { bitmap, texts: this.texts };
    this.context = context;
    this.texts = texts;
    return kept;
  }
}

/** Pictures that are WebP files; an empty file shows the picture of the frame before. */
class ImagePicture {
  constructor(header, bytes, starts, onReady) {
    this.header = header;
    this.bytes = bytes;
    this.starts = starts;
    this.onReady = onReady;
    this.decoded = new Map(); // source frame: bitmap, oldest first
    this.decoding = new Map(); // source frame: promise
    this.latest = null; // shown until the right one is decoded
    this.sources = new Int32Array(header.frames).fill(-1);
    for (let frame = 0; frame < header.frames; frame++) {
      const empty = starts[frame + 1] === starts[frame];
      this.sources[frame] = empty ? (frame > 0 ? this.sources[frame - 1] : -1) : frame;
    }
  }

  async load() {
    await this.bitmap(this.sources[0]);
  }

  async bitmap(source) {
    if (source < 0) return null;
    if (this.decoded.has(source)) return this.decoded.get(source);
    if (!this.decoding.has(source)) this.decoding.set(source, this.decode(source));
    return this.decoding.get(source);
  }

  async decode(source) {
    const file = this.bytes.subarray(this.starts[source], this.starts[source + 1]);
    try {
      const bitmap = await createImageBitmap(new Blob([file], { type: "image/webp" }));
      this.decoded.set(source, bitmap);
      if (this.decoded.size > IMAGES_KEPT) this.decoded.delete(this.decoded.keys().next().value);
      return bitmap;
    } finally {
      this.decoding.delete(source);
    }
  }

  async drawExact(frame, context, view) {
    paintBitmap(context, view, this.header, await this.bitmap(this.sources[frame]));
  }

  draw(frame, context, view) {
    const source = this.sources[frame];
    this.latest = source < 0 ? null : this.decoded.get(source) ?? this.latest;
    paintBitmap(context, view, this.header, this.latest);
    if (!this.decoded.has(source) && source >= 0 && this.decoding.size <= IMAGES_AHEAD) {
      this.bitmap(source).then((bitmap) => this.onReady((this.latest = bitmap)), showError);
    }
    for (let next = frame + 1; next <= Math.min(frame + IMAGES_AHEAD, this.sources.length - 1); next++) {
      if (this.decoding.size <= IMAGES_AHEAD) this.bitmap(this.sources[next]).catch(showError);
    }
  }
}

function paintBitmap(context, view, header, bitmap) {
  context.setTransform(view.scale, 0, 0, view.scale, view.x, view.y);
  context.fillStyle = BACKGROUND;
  context.fillRect(0, 0, header.width, header.height);
  context.imageSmoothingQuality = "high";
  if (bitmap) context.drawImage(bitmap, 0, 0, header.width, header.height);
}

return {
  byId, clamp, make, shorten, colorText, strokePath, onSizeChange, showError, readMatch, VectorPicture, ImagePicture,
};
})();
