// SPDX-License-Identifier: BSD-3-Clause
// Elements, numbers and plots. Whatever came from elsewhere becomes text, and never markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== undefined && value !== null) node.setAttribute(name, value);
  for (const child of children)
    if (child !== null && child !== undefined) node.append(child);
  return node;
}

function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function drawn(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// Counts beyond 2^53 come as text: digits are grouped as text in either case.
function count(value) {
  if (value === null || value === undefined) return "not known";
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

function isZero(value) {
  return value === null || value === undefined || Number(value) === 0;
}

// Three significant digits or more, and never 1e-7 where 0 is meant.
function decimal(value) {
  if (value === null || value === undefined) return "\u2013";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-3) return value.toExponential(1);
  if (size >= 1000) return count(Math.round(value));
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

function percent(part, whole) {
  if (isZero(whole)) return "";
  const share = 100 * Number(part) / Number(whole);
  return (share === 0 ? "0" : share < 0.001 ? share.toExponential(1) : share.toPrecision(2)) + " %";
}

function nanoseconds(value) {
  if (value === null || value === undefined) return ["\u2013", ""];
  if (value < 1e3) return [String(Math.round(value)), "ns"];
  if (value < 1e6) return [decimal(value / 1e3), "\u00b5s"];
  if (value < 1e9) return [decimal(value / 1e6), "ms"];
  return [decimal(value / 1e9), "s"];
}

function span(seconds) {
  const whole = Math.floor(seconds);
  const two = (value) => String(value).padStart(2, "0");
  if (whole < 60) return seconds.toFixed(1) + " s";
  const hours = Math.floor(whole / 3600);
  return (hours ? hours + ":" + two(Math.floor(whole / 60) % 60) : Math.floor(whole / 60)) + ":" + two(whole % 60);
}

// The last minute of a number, as a line from 0 to its largest.
class Spark {
  constructor(what) {
    this.points = [];
    this.line = drawn("polyline", {});
    this.node = drawn("svg", {class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": what + ", last minute"}, this.line);
  }

  add(value) {
    const now = performance.now() / 1000;
    if (value === null || value === undefined) return;
    this.points.push([now, value]);
    while (this.points[0][0] < now - 60) this.points.shift();
    const top = Math.max(...this.points.map((point) => point[1])) || 1;
    const start = Math.min(this.points[0][0], now - 10);
    this.line.setAttribute("points", this.points.map(([time, y]) =>
      ((time - start) / (now - start) * 100).toFixed(2) + "," + (19 - 18 * y / top).toFixed(2)).join(" "));
  }
}

function axis(...words) {
  return element("p", {class: "axis"}, ...words.map((word) => element("span", {}, word)));
}

function bars(bins, top) {
  let path = "M0 100";
  bins.forEach((value, i) => {
    const y = 100 - 100 * Math.sqrt(value / top);
    path += "L" + i + " " + y.toFixed(2) + "L" + (i + 1) + " " + y.toFixed(2);
  });
  return path + "L" + bins.length + " 100";
}

function histogram(found) {
  const names = Object.keys(found.bins);
  const top = Math.max(1, ...names.flatMap((name) => found.bins[name]));
  const plot = drawn("svg", {class: "plot", viewBox: "0 0 " + found.bins[names[0]].length + " 100", preserveAspectRatio: "none", role: "img",
    "aria-label": "Histogram of " + names.join(", ")},
    ...names.map((name) => drawn("path", {class: name, d: bars(found.bins[name], top)})));
  return element("div", {}, element("h3", {}, "Histogram" + (names[0] === "gray" ? "" : ": " + names.join(", "))), plot,
    axis("0", count(found.white)),
    element("p", {class: "caption"}, count(found.pixels) + " pixels, missing ones left out; heights are square roots"));
}

// Lowest and highest of each column; where all samples are missing, there is a gap.
function waveform(plot) {
  const values = [...plot.low, ...plot.high].filter((value) => value !== null);
  const bottom = Math.min(...values, 0), top = Math.max(...values, bottom + 1e-9);
  const y = (value) => (100 - 100 * (value - bottom) / (top - bottom)).toFixed(2);
  let path = "";
  plot.low.forEach((low, i) => {
    if (low === null) return;
    path += "M" + (i + 0.5) + " " + y(low) + "L" + (i + 0.5) + " " + y(plot.high[i]);
    if (i + 1 < plot.low.length && plot.low[i + 1] !== null) path += "L" + (i + 1.5) + " " + y(plot.low[i + 1]);
  });
  return element("div", {}, drawn("svg", {class: "plot tall", viewBox: "0 0 " + plot.low.length + " 100", preserveAspectRatio: "none", role: "img",
    "aria-label": "Samples, " + decimal(bottom) + " to " + decimal(top)}, drawn("path", {class: "line", d: path})),
  axis("sample 0", "from " + decimal(bottom) + " to " + decimal(top), count(plot.samples)));
}

function spectrum(points) {
  const path = points.map((value, i) => (i ? "L" : "M") + i + " " + (-100 * value / 120).toFixed(2)).join("");
  return element("div", {}, element("h3", {}, "Spectrum"), drawn("svg", {class: "plot", viewBox: "0 0 " + (points.length - 1) + " 100", preserveAspectRatio: "none",
    role: "img", "aria-label": "Spectrum in decibels below its peak"}, drawn("path", {class: "line", d: path})),
  axis("0", "0 to \u2212120 dB of the peak", "half the sample rate"));
}

// A byte, and which of its bits are wrong.
function bits(value, other) {
  if (value === null || value === undefined) return element("code", {}, "\u2013");
  const node = element("code", {}, "0x" + value.toString(16).padStart(2, "0") + " ");
  for (let i = 7; i >= 0; i--) {
    const bit = String(value >> i & 1);
    node.append(other !== null && ((value ^ other) >> i & 1) ? element("b", {}, bit) : bit);
  }
  return node;
}
