// Says which command gives the same answer as a view.

import { snapshot } from "./cluster";

/** A word as a shell reads it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

/** The words that name the source: `--from dump.yaml`, or the kubeconfig of podium up. */
function source(): string[] {
  return snapshot.value?.state.command ?? [];
}

export function command(...words: string[]): string {
  return ["podium", ...words, ...source()].map(quoted).join(" ");
}

function ofDump(): boolean {
  return snapshot.value?.state.source === "dump";
}

/** What shows the waiting pods: of a dump there is no queue, so all of them are explained. */
export function queueCommand(): string {
  return ofDump() ? command("explain", "--all") : command("queue");
}

/** What lists what each node offers and what is requested of it. */
export function nodeCommand(...names: string[]): string | undefined {
  if (ofDump()) return names.length ? command("whatif", "--drain", ...names) : undefined;
  return ["kubectl", "describe", names.length ? "node" : "nodes", ...names, ...source()].map(quoted).join(" ");
}

/** What shows the configuration in force. */
export function configurationCommand(): string {
  const words = source();
  if (snapshot.value?.state.source === "podium up")
    return ["kubectl", "get", "--raw", "/configz", ...words].map(quoted).join(" ");
  const file = words[words.indexOf("--config") + 1];
  return words.includes("--config") && file ? `podium check ${quoted(file)}` : "podium plugins -o wide";
}
