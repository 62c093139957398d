// The graph as SVG: boxes in rows, tensors as curves.

const BOX_WIDTH = 250, BOX_HEIGHT = 40, GAP_X = 40, GAP_Y = 34, MARGIN = 24;

class GraphView {
  constructor(canvas, graph, onSelect) {
    this.canvas = canvas;
    this.graph = graph;
    this.onSelect = onSelect;
    this.zoom = 1;
    const columns = graph.nodes.map(node => node.column || 0);
    this.left = Math.min(0, ...columns);
    this.width = (Math.max(0, ...columns) - this.left + 1) * (BOX_WIDTH + GAP_X) + 2 * MARGIN;
    this.height = (Math.max(0, ...graph.nodes.map(node => node.row || 0)) + 1) * (BOX_HEIGHT + GAP_Y) + 2 * MARGIN;
    this.picture = svg("svg", {role: "application", "aria-label": "graph", viewBox: `0 0 ${this.width} ${this.height}`});
    this.edges = graph.edges.map((edge, index) => this.drawEdge(edge, index));
    this.boxes = graph.nodes.map((node, number) => this.drawNode(node, number));
    this.picture.append(...this.edges, ...this.boxes);
    // One listener for all: thousands of nodes have no handlers of their own.
    this.picture.addEventListener("click", event => this.pick(event.target));
    this.picture.addEventListener("keydown", event => this.key(event));
    canvas.replaceChildren(this.picture);
    this.setZoom(1);
  }

  x(number) { return MARGIN + ((this.graph.nodes[number].column || 0) - this.left) * (BOX_WIDTH + GAP_X); }
  y(number) { return MARGIN + (this.graph.nodes[number].row || 0) * (BOX_HEIGHT + GAP_Y); }

  drawNode(node, number) {
    const kind = node.verdict === "movement" ? "moves" : node.verdict || "";
    const group = svg("g", {class: `node ${node.kind} ${kind}`, transform: `translate(${this.x(number)} ${this.y(number)})`, tabindex: number ? -1 : 0, role: "button", "aria-label": `${node.kind} ${node.label}`, "data-node": number});
    group.append(svg("rect", {width: BOX_WIDTH, height: BOX_HEIGHT}));
    group.append(svg("text", {x: 8, y: 16}, shorten(node.label, 34)));
    const below = node.kind === "kernel" ? [node.name, node.sources && node.sources.length > 1 && `${node.sources.length} nodes`, node.absorbed && `${node.absorbed.length} absorbed`, node.time_ns && timeText(node.time_ns)].filter(Boolean).join(" · ") : node.kind === "operator" ? (node.verdict || "") : node.kind;
    group.append(svg("text", {class: "small", x: 8, y: 32}, shorten(below, 40)));
    group.append(svg("title", {}, `${node.label}\n${node.name}`));
    return group;
  }

  drawEdge(edge, index) {
    const from = edge.source || 0, to = edge.target || 0;
    const x1 = this.x(from) + BOX_WIDTH / 2, y1 = this.y(from) + BOX_HEIGHT, x2 = this.x(to) + BOX_WIDTH / 2, y2 = this.y(to);
    const rows = (this.graph.nodes[to].row || 0) - (this.graph.nodes[from].row || 0);
    // An edge over several rows goes around the boxes between them.
    const side = rows > 1 ? (BOX_WIDTH / 2 + GAP_X * 0.5) + (index % 5) * 4 : 0;
    const path = side
      ? `M${x1} ${y1} C${x1} ${y1 + GAP_Y},${x1 + side} ${y1},${x1 + side} ${y1 + GAP_Y} L${x2 + side} ${y2 - GAP_Y} C${x2 + side} ${y2},${x2} ${y2 - GAP_Y},${x2} ${y2}`
      : `M${x1} ${y1} C${x1} ${(y1 + y2) / 2},${x2} ${(y1 + y2) / 2},${x2} ${y2}`;
    const line = svg("path", {class: `edge ${edge.storage || "buffer"} ${edge.order ? "permuted" : ""}`, d: path, "stroke-width": edgeWidth(edge.bytes), "data-edge": index});
    line.append(svg("title", {}, `${edge.shape.join("x")}x${edge.dtype}, ${bytesText(edge.bytes)}`));
    return line;
  }

