// What is known about a node or a tensor, as a list.

function describeNode(graph, number, select) {
  const node = graph.nodes[number], list = document.createElement("dl");
  const add = (label, value) => { if (value !== undefined && value !== null && value !== "") { list.append(cell("dt", label)); const d = document.createElement("dd"); d.append(value); list.append(d); } };
  const code = text => cell("code", text);
  const names = values => values && values.length ? values.join(", ") : undefined;
  add(node.kind, code(node.name));
  if (node.kind === "kernel") add("computes", names(node.sources));
  if (node.kind !== "operator") add("read or written through", names(node.absorbed));
  if (node.computed_by) {
    const button = cell("button", node.computed_by, "link");
    button.addEventListener("click", () => findIn("after", node.computed_by));
    add("computed by the kernel", button);
  }
  if (node.verdict) add("verdict", node.verdict === "movement" ? "only moves data" : node.verdict);
  add("reason", node.reason);
  if (node.kind === "operator") add("taken over by", names(node.absorbed));
  if (node.map) add("index map", code(node.map));
  add("in the source", node.location);
  add("what would remove it", node.remedy);
  if (node.kind === "kernel") {
    add("reads", bytesText(node.read_bytes));
    add("writes", bytesText(node.written_bytes));
    add("time", timeText(node.time_ns));
  }
  if (node.weight_bytes) add("weights", bytesText(node.weight_bytes));
  const neighbours = (from, to, label) => {
    const edges = graph.edges.filter(edge => (edge[from] || 0) === number);
    if (!edges.length) return;
    const div = document.createElement("div");
    for (const edge of edges) {
      const button = cell("button", `${nameOf(graph, edge[to] || 0)} (${edge.shape.join("x")}x${edge.dtype})`, "link");
      button.addEventListener("click", () => select(edge[to] || 0));
      div.append(button, document.createElement("br"));
    }
    add(label, div);
  };
  neighbours("target", "source", "from");
  neighbours("source", "target", "to");
  return list;
}

function describeEdge(graph, edge, select) {
  const box = document.createElement("div"), list = document.createElement("dl");
  const add = (label, value) => { list.append(cell("dt", label)); const d = document.createElement("dd"); d.append(value); list.append(d); };
  const node = number => { const button = cell("button", nameOf(graph, number), "link"); button.addEventListener("click", () => select(number)); return button; };
  add("tensor", `${edge.shape.join("x")}x${edge.dtype}`);
  add("from", node(edge.source || 0));
  add("to", node(edge.target || 0));
  add("bytes", bytesText(edge.bytes));
  add("layout", cell("code", layoutText(edge.order ? edge.order.length : edge.shape.length, edge.order || [], edge.storage || "buffer")));
  add("asked by", edge.asked_by || "nobody: as it is written");
  box.append(list, cell("p", "Logical index in the first places in memory:", "note"), layoutPicture(edge));
  return box;
}
