// SPDX-License-Identifier: BSD-3-Clause
// Asks for an update, shows it, and asks for the next: never more than one is on its way.
"use strict";

const RECONNECT = 1000; // ms
const byId = (id) => document.getElementById(id);
const STATES = {
  connecting: "Connecting", waiting: "Waiting for the first frame", running: "Running", pass: "Passed", fail: "Failed",
  lost: "Connection lost",
};

let figures = null; // those that are on the page, by name
let sheets = new Map(); // of pictures, by description
let images = new Map(); // PNGs that came, by number
let over = false; // the run has ended

function text(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

function showState(state, seconds) {
  byId("state").dataset.state = state;
  text(byId("state-text"), STATES[state] || state);
  text(byId("time"), seconds === undefined ? "" : span(seconds));
  document.title = (STATES[state] || state) + " \u00b7 gdrcap live";
}

// ---- figures ----

class Figure {
  constructor(name, key, withSpark) {
    this.number = element("span", {class: "number", "data-key": key});
    this.unit = element("span", {class: "unit"});
    this.note = element("div", {class: "note"});
    this.spark = withSpark ? new Spark(name) : null;
    this.node = element("div", {}, element("dt", {}, name),
      element("dd", {}, this.number, " ", this.unit, this.note, this.spark && this.spark.node));
  }

  show(number, unit, note, isBad) {
    text(this.number, number);
    text(this.unit, unit);
    text(this.note, note || "");
    this.number.classList.toggle("bad", Boolean(isBad));
  }
}

function makeFigures(list) {
  figures = {};
  for (const [name, words, key, withSpark] of list) figures[name] = new Figure(words, key, withSpark);
  byId("figures").replaceChildren(...Object.values(figures).map((figure) => figure.node));
}

function showRate(figure, value, unit, whole) {
  figure.show(decimal(value), unit, whole ? "over the whole run" : "in the last second");
  figure.spark.node.style.display = whole ? "none" : "";
  if (!whole) figure.spark.add(value);
}

function total(list, key) {
  return list.reduce((sum, one) => sum + BigInt(one[key] ?? 0), 0n);
}

function frameRate(mpps) {
  return mpps === null ? [null, "frames/s"] : mpps >= 0.1 ? [mpps, "M frames/s"] : [mpps * 1e6, "frames/s"];
}

function showImageFigures(update) {
  if (!figures) makeFigures([["rate", "Images", "", true], ["gbps", "On the wire", "", true], ["complete", "Complete", "complete"],
    ["lost", "Pieces lost", "lost"], ["latency", "Last piece to here, p50", ""]]);
  const list = update.images, whole = update.rate.whole;
  const rates = list.map((one) => one.rate);
  const done = total(list, "complete") + total(list, "incomplete");
  const rate = whole ? (update.seconds ? Number(done) / update.seconds : null) : rates.includes(null) ? null : rates.reduce((sum, one) => sum + one, 0);
  showRate(figures.rate, rate, "images/s", whole);
  showRate(figures.gbps, update.rate.gbps, "Gb/s", whole);
  const bad = ["incomplete", "dropped", "skipped"].map((key) => [key, total(list, key)]);
  figures.complete.show(count(total(list, "complete")), "images", bad.map(([key, value]) => key + " " + count(value)).join(" \u00b7 "));
  const pieces = list.map((one) => one.pieces), lost = total(pieces, "lost");
  figures.lost.show(count(lost), "", percent(lost, total(pieces, "expected")) + " of " + count(total(pieces, "expected")), lost > 0n);
  const latency = list.reduce((worst, one) => (one.latency.p50 ?? -1) > (worst.p50 ?? -1) ? one.latency : worst, list[0].latency);
  figures.latency.show(...nanoseconds(latency.p50), latency.images ? "p99 " + nanoseconds(latency.p99).join(" ") + ", last " + count(latency.images) + " images" : "");
}

function showFrameFigures(update) {
  if (!figures) makeFigures([["gbps", "On the wire", "", true], ["mpps", "Frames", "", true], ["valid", "Valid", "frames.valid"],
    ["lost", "Lost", "frames.lost"], ["damaged", "Damaged", "frames.damaged"], ["ber", "Bit error ratio", ""]]);
  const frames = update.frames || {}, whole = update.rate.whole;
  showRate(figures.gbps, update.rate.gbps, "Gb/s", whole);
  showRate(figures.mpps, ...frameRate(update.rate.mpps), whole);
  figures.valid.show(count(frames.valid), "", "of " + count(frames.received) + " received");
  figures.lost.show(count(frames.lost), "", over ? percent(frames.lost, frames.sent) : "those in flight among them", over && !isZero(frames.lost));
  figures.damaged.show(count(frames.damaged), "", "duplicate " + count(frames.duplicate) + " \u00b7 reordered " + count(frames.reordered), !isZero(frames.damaged));
  const found = update.bits;
  figures.ber.show(found && !isZero(found.wrong) ? Number(found.ratio).toExponential(2) : "0", "",
    found ? count(found.wrong) + " of " + count(found.checked) + " wrong" : "", found && !isZero(found.wrong));
}

// ---- pictures ----

function pieces(facts) {
  if (facts.end === "complete") return "complete";
  const missing = facts.pieces ? count(facts.pieces - facts.received) + " of " + count(facts.pieces) + " pieces missing" : count(facts.holes) + " holes";
  return "incomplete (" + facts.end + "), " + missing;
}

// A picture with stripes where pieces are missing: there it is transparent, and the stripes are behind it.
class Drawing {
  constructor(small) {
    this.drawn = 0;
    this.canvas = element("canvas", {class: small ? "canvas small" : "canvas", role: "img", width: 640, height: 480});
    this.caption = element("p", {class: "caption"});
    this.node = element("div", {class: "body"}, this.canvas, this.caption);
  }

  async show(facts, png) {
    this.drawn = facts.drawn;
    const caption = ["image " + count(facts.number) + ", stream " + count(facts.stream) + ": "];
    if (facts.holes && facts.width) caption.push(element("span", {class: "swatch", role: "img", "aria-label": "drawn as stripes:"}), " ");
    caption.push(element("span", {class: facts.end === "complete" ? "good" : "bad"}, pieces(facts)));
    if (facts.holes_unmarked) caption.push(" " + count(facts.holes_unmarked) + " more holes are not marked");
    this.caption.replaceChildren(...caption);
    this.canvas.setAttribute("aria-label", this.caption.textContent);
    if (!facts.width) {
      this.node.replaceChildren(facts.plot ? waveform(facts.plot) : "", this.caption);
      return;
    }
    const bitmap = await createImageBitmap(new Blob([png], {type: "image/png"}));
    if (this.canvas.width !== bitmap.width || this.canvas.height !== bitmap.height) {
      this.canvas.width = bitmap.width;
      this.canvas.height = bitmap.height;
    }
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, bitmap.width, bitmap.height);
    context.drawImage(bitmap, 0, 0);
    bitmap.close();
    if (this.node.firstChild !== this.canvas) this.node.replaceChildren(this.canvas, this.caption);
  }
}

