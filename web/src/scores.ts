// Compares what nodes answered: score by score, and refusal by refusal.

import type { NodeAnswer } from "./api";

export interface Step {
  plugin: string;
  winner: number;
  other: number;
  /** How far the winner is ahead after this plugin. */
  ahead: number;
}

/** The plugins in which the two differ or score at all, those that tip the scales first. */
export function steps(winner: NodeAnswer, other: NodeAnswer): Step[] {
  const names = Object.keys({ ...winner.scores, ...other.scores });
  const pairs = names
    .map((plugin) => ({ plugin, winner: winner.scores?.[plugin] ?? 0, other: other.scores?.[plugin] ?? 0 }))
    .filter((each) => each.winner || each.other)
    .sort((a, b) => Math.abs(b.winner - b.other) - Math.abs(a.winner - a.other) || a.plugin.localeCompare(b.plugin));
  let ahead = 0;
  return pairs.map((each) => {
    ahead += each.winner - each.other;
    return { ...each, ahead };
  });
}

interface Rejection {
  plugin: string;
  reason: string;
  nodes: string[];
}

/** The nodes that refuse, by plugin and reason, as podium explain groups them. */
export function rejections(nodes: NodeAnswer[]): Rejection[] {
  const found = new Map<string, Rejection>();
  for (const node of nodes) {
    if (node.feasible) continue;
    const reason = node.reasons?.join(", ") ?? "";
    const key = `${node.plugin}\n${reason}`;
    const known = found.get(key) ?? { plugin: node.plugin ?? "", reason, nodes: [] };
    known.nodes.push(node.name);
    found.set(key, known);
  }
  return [...found.values()].sort((a, b) => b.nodes.length - a.nodes.length || a.plugin.localeCompare(b.plugin));
}
