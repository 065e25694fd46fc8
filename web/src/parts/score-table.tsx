// Shows nodes × plugins; of thousands of rows only those in sight are in the document.

import { useSignal } from "@preact/signals";
import type { NodeAnswer } from "../api";
import { spaced } from "../format";
import { NodeName } from "./small";

const ROW = 32;
const SHOWN = 14;

export function ScoreTable({ nodes, chosen }: { nodes: NodeAnswer[]; chosen: string }) {
  const top = useSignal(0);
  const plugins = Object.keys(nodes[0]?.scores ?? {}).filter((plugin) => nodes.some((node) => node.scores?.[plugin]));
  const first = Math.max(0, Math.floor(top.value / ROW) - 4);
  const shown = nodes.slice(first, first + SHOWN + 8);
  const height = Math.min(nodes.length, SHOWN) * ROW + 56;
  return (
    <div
      class="scroll virtual"
      style={{ height: `${height}px` }}
      tabIndex={0}
      role="region"
      aria-label="Scores of all nodes"
      onScroll={(event) => {
        top.value = event.currentTarget.scrollTop;
      }}
    >
      <table class="table" aria-rowcount={nodes.length + 1}>
        <thead>
          <tr>
            <th>Node</th>
            <th class="number">Total</th>
            {plugins.map((plugin) => (
              <th key={plugin} class="number plugin">
                {spaced(plugin)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && (
            <tr aria-hidden="true">
              <td colSpan={plugins.length + 2} style={{ height: `${first * ROW}px` }} />
            </tr>
          )}
          {shown.map((node, number) => (
            <tr key={node.name} aria-rowindex={first + number + 2} class={node.name === chosen ? "chosen" : ""}>
              <td>
                <NodeName name={node.name} />
              </td>
              <td class="number">
                <b>{node.total}</b>
              </td>
              {plugins.map((plugin) => (
                <td key={plugin} class="number">
                  {node.scores?.[plugin] ?? 0}
                </td>
              ))}
            </tr>
          ))}
          {first + shown.length < nodes.length && (
            <tr aria-hidden="true">
              <td colSpan={plugins.length + 2} style={{ height: `${(nodes.length - first - shown.length) * ROW}px` }} />
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}