// Words and counts, in as many columns as there is room for.
class Counts {
  constructor() {
    this.cells = new Map();
    this.node = element("dl", {class: "counts"});
  }

  show(rows) {
    for (const [words, key, value, isBad] of rows) {
      if (value === null || value === undefined) continue;
      if (!this.cells.has(key)) {
        this.cells.set(key, element("dd", {"data-key": key}));
        this.node.append(element("div", {}, element("dt", {}, words), this.cells.get(key)));
      }
      text(this.cells.get(key), count(value));
      this.cells.get(key).classList.toggle("bad", Boolean(isBad) && !isZero(value));
    }
  }
}

class Sheet {
  constructor(name) {
    this.stream = "";
    this.last = new Drawing(false);
    this.incomplete = new Drawing(true);
    this.plots = element("div", {});
    this.holes = element("div", {hidden: ""}, element("h3", {}, "Last one with pieces missing"), this.incomplete.node);
    this.side = element("div", {class: "side"}, this.plots, this.holes);
    this.counts = new Counts();
    this.select = element("select", {}, element("option", {value: ""}, "all"));
    this.choice = element("label", {hidden: ""}, "stream ", this.select);
    this.select.addEventListener("change", () => { this.stream = this.select.value; });
    this.main = element("div", {class: "picture"}, this.last.node, this.side);
    this.node = element("section", {class: "sheet", "aria-label": "Last image of " + name},
      element("div", {class: "title"}, element("h2", {}, name + ": last image"), this.choice), this.main, this.counts.node);
  }

