// Says where on the map each node stands: groups beside and below each other, their nodes in rows of equal cells.

import type { NodeLabelColumn, Snapshot } from "../api";

export type Order = "name" | "use" | "free";

export interface Group {
  title: string;
  /** Places of its nodes in the snapshot. */
  nodes: number[];
  /** Where its first cell is, in cells, and how many there are in a row. */
  left: number;
  top: number;
  columns: number;
  rows: number;
}

export interface Layout {
  /** The width of everything, in cells. */
  columns: number;
  /** The height of everything, in cells. */
  height: number;
  groups: Group[];
  /** Column and row of each node's cell, by its place in the snapshot. */
  x: Float32Array;
  y: Float32Array;
}

/** The height of a group's title, in cells, given how large a cell is drawn. */
const TITLE = 18;

export function use(known: Snapshot, place: number, resource = 0): number {
  const column = known.resources[resource];
  const most = column?.allocatable[place] ?? 0;
  return most > 0 ? (column?.requested[place] ?? 0) / most : 0;
}

/** The nodes by the value of a label, in the order that is asked for. */
export function grouped(known: Snapshot, key: string, order: Order): Nodes[] {
  const label: NodeLabelColumn | undefined = known.labels.find((each) => each.key === key);
  const found = new Map<number, number[]>();
  known.names.forEach((_, place) => {
    const value = label?.of[place] ?? -1;
    const nodes = found.get(value);
    if (nodes) nodes.push(place);
    else found.set(value, [place]);
  });
  const natural = new Intl.Collator("en", { numeric: true });
  const rank = known.names.map((name, place) => ({ name, place })).sort((a, b) => natural.compare(a.name, b.name));
  const position = new Int32Array(rank.length);
  rank.forEach(({ place }, number) => {
    position[place] = number;
  });
  const byName = (a: number, b: number) => (position[a] ?? 0) - (position[b] ?? 0);
  const compare =
    order === "name"
      ? byName
      : (a: number, b: number) => (use(known, b) - use(known, a)) * (order === "use" ? 1 : -1) || byName(a, b);
  return [...found]
    .map(([value, nodes]) => ({
      title: value < 0 ? (label ? "without it" : "") : (label?.values[value] ?? ""),
      nodes: nodes.sort(compare),
    }))
    .sort((a, b) => natural.compare(a.title, b.title));
}

type Nodes = { title: string; nodes: number[] };

/** Space below a group, and between two side by side, in pixels. */
const GAP = 6;

/** Groups from left to right as far as there is room, then below; each with as many cells to a row as the width has. */
function shelves(groups: Nodes[], width: number, cell: number): { placed: Group[]; columns: number; height: number } {
  const columns = Math.max(1, Math.floor(width / cell));
  const title = groups.some((group) => group.title) ? TITLE / cell : 0;
  const placed: Group[] = [];
  let [left, top, bottom] = [0, 0, 0];
  for (const { title: name, nodes } of groups) {
    const wide = Math.min(columns, nodes.length);
    if (left > 0 && left + wide > width / cell) [left, top] = [0, bottom];
    const rows = Math.ceil(nodes.length / columns);
    placed.push({ title: name, nodes, left, top: top + title, columns: wide, rows });
    bottom = Math.max(bottom, top + title + rows + GAP / cell);
    left += wide + (2 * GAP) / cell;
  }
  return { placed, columns, height: bottom };
}

/** Cells of this size for groups of nodes. */
export function layout(groups: Nodes[], total: number, width: number, cell: number): Layout {
  const x = new Float32Array(total);
  const y = new Float32Array(total);
  const { placed, columns, height } = shelves(groups, width, cell);
  for (const group of placed) {
    group.nodes.forEach((place, number) => {
      x[place] = group.left + (number % group.columns);
      y[place] = group.top + Math.floor(number / group.columns);
    });
  }
  return { columns, height, groups: placed, x, y };
}

/** The largest cell, up to a limit, with which everything fits into a box. */
export function fittingCell(groups: Nodes[], width: number, height: number, largest: number): number {
  let small = 3;
  let large = largest + 1;
  while (large - small > 0.5) {
    const cell = (small + large) / 2;
    if (shelves(groups, width, cell).height * cell <= height) small = cell;
    else large = cell;
  }
  return Math.floor(small);
}

/** The node whose cell is at a point, in cells; -1 where there is none. */
export function nodeAt(plan: Layout, column: number, row: number): number {
  for (const group of plan.groups) {
    const [across, down] = [column - group.left, row - group.top];
    if (across < 0 || across >= group.columns || down < 0 || down >= group.rows) continue;
    return group.nodes[Math.floor(down) * group.columns + Math.floor(across)] ?? -1;
  }
  return -1;
}

/** The node that an arrow key leads to. */
export function neighbour(plan: Layout, place: number, key: string): number {
  const order = plan.groups.flatMap((group) => group.nodes);
  const here = order.indexOf(place);
  if (here < 0) return order[0] ?? -1;
  if (key === "ArrowRight") return order[here + 1] ?? place;
  if (key === "ArrowLeft") return order[here - 1] ?? place;
  if (key === "Home") return order[0] ?? place;
  if (key === "End") return order.at(-1) ?? place;
  const step = key === "ArrowDown" ? 1 : -1;
  const column = plan.x[place] ?? 0;
  let best = -1;
  let bestRow = Number.POSITIVE_INFINITY;
  for (const other of order) {
    const rows = ((plan.y[other] ?? 0) - (plan.y[place] ?? 0)) * step;
    if (rows > 0.01 && rows < bestRow + 0.01 && (plan.x[other] ?? 0) <= column) {
      best = other;
      bestRow = rows;
    }
  }
  return best < 0 ? place : best;
}
