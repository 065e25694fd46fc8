// What-if questions: as the address has them, as the API takes them, and as the command line writes them.

import { quoted } from "./commands";

/** The options of podium whatif that the panel offers, with what each needs. */
export const CHANGES = [
  { option: "drain", label: "Drain nodes", hint: "worker-1, worker-2 or worker-*", field: "nodes" },
  { option: "remove-nodes", label: "Remove nodes", hint: "worker-1 or worker-*", field: "nodes" },
  { option: "add-nodes", label: "Add nodes", hint: "2=like:worker-1", field: "" },
  { option: "cordon", label: "Cordon nodes", hint: "worker-1 or worker-*", field: "nodes" },
  { option: "uncordon", label: "Uncordon nodes", hint: "worker-1 or worker-*", field: "nodes" },
  { option: "untaint", label: "Remove a taint", hint: "gpu-*:nvidia.com/gpu", field: "" },
  { option: "taint", label: "Add a taint", hint: "worker-1:key=value:NoSchedule", field: "" },
  { option: "allocatable", label: "Change what nodes offer", hint: "worker-*:cpu=16", field: "" },
  { option: "scale", label: "Scale a workload", hint: "shop/deployment/web=5", field: "" },
  { option: "delete-pods", label: "Delete pods", hint: "shop/app=web", field: "" },
] as const;

export type Option = (typeof CHANGES)[number]["option"];

/** One change as it is written: an option and its text. */
export interface Wish {
  option: Option;
  text: string;
}

/** The change as a document of --change has it; throws a sentence where it cannot be one. */
export function change(wish: Wish): Record<string, unknown> {
  const { option, text } = wish;
  if (!text.trim()) throw new Error(`--${option}: write ${CHANGES.find((each) => each.option === option)?.hint}`);
  switch (option) {
    case "drain":
    case "cordon":
    case "uncordon":
      return { change: option, nodes: text };
    case "remove-nodes":
      return { change: "removeNodes", nodes: text };
    case "add-nodes": {
      const found = /^(\d+)=like:(.+)$/.exec(text);
      if (!found) throw new Error(`--add-nodes ${text}: write N=like:NODE, such as 2=like:worker-1`);
      return { change: "addNodes", count: Number(found[1]), like: found[2] };
    }
    case "taint": {
      const found = /^(.*?):([^:=]+)(?:=([^:]*))?:(\w+)$/.exec(text);
      if (!found) throw new Error(`--taint ${text}: write NODES:KEY=VALUE:EFFECT`);
      return { change: "taint", nodes: found[1], key: found[2], value: found[3] ?? "", effect: found[4] };
    }
    case "untaint": {
      const found = /^(.*?):([^:]+)(?::(\w+))?$/.exec(text);
      if (!found) throw new Error(`--untaint ${text}: write NODES:KEY or NODES:KEY:EFFECT`);
      return { change: "untaint", nodes: found[1], key: found[2], effect: found[3] ?? "" };
    }
    case "allocatable": {
      const found = /^(.*?):([^:=]+)=(.+)$/.exec(text);
      if (!found) throw new Error(`--allocatable ${text}: write NODES:RESOURCE=AMOUNT`);
      return { change: "allocatable", nodes: found[1], resource: found[2], amount: found[3] };
    }
    case "scale": {
      const found = /^([^/]+\/[^/]+\/[^=]+)=(\d+)$/.exec(text);
      if (!found) throw new Error(`--scale ${text}: write NAMESPACE/KIND/NAME=N`);
      return { change: "scale", workload: found[1], replicas: Number(found[2]) };
    }
    case "delete-pods":
      return { change: "deletePods", selector: text };
  }
}

/** The changes in an address, in their order: ?drain=a&cordon=b. */
export function wishes(query: URLSearchParams): Wish[] {
  const known = new Set<string>(CHANGES.map((each) => each.option));
  return [...query].flatMap(([option, text]) =>
    known.has(option) && text ? [{ option: option as Option, text }] : [],
  );
}

/** The options of the command that asks the same. */
export function options(asked: Wish[], manifests: string, preempt: boolean): string {
  const words = asked.flatMap((wish) => [`--${wish.option}`, quoted(wish.text)]);
  if (manifests.trim()) words.push("-f", "pods.yaml");
  if (preempt) words.push("--preempt");
  return words.join(" ");
}
