// The keyboard: what each key does, and the window that lists them.

import { useEffect, useRef } from "preact/hooks";
import { keysShown, PAGES } from "../app";
import { get } from "../client";
import { ask, at, go, link } from "../routing";
import { toggle } from "../theme";

const OTHERS: [string, string][] = [
  ["/", "search for a pod or a node"],
  ["w", "the pod that waits first"],
  ["t", "light or dark"],
  ["y", "copy the command of this view"],
  ["Esc", "back to now, or close"],
  ["?", "these keys"],
];
const MAP: [string, string][] = [
  ["arrows", "move from node to node"],
  ["Enter", "open the node"],
  ["Space", "select it"],
  ["+ and −", "zoom; 0 shows all"],
];

export function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLInputElement;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && !/^(range|checkbox)$/.test(target.type)) {
    if (event.key === "Escape") target.blur();
    return;
  }
  const page = PAGES.find(([, , key]) => key === event.key);
  if (page) go(link(page[0]));
  else if (event.key === "?") keysShown.value = true;
  else if (event.key === "/") document.getElementById("search")?.focus();
  else if (event.key === "t") toggle();
  else if (event.key === "w") void firstWaiting();
  else if (event.key === "y") document.querySelector<HTMLButtonElement>("[data-copy]")?.click();
  else if (event.key === "Escape" && at.value) ask({ at: "" });
  else return;
  event.preventDefault();
}

async function firstWaiting(): Promise<void> {
  const answer = await get<{ pods: { pod: string; queue: string }[] }>("queue?limit=500");
  const stuck = answer.pods.find((pod) => pod.queue === "unschedulable") ?? answer.pods[0];
  if (stuck) go(link("pods", stuck.pod.split("/")));
}

export function Keys() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (keysShown.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [keysShown.value]);
  return (
    <dialog ref={dialog} class="keys" aria-labelledby="keys-title" onClose={() => (keysShown.value = false)}>
      <h2 id="keys-title">Keys</h2>
      <div class="key-columns">
        <dl>
          {PAGES.map(([name, title, key]) => (
            <Row key={name} name={key} does={title} />
          ))}
        </dl>
        <dl>
          {OTHERS.map(([key, does]) => (
            <Row key={key} name={key} does={does} />
          ))}
          {MAP.map(([key, does]) => (
            <Row key={key} name={key} does={`map: ${does}`} />
          ))}
        </dl>
      </div>
      <form method="dialog">
        <button type="submit" class="button">
          Close
        </button>
      </form>
    </dialog>
  );
}

function Row({ name, does }: { name: string; does: string }) {
  return (
    <div>
      <dt>
        <kbd>{name}</kbd>
      </dt>
      <dd>{does}</dd>
    </div>
  );
}