  streams(ids) {
    this.choice.hidden = ids.length < 2;
    for (const id of ids.slice(this.select.options.length - 1)) this.select.append(element("option", {value: String(id)}, String(id)));
  }

  async show(facts, png) {
    const drawing = facts.which === "last" ? this.last : this.incomplete;
    if (facts.drawn === drawing.drawn || (this.stream !== "" && String(facts.stream) !== this.stream)) return;
    await drawing.show(facts, png);
    if (facts.which !== "last") {
      this.holes.hidden = false;
      return;
    }
    this.main.classList.toggle("line", !facts.width);
    const about = element("p", {class: "caption"}, facts.width
      ? facts.width + " \u00d7 " + facts.height + " " + facts.format + (facts.step > 1 ? ", shown 1 : " + facts.step : "") + "; " + facts.where
      : "the first samples as " + facts.format + "; " + facts.where + (facts.why ? ". " + facts.why : ""));
    this.plots.replaceChildren(facts.histogram ? histogram(facts.histogram) : facts.plot.spectrum ? spectrum(facts.plot.spectrum) : "", about);
  }

  showCounts(one, index) {
    const key = (name) => "images." + index + "." + name;
    this.counts.show([
      ["complete", key("complete"), one.complete], ["incomplete", key("incomplete"), one.incomplete, true],
      ["dropped", key("dropped"), one.dropped, true], ["skipped", key("skipped"), one.skipped, true],
      ["pieces placed", key("pieces.placed"), one.pieces.placed], ["pieces lost", key("pieces.lost"), one.pieces.lost, true],
      ["frames late", key("frames.late"), one.frames.late], ["frames misfit", key("frames.misfit"), one.frames.misfit],
      ["frames duplicate", key("frames.duplicate"), one.frames.duplicate], ["frames of a second leg", key("frames.second_leg"), one.frames.second_leg],
      ["frames in conflict", key("frames.conflict"), one.frames.conflict, true], ["frames without room", key("frames.no_room"), one.frames.no_room],
      ["restarts", key("restarts"), one.restarts], ["bytes", key("bytes"), one.bytes]]);
  }
}

async function showPictures(update) {
  for (const [index, one] of update.images.entries()) {
    if (!sheets.has(index)) {
      sheets.set(index, new Sheet(one.name));
      byId("pictures").append(sheets.get(index).node);
    }
    sheets.get(index).showCounts(one, index);
    sheets.get(index).streams(one.streams.map((stream) => stream.id));
  }
  for (const facts of update.pictures) await sheets.get(facts.index).show(facts, images.get(facts.drawn));
}

// ---- tables ----

function table(title, heads, rows) {
  return element("section", {class: "sheet"}, element("h2", {}, title),
    element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": title}, element("table", {},
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {scope: "col"}, head)))),
      element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((cell, i) =>
        i ? element("td", cell && cell.key ? {"data-key": cell.key, class: cell.bad ? "bad" : null} : {}, cell && cell.key ? cell.words : cell)
          : element("th", {scope: "row"}, cell))))))));
}

function cell(key, value, isBad) {
  return {key: key, words: count(value), bad: isBad && !isZero(value)};
}

