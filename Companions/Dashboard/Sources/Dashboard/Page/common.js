// What both pages share: numbers as text, the stream of events, requests, buttons. Nothing that comes from a worker
// is ever used as HTML: texts become text nodes, names become parts of addresses by encodeURIComponent.

export const element = (id) => document.getElementById(id);

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

// A sentence of the daemon's, in which `words` stand for what is typed.
export function sentence(tag, className, text) {
  const node = make(tag, className);
  text.split("`").forEach((part, place) => {
    if (part) node.append(place % 2 ? make("code", "", part) : part);
  });
  return node;
}

// 16.3 MB: powers of 1024, one decimal, as in the terminal.
export function sizeText(bytes) {
  if (Math.abs(bytes) < 1024) return `${bytes} B`;
  let value = bytes;
  for (const unit of ["KB", "MB", "GB", "TB"]) {
    value /= 1024;
    if (Math.round(Math.abs(value) * 10) < 10240 || unit === "TB") return `${value.toFixed(1)} ${unit}`;
  }
}

// 14 ms, 1.2 s, 4 m 5 s, 3 d 4 h
export function durationText(seconds) {
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  for (const [size, name, smaller, smallerName] of [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]]) {
    if (whole < size) continue;
    const rest = Math.floor((whole % size) / smaller);
    return rest ? `${Math.floor(whole / size)} ${name} ${rest} ${smallerName}` : `${Math.floor(whole / size)} ${name}`;
  }
  return `${whole} s`;
}

// For what changes each second: no tenths.
export const ageText = (seconds) => seconds < 59.5 ? `${Math.max(1, Math.round(seconds))} s` : durationText(seconds);

// `suspended for 6 s`, `backing off 4 s`
export const stateText = (worker, shown) => shown === worker.state ? `${shown} for ${ageText(worker.secondsInState)}` : shown;

// 14:02, on another day 24 Nov, 14:02: what happened some seconds ago, in the reader's time zone.
export function clockText(secondsAgo) {
  const time = new Date(Date.now() - secondsAgo * 1000);
  const ofDay = { hour: "2-digit", minute: "2-digit" };
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday ? time.toLocaleTimeString([], ofDay) : time.toLocaleString([], { day: "numeric", month: "short", ...ofDay });
}

export const isAsleep = (state) => state === "suspended" || state === "hibernated";

let token = "";
const lost = "This page's session has ended. Open the address that `dormouse dashboard` printed.";

export function showConnection(text, isLost) {
  const node = element("connection");
  setText(node, text);
  node.classList.toggle("lost", isLost);
}

// Connects to a stream, and connects again when it breaks. A page that is hidden for ten seconds has none, and so
// costs the daemon nothing.
export function follow(path, handlers) {
  let source = null;
  let timer = 0;
  let last = Date.now();
  function open() {
    clearTimeout(timer);
    if (source) return;
    last = Date.now();
    const opened = new EventSource(path);
    source = opened;
    for (const [name, handle] of Object.entries(handlers)) {
      opened.addEventListener(name, (message) => {
        last = Date.now();
        handle(JSON.parse(message.data));
      });
    }
    opened.addEventListener("hello", (message) => { token = JSON.parse(message.data).token; });
    opened.addEventListener("error", () => {
      showConnection("The dashboard doesn't answer; trying again…", true);
      if (opened.readyState !== EventSource.CLOSED) return;
      // The server has refused: the reason is in an ordinary request's answer.
      close();
      fetch(path, { method: "HEAD" }).then((answer) => {
        showConnection(answer.status === 401 ? lost : `The dashboard answers ${answer.status}.`, true);
        if (answer.status !== 401) timer = setTimeout(open, 2000);
      }, () => { timer = setTimeout(open, 1000); });
    });
  }
  function close() {
    source?.close();
    source = null;
  }
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(close, 10000); else open();
  });
  setInterval(() => {
    if (source && !document.hidden && Date.now() - last > 6000) showConnection("The dashboard doesn't answer; trying again…", true);
  }, 2000);
  open();
}

export const verbs = {
  wake: "Wake", foreground: "Foreground", background: "Background", suspend: "Suspend", hibernate: "Hibernate", warn: "Warn",
  trim: "Trim", fill: "Fill", protect: "Protect", unprotect: "Unprotect",
};
const explained = {
  wake: "let it run again", foreground: "bring it to the foreground", background: "move it to the background",
  suspend: "take the processor from it", hibernate: "move its memory to disk", warn: "ask it to free memory",
  trim: "move the memory that it doesn't use out of RAM, while it runs", fill: "bring all of its memory back into RAM",
  protect: "don't terminate it for lack of memory, until the daemon ends", unprotect: "let its policy decide whether it is terminated for lack of memory",
};

// Which verbs make sense in a state, the likeliest first.
export function verbsFor(state) {
  switch (state) {
    case "foreground": return ["background", "suspend", "hibernate", "warn"];
    case "background": return ["foreground", "suspend", "hibernate", "warn"];
    case "suspended": return ["wake", "hibernate", "foreground"];
    case "hibernated": return ["wake", "foreground"];
    case "suspending": case "hibernating": case "resuming": return ["wake", "foreground"];
    case "launching": return ["foreground"];
    default: return [];
  }
}

export function button(verb, worker) {
  const node = make("button", "", verbs[verb]);
  node.type = "button";
  node.dataset.verb = verb;
  node.setAttribute("aria-label", `${verbs[verb]} ${worker}`);
  node.title = `${verbs[verb]} ${worker}: ${explained[verb]}`;
  return node;
}

let running = 0;

// Sends a request and shows its outcome.
export async function act(verb, worker) {
  const number = ++running;
  const show = (text, isBad) => {
    // Only the last request's outcome is shown.
    if (number !== running) return;
    setText(element("outcome"), text);
    element("outcome").classList.toggle("bad", isBad);
  };
  show(`${verbs[verb]} ${worker}…`, false);
  try {
    const answer = await fetch(`/api/workers/${encodeURIComponent(worker)}/${verb}`, {
      method: "POST", headers: { "X-Dormouse-Token": token }, credentials: "same-origin",
    });
    const type = answer.headers.get("content-type") ?? "";
    if (type.startsWith("application/json")) {
      const outcome = await answer.json();
      show(outcome.text, !outcome.isDone);
    } else {
      show(answer.status === 401 ? lost : await answer.text(), true);
    }
  } catch {
    show("The dashboard doesn't answer.", true);
  }
}

// A snapshot as text or picture; null: there is none to show.
export function snapshotNode(snapshot, worker) {
  if (!snapshot) return null;
  if (snapshot.text !== undefined) return make("pre", "", snapshot.text);
  if (!snapshot.image) return null;
  const image = make("img");
  image.src = snapshot.image;
  image.alt = `What ${worker} showed before it fell asleep`;
  return image;
}
