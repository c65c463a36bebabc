import { act, ageText, button, clockText, durationText, element, follow, make, sentence, setText, showConnection, sizeText, snapshotNode, stateText, verbs, verbsFor } from "./common.js";
import { addPoint, draw, keepHistory, makePlot } from "./drawing.js";

const name = decodeURIComponent(location.pathname.split("/")[2] ?? "");
document.title = `${name} – Dormouse`;
element("name").textContent = name;
element("actions").setAttribute("aria-label", `Actions for ${name}`);

const plot = makePlot();
element("line").append(plot);

// MARK: actions

for (const verb of Object.keys(verbs)) element("actions").append(button(verb, name));
element("actions").addEventListener("click", (event) => {
  const pressed = event.target.closest("button");
  if (pressed && pressed.getAttribute("aria-disabled") !== "true") act(pressed.dataset.verb, name);
});

function showActions(state, protection) {
  const possible = verbsFor(state);
  if (state === "foreground" || state === "background") possible.push("trim", "fill");
  // One of these two; what protects it otherwise is its policy, which no button changes.
  const isProtected = protection?.code === "protected_by_request";
  if (state) possible.push(isProtected ? "unprotect" : "protect");
  let isFocusLost = false;
  for (const node of element("actions").children) {
    const { verb } = node.dataset;
    if (verb === "protect" || verb === "unprotect") {
      const focused = document.activeElement === node;
      node.hidden = (verb === "protect") === isProtected;
      if (focused && node.hidden) isFocusLost = true;
    }
    // Not `disabled`: the focus would be lost.
    node.setAttribute("aria-disabled", String(!possible.includes(node.dataset.verb)));
    node.classList.toggle("main", node.dataset.verb === "wake" && possible[0] === "wake");
  }
  // The button that was pressed is replaced by its opposite, which keeps the focus.
  if (isFocusLost) element("actions").querySelector(`[data-verb="${isProtected ? "unprotect" : "protect"}"]`).focus();
}

// MARK: parts

// Replaces the content only if it has changed: a screen reader stays where it is.
function show(node, key, nodes) {
  if (node.dataset.key === key) return;
  node.dataset.key = key;
  node.replaceChildren(...nodes());
}

function row(cells, numberAt) {
  const line = make("tr");
  line.append(...cells.map((cell, place) => make(place === 0 ? "th" : "td", place === numberAt ? "number" : "", cell)));
  line.firstElementChild.scope = "row";
  return line;
}

function showKinds(worker, kinds) {
  const rows = [];
  if (kinds) {
    rows.push(["Anonymous memory", kinds.anonymous], ["Shared memory", kinds.shared], ["Swapped out", kinds.swapped]);
    rows.push(["Not counted: file pages that can be dropped", kinds.files]);
  }
  if (worker.purgeable) rows.push(["Offered as purgeable", worker.purgeable]);
  if (worker.imageSize !== undefined) rows.push(["Image on disk", worker.imageSize]);
  if (worker.baseSize !== undefined) rows.push(["Last image, kept for the next one", worker.baseSize]);
  const table = element("kinds");
  table.hidden = rows.length === 0;
  const texts = rows.map(([kind, bytes]) => [kind, sizeText(bytes)]);
  show(table.tBodies[0], JSON.stringify(texts), () => texts.map((cells) => row(cells, 1)));
}

// An obstacle, or what changes the state: a sentence, and the policy's key that decides.
function clause(text, key) {
  const item = sentence("li", "", text);
  if (key && !text.includes(key)) item.append(" ", make("code", "key", key));
  return item;
}

function listed(items) {
  const list = make("ul", "explain-list");
  list.append(...items);
  return list;
}

function showExplanation(explanation, page) {
  if (!explanation) return;
  const time = (seconds) => seconds === undefined ? "" : ` in ${ageText(seconds)}`;
  const key = JSON.stringify([
    explanation.because, explanation.next, explanation.obstacles.map((one) => [one.text, one.key]),
    explanation.moves.map((one) => [one.to, one.text, time(one.afterSeconds)]), explanation.unwatched ?? [],
    explanation.earlyWake?.text ?? "", explanation.lastShed?.text ?? "", explanation.trim?.text ?? "", page.terminated ?? 0, page.hibernated ?? 0,
  ]);
  show(element("explanation"), key, () => {
    const nodes = [sentence("p", "", `${explanation.state}: ${explanation.because.text}`)];
    if (explanation.obstacles.length) {
      nodes.push(make("h3", "", explanation.next ? `Not ${explanation.next} yet` : "What prevents the next state"));
      nodes.push(listed(explanation.obstacles.map((one) => clause(one.text, one.key))));
    } else if (explanation.next) {
      nodes.push(make("p", "", `Next state: ${explanation.next}; nothing prevents it`));
    }
    if (explanation.moves.length) {
      nodes.push(make("h3", "", "What changes its state"));
      nodes.push(listed(explanation.moves.map((one) => clause(`${one.to}${time(one.afterSeconds)}: ${one.text}`, one.key))));
    }
    const more = [];
    if (page.terminated) more.push(`It is number ${page.terminated} in the order of termination.`);
    if (page.hibernated) more.push(`It is number ${page.hibernated} in the order of hibernation.`);
    if (explanation.earlyWake) more.push(`Early wakes: ${explanation.earlyWake.text}.`);
    if (explanation.trim) more.push(`Trims: ${explanation.trim.text}.`);
    if (explanation.lastShed) more.push(`Last memory request: ${explanation.lastShed.text}.`);
    if (explanation.unwatched?.length) more.push(`While it sleeps, these don't wake it: ${explanation.unwatched.join(", ")}.`);
    nodes.push(...more.map((text) => make("p", "detail", text)));
    return nodes;
  });
}

