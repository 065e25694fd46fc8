// Says where on the map each node stands: groups one below the other, their nodes in rows of equal cells.

import type { NodeLabelColumn, Snapshot } from "../api";

export type Order = "name" | "use" | "free";

export interface Group {
  title: string;
  /** Places of its nodes in the snapshot. */
  nodes: number[];
  /** Where its first row of cells begins, in cells. */
  top: number;
  rows: number;
}

export interface Layout {
  columns: number;
  /** The height of everything, in cells. */
  height: number;
  groups: Group[];
  /** Column and row of each node's cell, by its place in the snapshot. */
  x: Float32Array;
  y: Float32Array;
}

/** The height of a group's title, in cells, given how large a cell is drawn. */
export const TITLE = 18;

export function use(known: Snapshot, place: number, resource = 0): number {
  const column = known.resources[resource];
  const most = column?.allocatable[place] ?? 0;
  return most > 0 ? (column?.requested[place] ?? 0) / most : 0;
}

/** The nodes by the value of a label, in the order that is asked for. */
export function grouped(known: Snapshot, key: string, order: Order): { title: string; nodes: number[] }[] {
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

/** Cells of this size for groups of nodes, as many to a row as the width has room for. */
export function layout(
  groups: { title: string; nodes: number[] }[],
  total: number,
  width: number,
  cell: number,
): Layout {
  const columns = Math.max(1, Math.floor(width / cell));
  const x = new Float32Array(total);
  const y = new Float32Array(total);
  const placed: Group[] = [];
  let top = 0;
  for (const group of groups) {
    const title = group.title ? TITLE / cell : 0;
    top += title;
    group.nodes.forEach((place, number) => {
      x[place] = number % columns;
      y[place] = top + Math.floor(number / columns);
    });
    const rows = Math.ceil(group.nodes.length / columns);
    placed.push({ ...group, top, rows });
    top += rows + 6 / cell;
  }
  return { columns, height: top, groups: placed, x, y };
}

/** The largest cell with which everything fits into a box. */
export function fittingCell(groups: { title: string; nodes: number[] }[], width: number, height: number): number {
  let small = 3;
  let large = 160;
  while (large - small > 0.5) {
    const cell = (small + large) / 2;
    const columns = Math.max(1, Math.floor(width / cell));
    const rows = groups.reduce((sum, group) => sum + Math.ceil(group.nodes.length / columns), 0);
    const titles = groups.filter((group) => group.title).length * TITLE + groups.length * 6;
    if (rows * cell + titles <= height) small = cell;
    else large = cell;
  }
  return Math.floor(small);
}

/** The node whose cell is at a point, in cells; -1 where there is none. */
export function nodeAt(plan: Layout, column: number, row: number): number {
  for (const group of plan.groups) {
    if (row < group.top || row >= group.top + group.rows) continue;
    const number = Math.floor(row - group.top) * plan.columns + Math.floor(column);
    return column >= 0 && column < plan.columns ? (group.nodes[number] ?? -1) : -1;
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
