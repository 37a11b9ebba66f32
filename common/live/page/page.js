"use strict";
const NS = "http://www.w3.org/2000/svg";
const WIDTH = 420, HEIGHT = 190, LEFT = 46, RIGHT = 12, TOP = 8, BOTTOM = 24;
const NODES_MAX = 16;
const byId = id => document.getElementById(id);

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function draw(parent, tag, attributes, text) {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

function number(value, digits = 3) {
  if (value === null || value === undefined) return "\u2013";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toFixed(1) + " G";
  if (size >= 1e6) return (value / 1e6).toFixed(1) + " M";
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size < 0.001) return value.toExponential(1);
  return String(+value.toPrecision(digits));
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit++; }
  return `${number(value)} ${units[unit]}`;
}

function duration(seconds) {
  if (seconds === null || seconds < 0) return "\u2013";
  const whole = Math.round(seconds);
  if (whole >= 3600) return `${Math.floor(whole / 3600)} h ${Math.floor(whole / 60) % 60} min`;
  if (whole >= 60) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return seconds < 10 ? `${seconds.toFixed(1)} s` : `${whole} s`;
}

const percent = value => value === null ? "\u2013" : `${(100 * value).toFixed(2)} %`;

/* Round values for the marks of an axis. */
function ticks(low, high, count) {
  const rough = (high - low) / (count + 1) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(value => value >= rough);
  const list = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) list.push(+at.toPrecision(12));
  return list;
}

/* A chart of curves over steps: {label, style, steps, values, dots}. It keeps the step that a pointer
 * or the arrow keys chose. */
class Chart {
  constructor(id, text) {
    this.box = byId(id);
    this.text = text;
    this.box.tabIndex = 0;
    this.legend = make("div", {class: "legend"});
    this.plot = make("div");
    this.said = make("div", {class: "said", "aria-live": "off"});
    this.box.append(this.legend, this.plot, this.said);
    this.chosen = null;
    this.curves = [];
    this.plot.addEventListener("pointermove", event => this.point(event));
    this.plot.addEventListener("pointerleave", () => this.choose(null));
    this.box.addEventListener("keydown", event => this.key(event));
  }

  point(event) {
    const place = this.plot.getBoundingClientRect();
    const x = (event.clientX - place.left) / place.width * WIDTH;
    this.choose(Math.round(this.low + (x - LEFT) / (WIDTH - LEFT - RIGHT) * (this.high - this.low)));
  }

  key(event) {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    const steps = this.curves.length ? this.curves[0].steps : [];
    if (event.key === "Escape") this.choose(null);
    if (step === undefined || !steps.length) return;
    event.preventDefault();
    const at = this.chosen === null ? steps.length : nearest(steps, this.chosen);
    this.choose(steps[Math.min(Math.max(at + step, 0), steps.length - 1)]);
    this.said.setAttribute("aria-live", "polite");
  }

  choose(step) {
    this.chosen = step;
    this.show(this.curves);
  }

  show(curves) {
    this.curves = curves.filter(curve => curve.values.some(value => value !== null));
    this.legend.replaceChildren(...this.curves.map(curve => make("span", {}, make("i", {class: `f-${curve.style}`}), curve.label)));
    this.legend.hidden = this.curves.length < 2;
    if (!this.curves.length) {
      this.plot.replaceChildren(make("p", {class: "quiet"}, "Nothing yet."));
      this.said.textContent = "";
      return;
    }
    const steps = this.curves.flatMap(curve => curve.steps);
    const values = this.curves.flatMap(curve => curve.values).filter(value => value !== null);
    this.low = Math.min(...steps);
    this.high = Math.max(...steps, this.low + 1);
    let bottom = Math.min(...values), top = Math.max(...values);
    const margin = (top - bottom) * 0.06 || Math.abs(top) * 0.1 || 1;
    bottom = bottom >= 0 ? Math.max(0, bottom - margin) : bottom - margin;
    top += margin;
    const x = step => LEFT + (step - this.low) / (this.high - this.low) * (WIDTH - LEFT - RIGHT);
    const y = value => TOP + (top - value) / (top - bottom) * (HEIGHT - TOP - BOTTOM);
    const svg = document.createElementNS(NS, "svg");
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", this.curves.map(curve => `${curve.label}: ${this.text(curve.values.at(-1))}`).join(", "));
    for (const value of ticks(bottom, top, 4)) {
      draw(svg, "line", {class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value)});
      draw(svg, "text", {x: LEFT - 6, y: y(value) + 4, "text-anchor": "end"}, this.text(value));
    }
    for (const step of ticks(this.low, this.high, 4).filter(step => step % 1 === 0)) {
      draw(svg, "text", {x: x(step), y: HEIGHT - 6, "text-anchor": "middle"}, number(step, 6));
    }
    for (const curve of this.curves) drawCurve(svg, curve, x, y);
    this.showChosen(svg, x, y);
    this.plot.replaceChildren(svg);
  }

  showChosen(svg, x, y) {
    if (this.chosen === null) {
      this.said.textContent = "over steps";
      return;
    }
    const said = [];
    let step = this.chosen;
    for (const curve of this.curves) {
      const at = nearest(curve.steps, this.chosen);
      if (curve.values[at] === null) continue;
      step = curve === this.curves[0] ? curve.steps[at] : step;
      draw(svg, "circle", {class: `f-${curve.style}`, r: 4, cx: x(curve.steps[at]), cy: y(curve.values[at])});
      said.push(`${curve.label} ${this.text(curve.values[at])} at step ${number(curve.steps[at], 9)}`);
    }
    draw(svg, "line", {class: "cursor", x1: x(step), x2: x(step), y1: TOP, y2: HEIGHT - BOTTOM});
    this.said.textContent = said.join(", ");
  }
}

