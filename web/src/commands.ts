// Says which command gives the same answer as a view.

import { snapshot } from "./cluster";
import { quoted } from "./shell";

/** The words that name the source, as for a shell. */
function source(): string[] {
  return snapshot.value?.state.command ?? [];
}

export function command(...words: string[]): string {
  return ["podium", ...words, ...source()].map(quoted).join(" ");
}

/** What shows the waiting pods: of a dump there is no queue, so all of them are explained. */
export function queueCommand(): string {
  return source().length ? command("explain", "--all") : command("queue");
}

export function explainCommand(pod: string): string {
  return command("explain", pod);
}
