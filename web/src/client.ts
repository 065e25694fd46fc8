// Asks the server: one answer at a time, and the stream of ticks.

import type { NoAnswer, Tick } from "./api";

const API = "api/v1/";

/** Why there is no answer: a sentence of the server, or that it cannot be reached. */
export class NoAnswerError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly login = false,
  ) {
    super(message);
  }
}

export async function get<T>(name: string, signal?: AbortSignal): Promise<T> {
  return answerOf<T>(await reached(fetch(API + name, { signal: signal ?? null })));
}

export async function post<T>(name: string, question: unknown, signal?: AbortSignal): Promise<T> {
  return answerOf<T>(await reached(send(API + name, question, signal)));
}

export async function signIn(token: string): Promise<void> {
  const response = await reached(send("login", { token }));
  if (!response.ok) await answerOf(response);
}

function send(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const headers = { "Content-Type": "application/json" };
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal: signal ?? null });
}

async function reached(asking: Promise<Response>): Promise<Response> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new NoAnswerError("the server cannot be reached", 0);
  }
}

async function answerOf<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const problem = (await response.json().catch(() => null)) as NoAnswer | null;
  throw new NoAnswerError(problem?.error ?? `the server answers ${response.status}`, response.status, problem?.login);
}

/** One server-sent event. */
export interface ServerEvent {
  event: string;
  data: string;
}

/** Cuts a stream of text into events; what is left over begins the next. */
export function events(text: string): { found: ServerEvent[]; rest: string } {
  const parts = text.split("\n\n");
  const rest = parts.pop() ?? "";
  const found = parts.map((part) => {
    const fields = part.split("\n").map((line) => line.split(/: ?(.*)/s, 2) as [string, string]);
    return Object.fromEntries(fields) as unknown as ServerEvent;
  });
  return { found, rest };
}

export interface TickHandler {
  tick(tick: Tick): void;
  missed(): void;
  problem(sentence: string): void;
}

/** Read ticks until the server ends, or the signal aborts. */
export async function readTicks(handler: TickHandler, signal: AbortSignal): Promise<void> {
  const response = await reached(fetch(`${API}stream`, { signal }));
  if (!response.ok || !response.body) await answerOf(response);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const piece = await reader?.read();
    if (!piece || piece.done) return;
    const cut = events(rest + piece.value);
    rest = cut.rest;
    for (const each of cut.found) {
      if (each.event === "tick") handler.tick(JSON.parse(each.data) as Tick);
      else if (each.event === "missed") handler.missed();
      else if (each.event === "problem") handler.problem((JSON.parse(each.data) as NoAnswer).error);
    }
  }
}
