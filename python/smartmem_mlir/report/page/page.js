// The page: reads the data, draws, and reacts.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
let view = null;

for (const graph of Object.values(data.graphs)) for (const node of graph.nodes) node.label = node.label || node.name;

function showState(state) {
  const graph = data.graphs[state];
  const select = number => view.selectNode(number);
  view = new GraphView(byId("canvas"), graph, chosen => {
    byId("details").replaceChildren(chosen.node !== undefined ? describeNode(graph, chosen.node, select) : describeEdge(graph, graph.edges[chosen.edge], select));
  });
  view.setZoom(Math.min(1, Math.max(0.25, byId("canvas").clientWidth / view.width)));
  byId("canvas").scrollTo((view.width * view.zoom - byId("canvas").clientWidth) / 2, 0);
  byId("details").replaceChildren(cell("p", "Click a box or a line, or use the arrow keys and Enter in the graph; e shows a box's tensor.", "note"));
  byId("memory").replaceChildren(memoryChart(graph, select));
  byId("storage").replaceChildren(storageChart(storageTotals(graph, data.weight_bytes)));
  const timed = graph.nodes.some(node => node.time_ns);
  byId("time-section").hidden = !timed;
  byId("time").replaceChildren(...(timed ? [timeChart(graph, select)] : []));
  document.body.dataset.state = state;
  applyFilter();
}

function applyFilter() {
  const matches = view.filter(byId("find").value, byId("only-moves").checked, byId("only-permuted").checked);
  document.body.dataset.matches = matches;
}

function fillTotals() {
  const rows = [
    ["layout transformations", "transforms", String], ["bytes, each as a kernel", "transform_bytes", bytesText],
    ["kernels", "kernels", String], ["of them data movement", "movement_kernels", String],
    ["bytes of kernels", "kernel_bytes", bytesText], ["modelled time, one core", "modelled_ms", ms => timeText(ms * 1e6)],
    ["measured time of kernels", "measured_ms", ms => timeText(ms * 1e6)],
  ];
  const table = byId("totals"), head = table.insertRow();
  head.append(cell("th", ""), cell("th", "before", "number"), cell("th", "after", "number"));
  for (const [label, key, text] of rows) {
    const values = ["before", "after"].map(state => data.totals[state][key]);
    if (values.every(value => value === null || value === undefined)) continue;
    const row = table.insertRow();
    row.append(cell("th", label));
    values.forEach((value, place) => {
      const entry = cell("td", value === null || value === undefined ? "" : text(value), "number");
      entry.dataset.key = `${place ? "after" : "before"}.${key}`;
      entry.dataset.value = value ?? "";
      row.append(entry);
    });
  }
}

function fillSurvivors() {
  const box = byId("survivors");
  if (!data.survivors.length) { box.append(cell("p", "none", "note")); return; }
  const table = document.createElement("table");
  for (const each of data.survivors) {
    const row = table.insertRow(), what = row.insertCell(), button = cell("button", `${each.operator} ${each.node}`.trim(), "link");
    button.addEventListener("click", () => find(each.node));
    what.append(button, cell("p", `${each.location ? `${each.location}: ` : ""}${each.reason}. To remove it: ${each.remedy}.`, "note"));
    row.append(cell("td", bytesText(each.bytes), "number"));
  }
  box.append(table);
}

// Shows a node of the model: in the state before, where it is a box of its own, if there is one.
function find(name) { findIn(data.graphs.before ? "before" : "after", name); }

function findIn(state, name) {
  if (document.body.dataset.state !== state) { document.querySelector(`[name=state][value=${state}]`).checked = true; showState(state); }
  const nodes = data.graphs[state].nodes, lists = node => [node.sources, node.absorbed].flatMap(names => names || []);
  let number = nodes.findIndex(node => node.name === name || node.label === name);
  if (number < 0) number = nodes.findIndex(node => lists(node).includes(name));
  if (number >= 0) view.selectNode(number);
}

function fillLegend() {
  const boxes = [["kernel", "kernel"], ["moves", "data movement, kept"], ["copy", "copy outside kernels"], ["gone", "eliminated"], ["constant", "constant"]];
  const lines = [["buffer", "as written"], ["permuted", "permuted"], ["texel_buffer", "texel buffer"], ["image2d", "image"]];
  for (const [name, text] of boxes) {
    const box = document.createElement("span");
    box.className = "box";
    box.style.background = `var(--${name})`;
    box.style.borderColor = `var(--${name}-line)`;
    byId("legend").append(box, cell("span", text));
  }
  for (const [name, text] of lines) {
    const line = svg("svg", {width: 22, height: 8});
    line.append(svg("line", {class: `swatch ${name}`, x1: 0, y1: 4, x2: 22, y2: 4}));
    byId("legend").append(line, cell("span", text));
  }
}

byId("title").textContent = `${data.model} for ${data.target} (${data.pipeline})`;
document.title = `${data.model} for ${data.target}`;
fillTotals();
fillSurvivors();
fillLegend();
const before = document.querySelector("[name=state][value=before]");
before.disabled = !data.graphs.before;
for (const radio of document.querySelectorAll("[name=state]")) radio.addEventListener("change", () => showState(radio.value));
byId("find").addEventListener("input", applyFilter);
byId("find").addEventListener("keydown", event => { if (event.key === "Enter") view.selectNode(view.firstMatch()); });
for (const id of ["only-moves", "only-permuted"]) byId(id).addEventListener("change", applyFilter);
byId("zoom-in").addEventListener("click", () => view.setZoom(view.zoom * 1.25));
byId("zoom-out").addEventListener("click", () => view.setZoom(view.zoom / 1.25));
byId("zoom-fit").addEventListener("click", () => view.fit());
// Arrow keys in the empty canvas start at the first node.
byId("canvas").addEventListener("keydown", event => {
  if (event.target === byId("canvas") && (event.key === "ArrowDown" || event.key === "Enter")) { event.preventDefault(); view.selectNode(0); }
});
showState("after");
document.body.dataset.ready = Math.round(performance.now());
