// Small parts that pages are made of.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { PodEntry } from "../api";
import type { Answer } from "../asking";
import { snapshot } from "../cluster";
import { amount, clock, percent, share } from "../format";
import { nodeLink, podLink } from "../routing";

/** The head of a view: what it is, the command with the same answer once its source is known, and its JSON. */
export function Head(props: { title: string; command?: string; json?: string; children?: ComponentChildren }) {
  return (
    <header class="head">
      <h1>{props.title}</h1>
      <div class="head-more">
        {props.children}
        {props.command && snapshot.value && <Copy text={props.command} />}
        {props.json && (
          <a class="button quiet" href={`api/v1/${props.json}`} target="_blank" rel="noopener">
            JSON
          </a>
        )}
      </div>
    </header>
  );
}

/** A command that can be copied; which kubeconfig it needs is copied, and shown by the tooltip alone. */
export function Copy({ text }: { text: string }) {
  const copied = useSignal(false);
  const shown = text.replace(/ --kubeconfig \S+/, "");
  const copy = async () => {
    await navigator.clipboard?.writeText(text).catch(() => undefined);
    copied.value = true;
    setTimeout(() => {
      copied.value = false;
    }, 1500);
  };
  return (
    <button type="button" class="button copy" onClick={copy} title={`Copy: ${text}`} data-copy={text}>
      <code>{shown}</code>
      <span class="copy-mark" role="status">
        {copied.value ? "Copied" : "Copy"}
      </span>
    </button>
  );
}

/** What an empty view teaches. */
export function Empty(props: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{props.title}</h2>
      <div>{props.children}</div>
    </div>
  );
}

export function Wrong({ error }: { error: string }) {
  return error ? (
    <p class="wrong" role="alert">
      {error}
    </p>
  ) : null;
}

export function Loading() {
  return (
    <p class="loading" role="status">
      Asking the scheduler…
    </p>
  );
}

/** What stands where an answer is missing: what is wrong, or that it is asked for. */
export function Waiting({ answer }: { answer: Answer<unknown> }) {
  if (answer.error) return <Wrong error={answer.error} />;
  return answer.value ? null : <Loading />;
}

/** Why a pod waits: first what nodes say, then, smaller, what preemption found. */
export function Reason({ text }: { text: string }) {
  const [why, preemption] = text.split(/ (?=preemption: )/, 2);
  return (
    <>
      {why || "not tried yet"} {preemption && <span class="soft small">{preemption}</span>}
    </>
  );
}

/** How much of a resource is requested: a bar, and the numbers beside it. */
export function Bar(props: { name: string; label?: string; requested: number; allocatable: number; brief?: boolean }) {
  const part = share(props.requested, props.allocatable);
  const numbers = `${amount(props.name, props.requested)} of ${amount(props.name, props.allocatable)}`;
  return (
    <div class="bar-row" title={`${props.name}: ${numbers} requested`}>
      <span class="bar-name">{props.label ?? props.name}</span>
      <span class="bar">
        <span class={part > 0.9 ? "bar-part full" : "bar-part"} style={{ width: `${Math.min(100, part * 100)}%` }} />
      </span>
      <span class="bar-value">{props.brief ? percent(part) : numbers}</span>
    </div>
  );
}

export function Tile(props: { label: string; value: string; detail?: string; href?: string }) {
  const inside = (
    <>
      <span class="tile-label">{props.label}</span>
      <span class="tile-value">{props.value}</span>
      {props.detail && <span class="tile-detail">{props.detail}</span>}
    </>
  );
  return props.href ? (
    <a class="tile" href={props.href}>
      {inside}
    </a>
  ) : (
    <div class="tile">{inside}</div>
  );
}

export function Panel(props: {
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={`panel ${props.class ?? ""}`}>
      <div class="panel-head">
        <h2>{props.title}</h2>
        {props.aside}
      </div>
      {props.children}
    </section>
  );
}

export function PodName({ name }: { name: string }) {
  return (
    <a class="name" href={podLink(name)}>
      <bdi>{name}</bdi>
    </a>
  );
}

export function NodeName({ name }: { name: string }) {
  return (
    <a class="name" href={nodeLink(name)}>
      <bdi>{name}</bdi>
    </a>
  );
}

export const QUEUES = ["active", "backoff", "unschedulable", "gated", "permit"] as const;

const WORDS: Record<string, string> = {
  active: "to be tried",
  backoff: "backing off",
  unschedulable: "waiting for an event",
  gated: "gated",
  permit: "held at Permit",
};

export function queueWords(queue: string): string {
  return WORDS[queue] ?? queue;
}

/** What lately happened to pods, the newest first. */
export function Entries(props: { entries: PodEntry[]; named: boolean }) {
  return (
    <ol class="entries">
      {props.entries.map((each) => (
        <li key={each.number} class={`entry ${each.kind}`}>
          <time dateTime={each.time}>{clock(each.time)}</time>
          <span class="entry-mark" aria-hidden="true" />
          <span class="entry-text">
            {props.named && <PodName name={each.pod} />} <Happened entry={each} />
          </span>
        </li>
      ))}
    </ol>
  );
}

function Happened({ entry }: { entry: PodEntry }) {
  switch (entry.kind) {
    case "bound":
      return (
        <>
          bound to <NodeName name={entry.where} />
        </>
      );
    case "nominated":
      return (
        <>
          room is made on <NodeName name={entry.where} />
        </>
      );
    case "held":
      return (
        <>
          held at Permit by {entry.cause}, with room on <NodeName name={entry.where} />
        </>
      );
    case "failed":
      return <span class="soft">{entry.cause}</span>;
    default:
      return (
        <span class="soft">
          {queueWords(entry.where)}: {entry.cause}
          {entry.object && (
            <>
              {" of "}
              <bdi>{entry.object}</bdi>
            </>
          )}
        </span>
      );
  }
}

export function Icon({ path }: { path: string }) {
  return (
    <svg viewBox="0 0 16 16" width="16" height="16" fill="currentColor" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}
