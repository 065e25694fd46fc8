// Draws how two nodes come to their scores: plugin by plugin, one beside the other, and the difference.

import type { NodeAnswer } from "../api";
import { steps } from "../scores";

const ROW = 30;
const NAMES = 250;
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
                {row.plugin}
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
