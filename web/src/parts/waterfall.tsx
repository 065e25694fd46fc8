// Draws how two nodes come to their scores: plugin by plugin, one below the other, and the difference.

import type { NodeAnswer } from "../api";
import { steps } from "../scores";

const ROW = 44;
/** How far from the right edge the two scores end. */
const NUMBERS = 64;

export function Waterfall({ winner, other }: { winner: NodeAnswer; other: NodeAnswer }) {
  const rows = steps(winner, other);
  const most = Math.max(1, ...rows.map((row) => Math.max(row.winner, row.other)));
  const end = ROW * rows.length;
  return (
    <figure class="waterfall">
      <svg width="100%" height={end + 30} role="img" aria-label={`Scores of ${winner.name} beside ${other.name}`}>
        {rows.map((row, number) => {
          const y = number * ROW;
          return (
            <g key={row.plugin}>
              <Line y={y + 13} name={row.plugin} first={row.winner} second={row.other} />
              <rect y={y + 20} width={`${(100 * row.winner) / most}%`} height={7} rx={2} class="w-first" />
              <rect y={y + 29} width={`${(100 * row.other) / most}%`} height={7} rx={2} class="w-second" />
            </g>
          );
        })}
        <line x1="0" x2="100%" y1={end + 2} y2={end + 2} class="w-line" />
        <Line y={end + 21} name="Total" first={winner.total ?? 0} second={other.total ?? 0} strong />
      </svg>
      <figcaption>
        <span class="key first" /> <bdi>{winner.name}</bdi>
        <span class="key second" /> <bdi>{other.name}</bdi>
        <span class="soft">weighted scores; the differences on the right add up to the margin</span>
      </figcaption>
    </figure>
  );
}

function Line(props: { y: number; name: string; first: number; second: number; strong?: boolean }) {
  const { y, first, second } = props;
  const ahead = first - second;
  return (
    <g class={props.strong ? "strong" : ""}>
      <text y={y}>{props.name}</text>
      <text x="100%" dx={-NUMBERS} y={y} text-anchor="end" class="w-number">
        {first} : {second}
      </text>
      <text x="100%" y={y} text-anchor="end" class={ahead < 0 ? "w-minus" : "w-plus"}>
        {ahead > 0 ? `+${ahead}` : ahead < 0 ? `−${-ahead}` : "0"}
      </text>
    </g>
  );
}
