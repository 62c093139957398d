// Which logical index lies where: the first places of a tensor whose dimensions were permuted.

const PICTURE_ROWS = 6, PICTURE_COLUMNS = 4;

// The text of a layout attribute.
function layoutText(rank, order, storage) {
  const dims = Array.from({length: rank}, (_, axis) => `d${axis}`);
  const places = order.length ? order.map(axis => `d${axis}`) : dims;
  return `(${dims.join(", ")}) -> (${places.join(", ")}), ${storage}`;
}

// A table: rows are y (all but the innermost dimension), columns x (the innermost one); cells are logical indices.
function layoutPicture(edge) {
  const stored = edge.shape, order = edge.order && edge.order.length === stored.length ? edge.order : stored.map((_, k) => k);
  const width = stored.length ? stored[stored.length - 1] : 1;
  const height = stored.reduce((product, extent) => product * extent, 1) / Math.max(width, 1);
  const table = document.createElement("table");
  table.className = "places";
  const head = table.insertRow();
  head.append(document.createElement("th"));
  for (let x = 0; x < Math.min(width, PICTURE_COLUMNS); x++) head.append(cell("th", `x=${x}`));
  if (width > PICTURE_COLUMNS) head.append(cell("th", `+${width - PICTURE_COLUMNS}`));
  for (let y = 0; y < Math.min(height, PICTURE_ROWS); y++) {
    const row = table.insertRow();
    row.append(cell("th", `y=${y}`));
    for (let x = 0; x < Math.min(width, PICTURE_COLUMNS); x++) row.append(cell("td", logicalIndex(stored, order, y, x).join(",")));
  }
  if (height > PICTURE_ROWS) { const row = table.insertRow(); row.append(cell("th", `+${height - PICTURE_ROWS}`)); }
  return table;
}

// The logical index at (y, x): digits of y in the outer stored extents, each put back to where its dimension is written.
function logicalIndex(stored, order, y, x) {
  const physical = new Array(stored.length).fill(0);
  if (stored.length) physical[stored.length - 1] = x;
  let rest = y;
  for (let k = stored.length - 2; k >= 0; k--) { physical[k] = rest % stored[k]; rest = Math.floor(rest / stored[k]); }
  const logical = [];
  order.forEach((axis, place) => { logical[axis] = physical[place]; });
  return logical;
}

function cell(tag, text, className) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}