  pick(target) {
    const node = target.closest("[data-node]"), edge = target.closest("[data-edge]");
    if (node) this.selectNode(Number(node.dataset.node), false);
    else if (edge) this.selectEdge(Number(edge.dataset.edge));
  }

  mark(element) {
    for (const old of this.picture.querySelectorAll(".selected")) old.classList.remove("selected");
    element.classList.add("selected");
  }

  selectNode(number, scroll = true) {
    const box = this.boxes[number];
    if (!box) return;
    this.mark(box);
    for (const other of this.picture.querySelectorAll(".node[tabindex='0']")) other.setAttribute("tabindex", -1);
    box.setAttribute("tabindex", 0);
    if (scroll) { box.focus({preventScroll: true}); this.reveal(number); }
    this.onSelect({node: number});
  }

  selectEdge(index) { this.mark(this.edges[index]); this.onSelect({edge: index}); }

  reveal(number) {
    this.canvas.scrollTo({left: this.x(number) * this.zoom - this.canvas.clientWidth / 2 + BOX_WIDTH * this.zoom / 2, top: this.y(number) * this.zoom - this.canvas.clientHeight / 2});
  }

  // Up and down follow tensors, left and right the order of the program; Tab in a node goes to its tensors' details.
  key(event) {
    const box = event.target.closest("[data-node]");
    if (!box) return;
    const number = Number(box.dataset.node), edges = this.graph.edges;
    let next;
    if (event.key === "ArrowDown") next = edges.find(edge => (edge.source || 0) === number)?.target;
    else if (event.key === "ArrowUp") { const found = edges.find(edge => edge.target === number); next = found && (found.source || 0); }
    else if (event.key === "ArrowRight") next = number + 1;
    else if (event.key === "ArrowLeft") next = number - 1;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = this.graph.nodes.length - 1;
    else if (event.key === "Enter" || event.key === " ") next = number;
    else if (event.key === "e") { const index = edges.findIndex(edge => (edge.source || 0) === number); if (index >= 0) this.selectEdge(index); event.preventDefault(); return; }
    else return;
    event.preventDefault();
    if (next !== undefined && next >= 0) this.selectNode(next);
  }

  setZoom(zoom) {
    this.zoom = Math.min(3, Math.max(0.02, zoom));
    this.picture.setAttribute("width", this.width * this.zoom);
    this.picture.setAttribute("height", this.height * this.zoom);
  }

  fit() { this.setZoom(Math.min(this.canvas.clientWidth / this.width, this.canvas.clientHeight / this.height)); }

  // Dims what does not match; returns how many nodes do.
  filter(text, onlyMoves, onlyPermuted) {
    const wanted = text.toLowerCase();
    const touched = new Set();
    if (onlyPermuted) for (const edge of this.graph.edges) if (edge.order) touched.add(edge.source || 0).add(edge.target || 0);
    let matches = 0;
    this.graph.nodes.forEach((node, number) => {
      const names = [node.label, node.name, ...(node.sources || []), ...(node.kind === "operator" ? [] : node.absorbed || [])];
      const fits = (!wanted || names.some(name => name.toLowerCase().includes(wanted))) && (!onlyMoves || Boolean(node.verdict) || node.kind === "copy") && (!onlyPermuted || touched.has(number));
      this.boxes[number].classList.toggle("dim", !fits);
      matches += fits;
    });
    const filtering = Boolean(wanted) || onlyMoves || onlyPermuted;
    this.graph.edges.forEach((edge, index) => this.edges[index].classList.toggle("dim", filtering && !(onlyPermuted && edge.order)));
    return matches;
  }

  firstMatch() { return this.boxes.findIndex(box => !box.classList.contains("dim")); }
}

// From 1 pixel for a kilobyte to 9 for a hundred megabytes.
function edgeWidth(bytes) { return Math.min(9, Math.max(1, 1.6 * (Math.log10(Math.max(bytes, 1)) - 2.4))).toFixed(1); }

function shorten(text, length) { return text.length <= length ? text : `...${text.slice(3 - length)}`; }