function nearest(steps, step) {
  let best = 0;
  steps.forEach((at, index) => { if (Math.abs(at - step) < Math.abs(steps[best] - step)) best = index; });
  return best;
}

function drawCurve(svg, curve, x, y) {
  let path = "", is_open = false;
  curve.values.forEach((value, index) => {
    if (value === null) { is_open = false; return; }
    path += `${is_open ? "L" : "M"}${x(curve.steps[index]).toFixed(1)} ${y(value).toFixed(1)}`;
    is_open = true;
    if (curve.dots) draw(svg, "circle", {class: `f-${curve.style}`, r: 3, cx: x(curve.steps[index]), cy: y(value)});
  });
  draw(svg, "path", {class: `curve s-${curve.style}`, d: path});
}

const charts = {
  loss: new Chart("chart-loss", value => number(value)),
  accuracy: new Chart("chart-accuracy", value => value === null ? "\u2013" : `${number(100 * value)} %`),
  rate: new Chart("chart-rate", value => number(value)),
};

function showCharts(state) {
  const [steps, , loss, rate] = state.progress, [marks, , accuracy, test] = state.evaluations;
  charts.loss.show([{label: "training", style: "compute", steps, values: loss},
                    {label: "test", style: "second", steps: marks, values: test, dots: true}]);
  charts.accuracy.show([{label: "test accuracy", style: "second", steps: marks, values: accuracy, dots: true}]);
  charts.rate.show([{label: "images/s", style: "compute", steps, values: rate}]);
}

const PARTS = [["compute", "compute_ms", "compute"], ["wait", "exchange_wait_ms", "exchange wait"], ["input", "input_wait_ms", "input wait"]];

function showRanks(state) {
  const total = rank => PARTS.reduce((sum, [, key]) => sum + (rank[key] || 0), 0);
  const longest = Math.max(...state.ranks.map(total), 1e-9);
  const legend = make("div", {class: "legend"}, ...PARTS.map(([style, , label]) => make("span", {}, make("i", {class: `f-${style}`}), label)));
  const list = make("div", {class: "list", tabindex: 0, "aria-label": "Ranks"}, ...state.ranks.map((rank, index) => {
    const parts = make("div", {class: "parts"}, ...PARTS.map(([style, key]) => {
      const part = make("div", {class: `f-${style}`});
      part.style.width = `${100 * (rank[key] || 0) / longest}%`;
      return part;
    }));
    const said = PARTS.map(([, key, label]) => `${label} ${number(rank[key])} ms`).join(", ");
    parts.setAttribute("role", "img");
    parts.setAttribute("aria-label", said);
    parts.title = said;
    const isSlow = state.workers > 1 && index === state.slowest && rank.steps > 0;
    return make("div", {class: isSlow ? "rank slow" : "rank"}, make("span", {class: "who"}, `rank ${index}`), parts,
                make("span", {class: "ms"}, `${number(total(rank))} ms`));
  }));
  byId("ranks").replaceChildren(legend, list);
  if (state.workers > state.ranks.length) {
    byId("ranks").append(make("p", {class: "quiet"}, `and ${state.workers - state.ranks.length} more ranks`));
  }
}

