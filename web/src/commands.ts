// Says which command gives the same answer as a view.

import { snapshot } from "./cluster";

/** The words that name the source, as for a shell. */
function source(): string[] {
  return snapshot.value?.state.command ?? [];
}

/** A word as a shell reads it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
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
