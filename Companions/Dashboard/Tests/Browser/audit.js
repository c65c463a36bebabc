// What a page must have for keyboards, screen readers and eyes. Returns the problems, one sentence each.
(() => {
  const problems = [];
  const visible = (node) => {
    if (node.closest("[hidden], .hidden, template, noscript") || node.closest("details:not([open]) > :not(summary)")) return false;
    const style = getComputedStyle(node);
    const box = node.getBoundingClientRect();
    return style.visibility !== "hidden" && style.display !== "none" && box.width > 0 && box.height > 0;
  };
  const label = (node) => `${node.tagName.toLowerCase()}${node.id ? "#" + node.id : ""}.${[...node.classList].join(".")}`;

  // Contrast, as WCAG 2 computes it.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => { const c = v / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    const layers = [];
    for (let one = node; one; one = one.parentElement) layers.push(rgba(getComputedStyle(one).backgroundColor));
    let color = rgba(getComputedStyle(document.documentElement).backgroundColor).slice(0, 3);
    for (const layer of layers.reverse()) color = over(layer, color);
    return color;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !visible(node) || node.closest("svg, script, style")) continue;
    texts += 1;
    const below = ground(node);
    const [one, two] = [light(over(rgba(getComputedStyle(node).color), below)), light(below)];
    const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (contrast < 4.5) problems.push(`contrast ${contrast.toFixed(2)} of "${walker.currentNode.data.trim().slice(0, 40)}" in ${label(node)}`);
  }
  if (texts < 10) problems.push(`only ${texts} texts are visible`);

  // Names.
  const nameOf = (node) => (node.getAttribute("aria-label")
    ?? node.getAttribute("aria-labelledby")?.split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ")
    ?? [...(node.labels ?? [])].map((one) => one.textContent).join(" ")).trim() || node.textContent.trim();
  for (const node of document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")) {
    if (visible(node) && !nameOf(node)) problems.push(`no name: ${label(node)}`);
    if (visible(node) && node.tabIndex > 0) problems.push(`a tabindex above 0: ${label(node)}`);
  }
  for (const node of document.querySelectorAll(".actions button")) {
    const worker = node.closest(".card")?.dataset.worker ?? document.querySelector("h1").textContent;
    if (!nameOf(node).includes(worker)) problems.push(`a button doesn't name its worker: ${nameOf(node)}`);
  }
  for (const node of document.querySelectorAll("img, svg[role='img']")) {
    if (visible(node) && !(node.alt ?? node.getAttribute("aria-label"))) problems.push(`no text for ${label(node)}`);
  }
  for (const node of document.querySelectorAll("[aria-labelledby], [aria-describedby]")) {
    for (const id of `${node.getAttribute("aria-labelledby") ?? ""} ${node.getAttribute("aria-describedby") ?? ""}`.split(" ")) {
      if (id && !document.getElementById(id)) problems.push(`${label(node)} refers to ${id}, which isn't there`);
    }
  }
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) problems.push(`the id ${id} twice`);

  // Structure.
  for (const [what, selector, least, most] of [["main", "main", 1, 1], ["banner", "body > header", 1, 1], ["h1", "h1", 1, 1], ["live region", "[role=status], [role=log]", 2, 9]]) {
    const count = document.querySelectorAll(selector).length;
    if (count < least || count > most) problems.push(`${count} of ${what}`);
  }
  let level = 0;
  for (const node of document.querySelectorAll("h1, h2, h3, h4")) {
    if (!visible(node)) continue;
    const own = Number(node.tagName[1]);
    if (own > level + 1) problems.push(`${node.tagName} "${node.textContent}" after h${level}`);
    level = own;
  }
  if (!document.documentElement.lang) problems.push("no language");
  if (!document.title) problems.push("no title");
  if (!document.querySelector("a.skip")) problems.push("no link past the head");

  // Room.
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 0) problems.push(`${wide} pixels too wide at ${innerWidth}`);
  for (const node of document.querySelectorAll("button, .name, input")) {
    const box = node.getBoundingClientRect();
    if (visible(node) && (box.right > innerWidth + 1 || box.left < -1)) problems.push(`outside of the screen: ${label(node)}`);
    if (visible(node) && node.tagName === "BUTTON" && box.height < 24) problems.push(`smaller than 24 pixels: ${label(node)}`);
  }
  return problems;
})()
