// Bars: memory while the model runs, memory by storage, kernels in time.

const SVG = "http://www.w3.org/2000/svg", CHART_WIDTH = 360;

function svg(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function bytesText(count) {
  if (count === null || count === undefined) return "unknown";
  let unit = 0, value = count;
  while (value >= 1000 && unit < 4) { value /= 1000; unit++; }
  return `${unit ? value.toPrecision(3) : value} ${["B", "kB", "MB", "GB", "TB"][unit]}`;
}

function timeText(ns) {
  if (ns === null || ns === undefined) return "not measured";
  if (ns >= 1e9) return `${(ns / 1e9).toPrecision(3)} s`;
  return ns >= 1e6 ? `${(ns / 1e6).toPrecision(3)} ms` : `${(ns / 1e3).toPrecision(3)} us`;
}

function chart(height, label) {
  return svg("svg", {class: "chart", viewBox: `0 0 ${CHART_WIDTH} ${height}`, width: "100%", role: "img", "aria-label": label});
}

// One bar for each node in the order of the program: bytes of tensors alive while it runs.
function memoryChart(graph, select) {
  const most = Math.max(1, ...graph.live), at = graph.live.indexOf(most);
  const picture = chart(116, `most is ${bytesText(most)}, at ${nameOf(graph, at)}`);
  const step = CHART_WIDTH / Math.max(graph.live.length, 1);
  graph.live.forEach((bytes, number) => {
    const size = 90 * bytes / most;
    const bar = svg("rect", {class: "bar", x: number * step, y: 96 - size, width: Math.max(step - 0.3, 0.3), height: size, "data-node": number});
    bar.append(svg("title", {}, `${nameOf(graph, number)}: ${bytesText(bytes)}`));
    bar.addEventListener("click", () => select(number));
    picture.append(bar);
  });
  picture.append(svg("text", {x: 0, y: 112}, `most: ${bytesText(most)} at ${nameOf(graph, at)}`));
  return picture;
}

// Bytes of all tensors, each once, by where they are; weights apart.
function storageTotals(graph, weightBytes) {
  const largest = new Map();
  for (const edge of graph.edges) {
    const key = `${edge.source || 0} ${edge.shape}`;
    const kind = edge.storage && edge.storage !== "buffer" ? edge.storage : edge.order ? "buffer, permuted" : "buffer, as written";
    largest.set(key, [kind, edge.bytes]);
  }
  const totals = new Map([["weights", weightBytes]]);
  for (const [kind, bytes] of largest.values()) totals.set(kind, (totals.get(kind) || 0) + bytes);
  return totals;
}

function storageChart(totals) {
  const rows = [...totals], most = Math.max(1, ...rows.map(([, bytes]) => bytes));
  const picture = chart(rows.length * 34, "bytes by storage");
  rows.forEach(([kind, bytes], row) => {
    const name = kind === "weights" ? "weights" : kind.includes("permuted") ? "permuted" : kind.startsWith("texel") ? "texel" : kind.startsWith("image") ? "image" : "buffer";
    picture.append(svg("text", {x: 0, y: row * 34 + 11}, `${kind}: ${bytesText(bytes)}`));
    picture.append(svg("rect", {class: `bar ${name}`, x: 0, y: row * 34 + 15, width: Math.max(1, CHART_WIDTH * bytes / most), height: 12, "data-kind": kind, "data-bytes": bytes}));
  });
  return picture;
}

// Kernels one behind the other, as wide as they took.
function timeChart(graph, select) {
  const total = graph.nodes.reduce((sum, node) => sum + (node.time_ns || 0), 0);
  const picture = chart(46, `${timeText(total)} in all kernels`);
  let at = 0;
  graph.nodes.forEach((node, number) => {
    if (!node.time_ns) return;
    const size = CHART_WIDTH * node.time_ns / total;
    const bar = svg("rect", {class: node.verdict === "movement" ? "bar moves" : "bar", x: at, y: 2, width: Math.max(size - 0.4, 0.2), height: 24, "data-node": number});
    bar.append(svg("title", {}, `${nameOf(graph, number)}: ${timeText(node.time_ns)}`));
    bar.addEventListener("click", () => select(number));
    picture.append(bar);
    at += size;
  });
  picture.append(svg("text", {x: 0, y: 42}, `0`), svg("text", {x: CHART_WIDTH, y: 42, "text-anchor": "end"}, timeText(total)));
  return picture;
}

function nameOf(graph, number) {
  const node = graph.nodes[number];
  return node ? node.label : "";
}
