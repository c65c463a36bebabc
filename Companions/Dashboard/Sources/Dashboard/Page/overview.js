import { act, button, clockText, durationText, element, follow, isAsleep, make, setText, showConnection, sizeText, snapshotNode, stateText, verbsFor } from "./common.js";
import { addPoint, draw, keepHistory, makePlot } from "./drawing.js";

const cards = new Map();
const list = element("cards");
// The worker whose controls Tab reaches.
let current = null;

// MARK: one card

function makeCard(name) {
  const item = element("card").content.firstElementChild.cloneNode(true);
  const link = item.querySelector(".name");
  link.textContent = name;
  link.href = `/workers/${encodeURIComponent(name)}`;
  item.querySelector("article").setAttribute("aria-label", name);
  item.querySelector(".actions").setAttribute("aria-label", `Actions for ${name}`);
  item.dataset.worker = name;
  const plot = makePlot();
  item.querySelector(".preview").append(plot);
  return { item, link, plot, shown: "", verbs: "" };
}

function update(card, worker) {
  const { item } = card;
  const asleep = isAsleep(worker.state);
  for (const node of [item.querySelector("article"), item.querySelector(".state")]) node.dataset.state = worker.state;
  setText(item.querySelector(".state-name"), stateText(worker, worker.shown));
  const why = [worker.reason];
  if (worker.secondsAsleep !== undefined) why.push(`asleep since ${clockText(worker.secondsAsleep)}`);
  if (worker.restartsInSeconds !== undefined) why.push(`starts again in ${durationText(worker.restartsInSeconds)}`);
  setText(item.querySelector(".why"), why.join("; "));
  setText(item.querySelector(".footprint"), sizeText(worker.footprint));
  const extra = [];
  if (worker.imageSize !== undefined) extra.push(`${sizeText(worker.imageSize)} on disk`);
  if (worker.saved > 0) extra.push(`${sizeText(worker.saved)} freed`);
  if (worker.imageSize === undefined && worker.peakFootprint > worker.footprint) extra.push(`peak ${sizeText(worker.peakFootprint)}`);
  if (worker.processes > 1) extra.push(`${worker.processes} processes`);
  setText(item.querySelector(".extra"), extra.join(", "));
  const order = [];
  if (worker.hibernated === 1) order.push("hibernated first under pressure");
  if (worker.terminated === 1) order.push("terminated first when memory runs out");
  if (worker.protection !== undefined) order.push("protected: not terminated for lack of memory");
  if (worker.isOutdated) order.push("configuration changed: a restart applies it");
  setText(item.querySelector(".order"), order.join("; "));
  showPreview(card, asleep ? worker.snapshot : worker.says ? { text: worker.says } : undefined, worker.name);
  draw(card.plot, worker.name, worker.footprint);
  showButtons(card, worker);
}

function showPreview(card, snapshot, name) {
  const key = JSON.stringify(snapshot ?? null);
  if (key === card.shown) return;
  card.shown = key;
  const preview = card.item.querySelector(".preview");
  const node = snapshotNode(snapshot, name);
  preview.classList.toggle("has-snapshot", node !== null);
  preview.replaceChildren(...(node ? [node, card.plot] : [card.plot]));
}

function showButtons(card, worker) {
  const verbs = verbsFor(worker.state);
  if (verbs.join() === card.verbs) return;
  card.verbs = verbs.join();
  const group = card.item.querySelector(".actions");
  const focused = group.contains(document.activeElement) ? document.activeElement.dataset.verb : null;
  group.replaceChildren(...verbs.map((verb) => button(verb, worker.name)));
  if (verbs[0] === "wake") group.firstElementChild.classList.add("main");
  setReach(card, current === worker.name);
  // The button that was pressed may not be there any more: its card keeps the focus.
  if (focused) (group.querySelector(`[data-verb="${focused}"]`) ?? card.link).focus();
}

// MARK: the keyboard

function setReach(card, isCurrent) {
  for (const node of card.item.querySelectorAll("a, button")) node.tabIndex = isCurrent ? 0 : -1;
}

function makeCurrent(name) {
  if (!cards.has(name)) name = list.firstElementChild?.dataset.worker ?? null;
  if (name === current && cards.has(name)) return;
  if (cards.has(current)) setReach(cards.get(current), false);
  current = name;
  if (cards.has(current)) setReach(cards.get(current), true);
}

// The card that is nearest above or below, by its place on the screen.
function nearest(item, direction) {
  const from = item.getBoundingClientRect();
  let best = null;
  let distance = Infinity;
  for (const other of list.children) {
    const to = other.getBoundingClientRect();
    const rows = (to.top - from.top) * direction;
    if (rows < from.height / 2) continue;
    const far = rows * 10 + Math.abs(to.left - from.left);
    if (far < distance) [best, distance] = [other, far];
  }
  return best;
}

list.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const item = event.target.closest(".card");
  if (!item) return;
  const to = {
    ArrowRight: () => item.nextElementSibling, ArrowLeft: () => item.previousElementSibling,
    ArrowDown: () => nearest(item, 1), ArrowUp: () => nearest(item, -1),
    Home: () => list.firstElementChild, End: () => list.lastElementChild,
  }[event.key]?.();
  if (to === undefined) return;
  event.preventDefault();
  if (to) cards.get(to.dataset.worker).link.focus();
});
list.addEventListener("focusin", (event) => makeCurrent(event.target.closest(".card")?.dataset.worker ?? current));
list.addEventListener("click", (event) => {
  const pressed = event.target.closest("button");
  if (pressed) act(pressed.dataset.verb, pressed.closest(".card").dataset.worker);
});