/* An arrow between two circles, and the bytes that went that way. */
function drawLink(svg, from, to, label, bend) {
  const dx = to.x - from.x, dy = to.y - from.y, length = Math.hypot(dx, dy) || 1;
  const ux = dx / length, uy = dy / length;
  const a = {x: from.x + ux * (from.r + 2), y: from.y + uy * (from.r + 2)};
  const b = {x: to.x - ux * (to.r + 6), y: to.y - uy * (to.r + 6)};
  const middle = {x: (a.x + b.x) / 2 - uy * bend, y: (a.y + b.y) / 2 + ux * bend};
  draw(svg, "path", {class: "link", d: `M${a.x} ${a.y}Q${middle.x} ${middle.y} ${b.x} ${b.y}`});
  const tx = b.x - middle.x, ty = b.y - middle.y, size = Math.hypot(tx, ty) || 1, hx = tx / size, hy = ty / size;
  draw(svg, "path", {class: "head", d: `M${b.x + hx * 4} ${b.y + hy * 4}L${b.x - hx * 5 - hy * 4} ${b.y - hy * 5 + hx * 4}L${b.x - hx * 5 + hy * 4} ${b.y - hy * 5 - hx * 4}Z`});
  const aside = bend > 0 ? bend * 0.5 + 4 : 12, side = -uy > 0.3 ? "start" : uy > 0.3 ? "end" : "middle";
  const curve = {x: (a.x + b.x + 2 * middle.x) / 4, y: (a.y + b.y + 2 * middle.y) / 4}; // where the arrow is halfway
  if (label) draw(svg, "text", {x: curve.x - uy * aside, y: curve.y + ux * aside + 4, "text-anchor": side}, label);
}

function drawNode(svg, node, name, style) {
  draw(svg, "circle", {class: `node ${style}`, cx: node.x, cy: node.y, r: node.r});
  draw(svg, "text", {class: "strong", x: node.x, y: node.y + 4, "text-anchor": "middle"}, name);
}

function showTopology(state) {
  const box = byId("topology"), count = Math.min(state.workers, NODES_MAX);
  if (state.shape === "alone") {
    box.replaceChildren(make("p", {class: "quiet"}, "One worker, which sends nothing."));
    return;
  }
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", "0 0 420 290");
  svg.setAttribute("role", "img");
  const isStar = state.shape === "star";
  const ranks = Array.from({length: count}, (_, index) => {
    const angle = 2 * Math.PI * index / count - Math.PI / 2;
    return {x: 210 + 150 * Math.cos(angle), y: 145 + 112 * Math.sin(angle), r: 17};
  });
  const perStep = index => state.ranks[index].steps > 0 ? state.ranks[index] : null;
  const sent = index => perStep(index) ? bytes(perStep(index).bytes_sent / perStep(index).steps) : "";
  const received = index => perStep(index) ? bytes(perStep(index).bytes_received / perStep(index).steps) : "";
  const servers = {x: 210, y: 145, r: 26};
  ranks.forEach((node, index) => {
    if (isStar) {
      drawLink(svg, node, servers, sent(index), 14);
      drawLink(svg, servers, node, received(index), 14);
    } else {
      drawLink(svg, node, ranks[(index + 1) % count], sent(index), count === 2 ? 26 : 0);
    }
  });
  ranks.forEach((node, index) => drawNode(svg, node, index, index === state.slowest && state.workers > 1 ? "slow" : ""));
  if (isStar) drawNode(svg, servers, `ps \u00d7${state.servers}`, "server");
  svg.setAttribute("aria-label", isStar ? `${state.workers} ranks around ${state.servers} servers` : `a ring of ${state.workers} ranks`);
  const more = state.workers > count ? `, of which ${count} are shown` : "";
  const path = isStar ? `each rank pushes to ${state.servers} server${state.servers === 1 ? "" : "s"}, and pulls` : `all-reduce${state.all_reduce ? ": " + state.all_reduce : " among the ranks"}`;
  box.replaceChildren(svg, make("div", {class: "said"}, `${path}; bytes a step${more}`));
}

