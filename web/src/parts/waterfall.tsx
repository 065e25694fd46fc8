// Draws how two nodes come to their scores: plugin by plugin, one beside the other, and the difference.

import type { NodeAnswer } from "../api";
import { spaced } from "../format";

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

const ROW = 30;
const NAMES = 232;
const WIDTH = 900;
const NUMBERS = 160;

export function Waterfall({ winner, other }: { winner: NodeAnswer; other: NodeAnswer }) {
  const rows = steps(winner, other);
  const most = Math.max(1, ...rows.map((row) => Math.max(row.winner, row.other)));
  const room = WIDTH - NAMES - NUMBERS;
  const height = ROW * rows.length + 34;
  return (
    <figure class="waterfall">
      <svg viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={`Scores of ${winner.name} beside ${other.name}`}>
        {rows.map((row, number) => {
          const y = number * ROW;
          const difference = row.winner - row.other;
          return (
            <g key={row.plugin}>
              <text x={NAMES - 12} y={y + 19} text-anchor="end" class="w-name">
                {spaced(row.plugin)}
              </text>
              <rect x={NAMES} y={y + 5} width={(row.winner / most) * room} height={9} rx={2} class="w-first" />
              <rect x={NAMES} y={y + 16} width={(row.other / most) * room} height={9} rx={2} class="w-second" />
              <text x={WIDTH - NUMBERS + 96} y={y + 19} text-anchor="end" class="w-number">
                {row.winner} : {row.other}
              </text>
              <text x={WIDTH - 4} y={y + 19} text-anchor="end" class={difference < 0 ? "w-minus" : "w-plus"}>
                {difference > 0 ? `+${difference}` : difference < 0 ? `−${-difference}` : "0"}
              </text>
            </g>
          );
        })}
        <line x1={NAMES} x2={WIDTH} y1={height - 30} y2={height - 30} class="w-line" />
        <text x={NAMES - 12} y={height - 11} text-anchor="end" class="w-name strong">
          total
        </text>
        <text x={WIDTH - NUMBERS + 96} y={height - 11} text-anchor="end" class="w-number strong">
          {winner.total} : {other.total}
        </text>
        <text x={WIDTH - 4} y={height - 11} text-anchor="end" class="w-number strong">
          {(winner.total ?? 0) >= (other.total ?? 0) ? "+" : "−"}
          {Math.abs((winner.total ?? 0) - (other.total ?? 0))}
        </text>
      </svg>
      <figcaption>
        <span class="key first" /> <bdi>{winner.name}</bdi>
        <span class="key second" /> <bdi>{other.name}</bdi>
        <span class="soft">weighted scores by plugin; the last column sums to the margin</span>
      </figcaption>
    </figure>
  );
}
