import { ageText, sizeText } from "./common.js";

// A worker's footprint over the last hour: [when, bytes], in seconds of this page's clock.
const slot = 5;
const hour = 3600;
const namespace = "http://www.w3.org/2000/svg";
const lines = new Map();

const now = () => performance.now() / 1000;

// What the server has kept.
export function keepHistory(history) {
  for (const [name, points] of Object.entries(history)) {
    lines.set(name, points.map(([age, bytes]) => [now() - age, bytes]));
  }
}

export function addPoint(name, bytes) {
  const points = lines.get(name) ?? [];
  lines.set(name, points);
  const last = points.at(-1);
  if (last && now() - last[0] < slot) last[1] = Math.max(last[1], bytes); else points.push([now(), bytes]);
  while (points.length && now() - points[0][0] > hour) points.shift();
}

export function makePlot() {
  const plot = document.createElementNS(namespace, "svg");
  plot.setAttribute("class", "plot");
  plot.setAttribute("viewBox", "0 0 240 60");
  plot.setAttribute("preserveAspectRatio", "none");
  plot.setAttribute("role", "img");
  for (const name of ["area", "stroke"]) {
    const path = document.createElementNS(namespace, "path");
    path.setAttribute("class", name);
    plot.append(path);
  }
  return plot;
}

// Draws the last hour, or as much as there is, at least a minute. Where no page was open there is a gap.
export function draw(plot, name, current) {
  const points = [...(lines.get(name) ?? []), [now(), current]];
  const span = Math.max(60, now() - points[0][0]);
  const most = Math.max(1, ...points.map((point) => point[1]));
  const x = (time) => (240 * (1 - (now() - time) / span)).toFixed(1);
  const y = (bytes) => (57 - 52 * bytes / most).toFixed(1);
  let stroke = "";
  let area = "";
  let start = null;
  let last = null;
  const close = () => { if (start !== null) area += `L${x(last)} 60L${x(start)} 60Z`; };
  for (const [time, bytes] of points) {
    if (last === null || time - last > 4 * slot) {
      close();
      start = time;
      stroke += `M${x(time)} ${y(bytes)}`;
      area += `M${x(time)} ${y(bytes)}`;
    } else {
      stroke += `H${x(time)}V${y(bytes)}`;
      area += `H${x(time)}V${y(bytes)}`;
    }
    last = time;
  }
  close();
  plot.children[0].setAttribute("d", area);
  plot.children[1].setAttribute("d", stroke);
  const text = `Footprint of ${name} over the last ${ageText(span)}: now ${sizeText(current)}, at most ${sizeText(most)}`;
  if (plot.getAttribute("aria-label") !== text) plot.setAttribute("aria-label", text);
}