function showStaleness(state) {
  const {limits, counts, sum} = state.staleness, total = counts.reduce((a, b) => a + b, 0);
  const box = byId("staleness");
  if (total === 0 || counts.slice(1).every(count => count === 0)) {
    box.replaceChildren(make("p", {class: "quiet"}, total === 0 ? "Nothing yet." : "Every gradient was applied to the parameters that it was computed on."));
    return;
  }
  const last = counts.findLastIndex(count => count > 0);
  const svg = document.createElementNS(NS, "svg"), most = Math.max(...counts), width = (WIDTH - LEFT - RIGHT) / (last + 1);
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `mean ${number(sum / total)} updates`);
  for (let bin = 0; bin <= last; bin++) {
    const height = counts[bin] / most * (HEIGHT - TOP - BOTTOM), x = LEFT + bin * width;
    const low = bin > 0 ? limits[bin - 1] + 1 : 0, high = limits[bin];
    const label = high === undefined ? `>${limits[bin - 1]}` : low >= high ? `${high}` : `${low}\u2013${high}`;
    const bar = draw(svg, "rect", {class: "f-compute", x: x + 2, width: Math.max(width - 4, 1), y: HEIGHT - BOTTOM - height, height});
    draw(bar, "title", {}, `${label}: ${number(counts[bin])} steps`);
    draw(svg, "text", {x: x + width / 2, y: HEIGHT - 8, "text-anchor": "middle"}, last > 7 ? `${low}` : label);
  }
  draw(svg, "text", {x: LEFT - 6, y: TOP + 8, "text-anchor": "end"}, number(most));
  box.replaceChildren(svg, make("div", {class: "said"}, `steps by staleness in updates${last > 7 ? ", from" : ""}; mean ${number(sum / total)}`));
}

function showEvents(state) {
  const rows = state.events.slice().reverse().map(event => make("tr", {}, make("td", {class: "n"}, duration(event.seconds)),
    make("td", {class: "n"}, number(event.step, 9)), make("td", {class: `n ${event.kind}`}, event.kind), make("td", {}, event.text)));
  const head = make("tr", {}, ...["after", "step", "what", "more"].map(name => make("th", {scope: "col"}, name)));
  byId("events").replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

function showHead(state) {
  const share = state.total_steps > 0 ? Math.min(100, 100 * state.step / state.total_steps) : 0;
  const who = `${state.workers} worker${state.workers === 1 ? "" : "s"}` + (state.servers > 0 ? `, ${state.servers} server${state.servers === 1 ? "" : "s"}` : "");
  byId("state").textContent = state.outcome;
  byId("state").className = `pill ${state.outcome}`;
  document.title = `${state.mode}, ${state.model} \u2013 Ringside`;
  byId("job").textContent = `${state.mode}, ${who}: ${state.model} on ${state.dataset}, ${state.optimizer}, ${state.device}, global batch ${state.global_batch}`;
  byId("bar").style.visibility = state.total_steps > 0 ? "" : "hidden";
  byId("done").style.width = `${share}%`;
  byId("bar").setAttribute("aria-valuenow", share.toFixed(0));
  const rest = state.outcome === "training" && state.eta !== null && state.eta >= 0 ? `, ${duration(state.eta)} to go` : "";
  const ofAll = state.total_steps > 0 ? ` of ${state.total_steps.toLocaleString("en")}` : "";
  byId("steps").textContent = `epoch ${state.epoch || "\u2013"}, step ${state.step.toLocaleString("en")}${ofAll}, ${duration(state.seconds)}${rest}`;
  byId("reason").hidden = state.outcome !== "failed";
  byId("reason").textContent = state.reason;
  byId("loss").textContent = number(state.loss, 4);
  byId("accuracy").textContent = state.has_accuracy ? percent(state.accuracy) : "\u2013";
  byId("rate").textContent = number(state.images_per_second, 4);
  const slow = state.ranks[state.slowest];
  byId("slowest").replaceChildren(state.workers > 1 && slow && slow.steps > 0 ? `rank ${state.slowest} ` : "\u2013", state.workers > 1 && slow && slow.steps > 0 ? make("small", {}, `${number(slow.compute_ms)} ms`) : "");
  const total = state.staleness.counts.reduce((a, b) => a + b, 0);
  byId("stale").textContent = total > 0 ? number(state.staleness.sum / total) : "\u2013";
}

function show(state) {
  showHead(state);
  showCharts(state);
  showRanks(state);
  showTopology(state);
  showStaleness(state);
  showEvents(state);
  document.body.dataset.step = state.step;
}

function listen() {
  let isOver = false;
  const source = new EventSource(`events${location.search}`);
  source.onmessage = message => {
    const state = JSON.parse(message.data);
    isOver = state.outcome === "completed" || state.outcome === "failed";
    show(state);
    if (isOver) source.close();
  };
  source.onerror = () => {
    if (isOver) return;
    byId("state").textContent = "no connection";
    byId("state").className = "pill lost";
  };
}

listen();