function showFacts(worker, command) {
  const facts = [
    ["Command", command], ["Processes", worker.pid === undefined ? "" : `${worker.processes}, the first is pid ${worker.pid}`],
    ["Policy", worker.policy], ["Band", `${worker.band}, importance ${worker.importance}`],
    ["Last used", worker.secondsSinceUse < 1 ? "now" : `${ageText(worker.secondsSinceUse)} ago`],
    ["Asleep since", worker.secondsAsleep === undefined ? "" : clockText(worker.secondsAsleep)],
    ["Last wake", worker.lastWake ? `${clockText(worker.lastWake.secondsAgo)}: ${worker.lastWake.text}` : ""],
    ["Protection", worker.protection ? `not terminated for lack of memory: ${worker.protection.text}` : ""],
    ["Hibernation", worker.hibernation?.text ?? ""],
    ["Launch, resume", [worker.launchSeconds, worker.resumeSeconds].map((one) => one === undefined ? "not known yet" : durationText(one)).join(", ")],
    ["Restarts", worker.restarts ? String(worker.restarts) : ""], ["It says", worker.says ?? ""],
    ["Tasks", worker.tasks.join(", ")], ["Changed since launch", (worker.changedSinceLaunch ?? []).join(", ")],
    ["Log file", worker.log ?? ""], ["Cgroup", worker.cgroup?.path ?? ""],
  ].filter(([, text]) => text !== "");
  show(element("facts"), JSON.stringify(facts), () => facts.flatMap(([what, text]) => {
    const value = make("dd");
    value.append(what === "Command" || what === "Log file" || what === "Cgroup" ? make("code", "", text) : text);
    return [make("dt", "", what), value];
  }));
}

function showExits(exits) {
  element("exits-section").hidden = exits.length === 0;
  show(element("exits"), JSON.stringify(exits), () => [...exits].reverse().map((exit) => row([
    new Date(exit.at * 1000).toLocaleString(),
    exit.lastWords ? `${exit.why.text}: ${exit.lastWords}` : exit.why.text, sizeText(exit.footprint),
  ], 2)));
}

function showSnapshot(snapshot) {
  const node = snapshotNode(snapshot, name);
  element("snapshot-section").hidden = node === null;
  if (node) show(element("snapshot"), JSON.stringify(snapshot), () => [node]);
}

function showWorker(page) {
  const { worker } = page;
  showConnection(`pid ${worker.pid ?? "none"}`, false);
  addPoint(name, worker.footprint);
  element("state").dataset.state = worker.state;
  setText(element("state").querySelector(".state-name"), stateText(worker, page.shown));
  setText(element("why"), worker.reason.text);
  setText(element("footprint"), sizeText(worker.footprint));
  setText(element("peak"), `peak ${sizeText(worker.peakFootprint)}` + (worker.saved > 0 ? `, ${sizeText(worker.saved)} freed by hibernation` : ""));
  draw(plot, name, worker.footprint);
  showActions(worker.state, worker.protection);
  showKinds(worker, page.kinds);
  showExplanation(page.explanation, page);
  showSnapshot(page.snapshot ?? worker.snapshot);
  showFacts(worker, page.command);
  showExits(worker.exits ?? []);
}

// MARK: the log

const most = 2000;
const log = element("log");
const filter = element("filter");

const matches = (text) => text.toLowerCase().includes(filter.value.toLowerCase());

function countLines() {
  const lines = [...log.children].filter((line) => line.id !== "no-log");
  const shown = lines.filter((line) => !line.hidden).length;
  setText(element("log-count"), filter.value ? `${shown} of ${lines.length} lines` : "");
}

function addLines({ lines, isStart }) {
  element("log-problem").hidden = true;
  if (isStart) log.replaceChildren();
  element("no-log")?.remove();
  for (const text of lines) {
    const line = make("div", "", text === "" ? "\u00a0" : text);
    line.hidden = !matches(text);
    log.append(line);
  }
  while (log.children.length > most) log.firstElementChild.remove();
  countLines();
  if (element("follow").checked) log.scrollTop = log.scrollHeight;
}

filter.addEventListener("input", () => {
  for (const line of log.children) if (line.id !== "no-log") line.hidden = !matches(line.textContent);
  countLines();
});

follow(`/api/workers/${encodeURIComponent(name)}/stream`, {
  history: keepHistory, worker: showWorker, log: addLines,
  missing: ({ problem }) => { showConnection(problem, true); showActions(""); },
  logproblem: ({ problem }) => {
    setText(element("log-problem"), `The log can't be read: ${problem}`);
    element("log-problem").hidden = false;
  },
});