// MARK: all of it

function showWorkers(workers) {
  const names = new Set(workers.map((worker) => worker.name));
  for (const [name, card] of cards) {
    if (names.has(name)) continue;
    card.item.remove();
    cards.delete(name);
  }
  for (const worker of workers) {
    addPoint(worker.name, worker.footprint);
    let card = cards.get(worker.name);
    if (!card) {
      card = makeCard(worker.name);
      cards.set(worker.name, card);
      list.append(card.item);
    }
    update(card, worker);
  }
  // Cards don't move under the pointer, nor under the focus.
  if (!list.matches(":hover, :focus-within")) {
    workers.forEach((worker, place) => {
      const { item } = cards.get(worker.name);
      if (list.children[place] !== item) list.insertBefore(item, list.children[place] ?? null);
    });
  }
  makeCurrent(current);
  element("empty").hidden = workers.length > 0;
}

function budgetText(daemon) {
  if (!daemon.budgetIsHost) return "fixed by memory.budget";
  return daemon.limitedBy ? `the limit of the cgroup ${daemon.limitedBy}` : "this machine";
}

function showMachine(report) {
  const { daemon, workers } = report;
  const used = daemon.budget > 0 ? Math.min(100, Math.max(0, 100 * (1 - daemon.available / daemon.budget))) : 0;
  setText(element("available"), sizeText(daemon.available));
  setText(element("budget"), `of ${sizeText(daemon.budget)}, ${budgetText(daemon)}`);
  const bar = element("bar");
  element("bar-fill").style.width = `${used.toFixed(1)}%`;
  bar.setAttribute("aria-valuenow", used.toFixed(0));
  bar.setAttribute("aria-valuetext", `${used.toFixed(0)} % in use`);
  setText(element("pressure"), daemon.pressure);
  element("pressure").dataset.level = daemon.pressure;
  setText(element("policy"), `policy ${daemon.policy}, mode ${daemon.mode}` + (daemon.pressureSet ? `; set to ${daemon.pressureSet} for ${durationText(daemon.pressureSetSeconds ?? 0)}` : ""));
  const asleep = workers.filter((worker) => isAsleep(worker.state));
  const saved = workers.reduce((sum, worker) => sum + Math.max(0, worker.saved ?? 0), 0);
  const total = workers.reduce((sum, worker) => sum + worker.footprint, 0);
  setText(element("saved"), sizeText(saved));
  const share = saved + total > 0 ? `of ${sizeText(saved + total)} (${(100 * saved / (saved + total)).toFixed(0)} %); ` : "";
  setText(element("totals"), share + `${workers.length} ${workers.length === 1 ? "worker" : "workers"}, ${asleep.length} asleep; footprint ${sizeText(total)}`);
}

function showLadder(report) {
  const first = report.terminated[0] ?? null;
  const next = report.hibernated[0] ?? null;
  const parts = [];
  if (next) parts.push(`${next} would be hibernated first`);
  if (first) parts.push(`${first} terminated first`);
  setText(element("next"), parts.join(", ") || "no worker would be hibernated or terminated");
  const list = (names) => names.join(", then ");
  setText(element("order"), [
    report.hibernated.length ? `Hibernated in this order: ${list(report.hibernated)}.` : "",
    report.terminated.length ? `Terminated in this order: ${list(report.terminated)}.` : "",
  ].filter(Boolean).join(" "));
  const levels = report.ladder.map(({ level, rungs }) => `${level}|${rungs.join(" → ")}|${report.daemon.pressure === level}`);
  const body = element("ladder");
  if (body.dataset.key === levels.join()) return;
  body.dataset.key = levels.join();
  body.replaceChildren(...levels.map((line) => {
    const [level, rungs, isNow] = line.split("|");
    const row = make("tr", isNow === "true" ? "now" : "");
    const head = make("th", "", isNow === "true" ? `${level} (now)` : level);
    head.scope = "row";
    row.append(head, make("td", "", rungs));
    return row;
  }));
}

function showFleet(report) {
  if (report.problem) {
    showConnection(report.daemon ? `Slow: ${report.problem}` : `No daemon: ${report.problem}`, true);
    if (!report.daemon) {
      showWorkers([]);
      element("empty").hidden = true;
      for (const id of ["available", "pressure", "saved", "next"]) setText(element(id), "–");
      for (const id of ["budget", "policy", "totals", "order"]) setText(element(id), "");
      return;
    }
  } else {
    showConnection(`Daemon ${report.daemon.version}, pid ${report.daemon.pid}`, false);
  }
  showMachine(report);
  showLadder(report);
  showWorkers(report.workers);
}

function addEvent(event) {
  element("no-events")?.remove();
  const log = element("events");
  const line = make("p", `kind-${event.kind}`);
  const time = make("time", "", new Date(event.time).toLocaleTimeString());
  time.dateTime = event.time;
  line.append(time, " ");
  if (event.worker) line.append(make("strong", "", event.worker), " ");
  if (event.from && event.to) line.append(event.from === event.to ? `${event.to}: ` : `${event.from} → ${event.to}: `);
  line.append(event.text);
  // The latest is on top.
  log.prepend(line);
  while (log.children.length > 200) log.lastElementChild.remove();
}

follow("/api/stream", {
  hello: () => { for (const line of [...element("events").children]) if (line.id !== "no-events") line.remove(); },
  missing: ({ problem }) => showConnection(problem, true),
  history: keepHistory, fleet: showFleet, past: addEvent, event: addEvent,
});