function imageTables(update) {
  const rows = update.images.flatMap((one, i) => one.streams.length < 2 ? [] : one.streams.map((stream, j) => {
    const key = (name) => "images." + i + ".streams." + j + "." + name;
    return [one.name + ", stream " + count(stream.id), decimal(stream.rate), decimal(stream.gbps), cell(key("complete"), stream.complete),
      cell(key("incomplete"), stream.incomplete, true), cell(key("dropped"), stream.dropped, true), cell(key("skipped"), stream.skipped, true),
      cell(key("pieces.lost"), stream.pieces.lost, true)];
  }));
  const incomplete = update.images.flatMap((one) => one.first_incomplete.map((found) => [
    one.name + ", stream " + count(found.stream), count(found.number), found.by,
    count(found.received) + (found.pieces === null ? "" : " of " + count(found.pieces)),
    found.missing.slice(0, 3).map(([from, bytes]) => count(from) + " +" + count(bytes)).join(", ") + (found.ranges > 3 ? ", \u2026" : "")]));
  return [rows.length ? table("Streams", ["stream", "images/s", "Gb/s", "complete", "incomplete", "dropped", "skipped", "pieces lost"], rows) : null,
    incomplete.length ? table("First incomplete images", ["stream", "image", "closed by", "pieces came", "missing bytes (from + bytes)"], incomplete) : null];
}

const CAUSES = {
  nic_missed: "the port had no buffer for them", nic_error: "the port dropped them as bad, or their queue was in error", unexplained: "no counter says where",
  out_of_buffer: "no free slot in the card's queue", card_full: "the card's own buffer was full", wire_crc: "damaged on the wire (CRC)",
  wire_symbol: "symbol errors on the wire", wire_length: "wrong length field", queue_error: "receive buffers in error",
};

let frameCounts = null;

function showFrameCounts(update) {
  if (!frameCounts) {
    frameCounts = new Counts();
    byId("pictures").append(element("section", {class: "sheet"}, element("h2", {}, "Frames"), frameCounts.node));
  }
  const frames = update.frames || {}, by = update.lost_by || {causes: {}};
  const facts = [["received", "frames.received", frames.received], ["valid", "frames.valid", frames.valid], ["damaged", "frames.damaged", frames.damaged, true],
    ["duplicate", "frames.duplicate", frames.duplicate, true], ["reordered", "frames.reordered", frames.reordered, true],
    ["lost", "frames.lost", frames.lost, over], ["filtered", "filtered", update.filtered], ["stale", "stale", update.stale, true],
    ["cut", "cut", update.cut, true], ["a PRBS lost its phase", "lock_lost", update.lock_lost, true],
    ["bits checked", "bits.checked", update.bits && update.bits.checked], ["bits wrong", "bits.wrong", update.bits && update.bits.wrong, true]];
  const causes = [...["nic_missed", "nic_error", "unexplained"].map((key) => [key, by[key]]), ...Object.entries(by.causes || {}).filter(([key]) => key in CAUSES)];
  for (const [key, value] of causes) {
    const name = (key in by ? "lost_by." : "lost_by.causes.") + key;
    // One that was there stays when it is 0 again: what was in flight has come.
    if (!isZero(value) || frameCounts.cells.has(name)) facts.push(["lost: " + CAUSES[key], name, value, over]);
  }
  frameCounts.show(facts);
}

function frameTables(update) {
  const damage = update.damage.map((one) => [one.kind, one.sequence === null ? "\u2013" : count(one.stream), one.sequence === null ? "\u2013" : count(one.sequence),
    count(one.queue), one.wrong_bits === null ? "\u2013" : count(one.wrong_bits), one.offset === null ? "\u2013" : count(one.offset),
    bits(one.expected, one.got), bits(one.got, one.expected)]);
  const streams = update.streams.length < 2 ? [] : update.streams.map((one, i) => {
    const key = (name) => "streams." + i + "." + name;
    return [count(one.stream), ...["received", "valid", "damaged", "duplicate", "reordered", "lost"].map((name) =>
      cell(key("frames." + name), one.frames[name], name !== "received" && name !== "valid" && (over || name !== "lost")))];
  });
  const title = "Streams" + (update.streams_left ? " (the first " + update.streams.length + "; " + count(update.streams_left) + " more)" : "");
  return [damage.length ? table("First damaged frames, at their first wrong byte", ["kind", "stream", "frame", "queue", "wrong bits", "byte", "expected", "got"], damage) : null,
    streams.length ? table(title, ["stream", "received", "valid", "damaged", "duplicate", "reordered", "lost"], streams) : null];
}

