// Holds what the page knows of the cluster: the snapshot, and what ticks changed since.

import { batch, effect, signal } from "@preact/signals";
import type { PodEntry, QueueCounts, Snapshot, Tick, TimelineAnswer } from "./api";
import { get, NoAnswerError, readTicks } from "./client";
import { at } from "./routing";

const MOST_ENTRIES = 200;
const MOST_RATES = 300;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

export interface Rate {
  /** Seconds since 1970. */
  time: number;
  bound: number;
  waiting: number;
}

export const snapshot = signal<Snapshot | null>(null);
/** Grows whenever numbers of nodes change: the columns are changed in place. */
export const revision = signal(0);
export const counts = signal<QueueCounts>({ active: 0, backoff: 0, unschedulable: 0, gated: 0, permit: 0 });
export const placed = signal(0);
export const entries = signal<PodEntry[]>([]);
export const rates = signal<Rate[]>([]);
export const now = signal("");
export const leads = signal(true);
/** What is wrong with the connection, or with the scheduler; empty where all is well. */
export const trouble = signal("");
export const needsToken = signal(false);

let lastBound: { at: number; bound: number } | null = null;

export function waiting(queue: QueueCounts): number {
  return queue.active + queue.backoff + queue.unschedulable + queue.gated + queue.permit;
}

async function take(): Promise<void> {
  const wanted = at.peek();
  const found = await get<Snapshot>(wanted ? `snapshot?at=${encodeURIComponent(wanted)}` : "snapshot");
  if (at.peek() !== wanted) return;
  batch(() => {
    snapshot.value = found;
    revision.value += 1;
    counts.value = found.counts;
    placed.value = found.state.pods;
    now.value = found.state.at;
    leads.value = found.state.leads;
    entries.value = found.recent.slice(-MOST_ENTRIES).reverse();
  });
}

function onTick(tick: Tick): void {
  const known = snapshot.peek();
  if (at.peek() || !known) return;
  if (tick.reset && tick.number > known.number) {
    void take().catch(() => undefined);
  }
  batch(() => {
    trouble.value = "";
    if (!tick.reset && tick.number > known.number) {
      apply(known, tick);
      if (tick.rows.length) revision.value += 1;
    }
    counts.value = tick.counts;
    placed.value = tick.podsPlaced;
    now.value = tick.at;
    leads.value = tick.leads;
    if (tick.entries.length) entries.value = [...[...tick.entries].reverse(), ...entries.value].slice(0, MOST_ENTRIES);
    measureRate(tick);
  });
}

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

/** The rates before the page was opened, as far as the server remembers the past. */
async function recall(): Promise<void> {
  const { points } = await get<TimelineAnswer>("timeline");
  const past = points.slice(-MOST_RATES).map((point) => ({ ...point, seconds: Date.parse(point.time) / 1000 }));
  const found: Rate[] = [];
  past.forEach((point, number) => {
    const before = past[number - 1];
    if (before && point.seconds > before.seconds && point.bound >= before.bound)
      found.push({
        time: point.seconds,
        bound: (point.bound - before.bound) / (point.seconds - before.seconds),
        waiting: point.waiting,
      });
  });
  const known = rates.peek()[0]?.time ?? Number.POSITIVE_INFINITY;
  rates.value = [...found.filter((each) => each.time < known), ...rates.peek()].slice(-MOST_RATES);
}

/** Pods bound in each second. */
function measureRate(tick: Tick): void {
  const time = Date.parse(tick.at) / 1000;
  if (lastBound && time - lastBound.at < 1) return;
  if (lastBound && tick.bound >= lastBound.bound) {
    const bound = (tick.bound - lastBound.bound) / (time - lastBound.at);
    rates.value = [...rates.value, { time, bound, waiting: waiting(tick.counts) }].slice(-MOST_RATES);
  }
  lastBound = { at: time, bound: tick.bound };
}

/** Follow the server while the tab can be seen; come back after it was gone. */
export function follow(): void {
  let reading: AbortController | null = null;
  let pause = FIRST_PAUSE;

  async function read(): Promise<void> {
    const mine = new AbortController();
    reading = mine;
    while (!mine.signal.aborted) {
      try {
        await take();
        if (!rates.peek().length) void recall().catch(() => undefined);
        trouble.value = "";
        needsToken.value = false;
        pause = FIRST_PAUSE;
        const handler = {
          tick: onTick,
          missed: () => void take(),
          problem: (text: string) => {
            trouble.value = text;
          },
        };
        await readTicks(handler, mine.signal);
        if (!mine.signal.aborted) trouble.value = "the server ended the connection: trying again";
      } catch (error) {
        if (mine.signal.aborted) return;
        trouble.value = error instanceof Error ? error.message : String(error);
        if (error instanceof NoAnswerError && error.login) {
          needsToken.value = true;
          return;
        }
      }
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }

  function start(): void {
    reading?.abort();
    if (!document.hidden) void read();
  }
  document.addEventListener("visibilitychange", start);
  let before = at.peek();
  effect(() => {
    if (at.value !== before) {
      before = at.value;
      void take().catch((error: Error) => {
        trouble.value = error.message;
      });
    }
  });
  restart = start;
  start();
}

export let restart: () => void = () => undefined;
