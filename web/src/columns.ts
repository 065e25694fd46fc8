// Takes ticks into the columns of a snapshot.

import type { Snapshot, Tick } from "./api";

/** The changes of a tick, taken into the columns of a snapshot. */
export function apply(known: Snapshot, tick: Tick): void {
  tick.rows.forEach((row, number) => {
    known.pods[row] = tick.pods[number] ?? 0;
    known.flags[row] = tick.flags[number] ?? 0;
    known.resources.forEach((resource, line) => {
      resource.requested[row] = tick.requested[line]?.[number] ?? 0;
    });
  });
  known.number = tick.number;
}