// Tables are made anew when they changed, at most once a second, and not while somebody selects in them.
let tablesAt = 0;
function showTables(update) {
  const now = performance.now();
  if (!over && now - tablesAt < 1000) return;
  const made = (update.images ? imageTables(update) : frameTables(update)).filter((node) => node);
  if (update.messages.length)
    made.push(element("section", {class: "sheet"}, element("h2", {}, "Messages"),
      element("ul", {class: "messages"}, ...update.messages.map((message) => element("li", {}, message)))));
  const there = [...byId("tables").children];
  if (made.length === there.length && made.every((node, i) => node.isEqualNode(there[i]))) return;
  const selection = document.getSelection();
  if (!over && selection && !selection.isCollapsed && byId("tables").contains(selection.anchorNode)) return;
  tablesAt = now;
  const scrolled = [...byId("tables").querySelectorAll(".scroll")].map((node) => node.scrollLeft);
  const hasFocus = [...byId("tables").querySelectorAll(".scroll")].indexOf(document.activeElement);
  byId("tables").replaceChildren(...made);
  byId("tables").querySelectorAll(".scroll").forEach((node, i) => { node.scrollLeft = scrolled[i] || 0; if (i === hasFocus) node.focus({preventScroll: true}); });
}

// ---- updates ----

function what(update) {
  const memory = update.memory;
  const ports = (update.tx_ports && update.tx_ports.length && update.ports && update.tx_ports.join() !== update.ports.join() ? update.tx_ports.join(", ") + " \u2192 " : "") + (update.ports || []).join(", ");
  return [ports, memory && (memory.kind === "device" && memory.driver === "gpu_cuda" ? "GPU memory, " + memory.gpu : memory.driver === "gpu_host" ? "host memory" : memory.kind + " memory")].filter(Boolean).join(" \u00b7 ");
}

let run = null; // whose updates are shown

async function show(update) {
  if (run !== null && run !== update.run) {
    location.reload(); // the program was started again
    return;
  }
  run = update.run;
  over = update.state === "pass" || update.state === "fail";
  byId("lost-connection").hidden = true;
  showState(update.state, update.seconds);
  text(byId("what"), what(update));
  byId("errors").hidden = !(over && update.errors.length);
  const errors = over ? update.errors : [];
  if (byId("errors").childElementCount !== errors.length) byId("errors").replaceChildren(...errors.map((error) => element("li", {}, error)));
  if (update.images) {
    showImageFigures(update);
    await showPictures(update);
  } else {
    showFrameFigures(update);
    showFrameCounts(update);
  }
  showTables(update);
  document.body.dataset.updates = Number(document.body.dataset.updates || 0) + 1;
}

// Length and text of the JSON, then length and bytes of each picture; 0: the one that is here.
function read(buffer) {
  const view = new DataView(buffer);
  let at = 4 + view.getUint32(0, true);
  const update = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, at - 4)));
  const before = images;
  images = new Map();
  for (const {drawn} of update.pictures) {
    const bytes = view.getUint32(at, true);
    images.set(drawn, bytes ? buffer.slice(at + 4, at + 4 + bytes) : images.get(drawn) || before.get(drawn));
    at += 4 + bytes;
  }
  return update;
}

function connect() {
  const address = new URL("updates", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  const next = () => { if (socket.readyState === WebSocket.OPEN) socket.send("next"); };
  socket.addEventListener("open", next);
  socket.addEventListener("message", async (message) => {
    await show(read(message.data));
    // A page that nobody sees asks for nothing.
    if (document.hidden) document.addEventListener("visibilitychange", next, {once: true});
    else next();
  });
  socket.addEventListener("close", () => {
    if (!over) {
      showState("lost");
      text(byId("lost-connection"), "Nothing comes from the program: it was ended, or the way to it is down. What is below is the last that came; this page tries again each second.");
      byId("lost-connection").hidden = false;
    }
    setTimeout(connect, RECONNECT);
  });
}

connect();
