// Asks the server for what a page shows, again and again while it is shown.

import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import { get, NoAnswerError } from "./client";
import { needsToken } from "./cluster";
import { at } from "./routing";

export interface Answer<T> {
  value: T | null;
  error: string;
}

/** The answer to a question, asked again every so many seconds (0: never), and when the question changes. */
export function useAnswer<T>(question: () => string, every = 2): Signal<Answer<T>> {
  const answer = useSignal<Answer<T>>({ value: null, error: "" });
  useSignalEffect(() => {
    const name = question();
    if (answer.peek().value !== null || answer.peek().error) answer.value = { value: null, error: "" };
    const asking = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let first = true;
    const ask = async () => {
      if (first || !document.hidden) {
        try {
          answer.value = { value: await get<T>(name, asking.signal), error: "" };
          first = false;
        } catch (error) {
          if (asking.signal.aborted) return;
          if (error instanceof NoAnswerError && error.login) needsToken.value = true;
          const gone = error instanceof NoAnswerError && error.status !== 0;
          answer.value = { value: gone ? null : answer.peek().value, error: (error as Error).message };
        }
      }
      if (every && !at.peek() && !asking.signal.aborted) timer = setTimeout(ask, every * 1000);
    };
    if (name) void ask();
    return () => {
      asking.abort();
      clearTimeout(timer);
    };
  });
  return answer;
}
