// Reads and writes the address: everything that a view shows is in it, so that it can be shared.

import { computed, signal } from "@preact/signals";

export interface Route {
  page: string;
  rest: string[];
  query: URLSearchParams;
}

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/").map(decoded);
  return { page, rest, query: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a view: parts of the path, and what is asked of it; empty answers are left out. */
export function link(page: string, rest: string[] = [], query: Record<string, string> = {}): string {
  const path = [page, ...rest].map(encodeURIComponent).join("/");
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  return `#/${path}${asked.size ? `?${asked}` : ""}`;
}

export function podLink(key: string): string {
  return link("pods", key.split("/"));
}

export function nodeLink(name: string): string {
  return link("nodes", [name]);
}

const hash = signal(typeof location === "undefined" ? "" : location.hash);
export const route = computed(() => parse(hash.value));

/** The time of the past that is shown; empty: now. */
export const at = computed(() => route.value.query.get("at") ?? "");

export function follow(): void {
  addEventListener("hashchange", () => {
    hash.value = location.hash;
  });
}

export function go(address: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", address);
    hash.value = address;
  } else location.hash = address;
}

/** Change what is asked of the view, and stay on it. */
export function ask(changes: Record<string, string>, replace = true): void {
  const { page, rest, query } = route.value;
  go(link(page, rest, { ...Object.fromEntries(query), ...changes }), replace);
}
