// Finds pods and nodes by a part of their name.

import { useSignal } from "@preact/signals";
import type { NameMatch, SearchAnswer } from "../api";
import { get } from "../client";
import { go, nodeLink, podLink } from "../routing";

const PAUSE = 120;

export function Search() {
  const matches = useSignal<NameMatch[]>([]);
  const chosen = useSignal(0);
  const timer = useSignal<ReturnType<typeof setTimeout> | undefined>(undefined);
  const find = (text: string) => {
    clearTimeout(timer.peek());
    timer.value = setTimeout(async () => {
      matches.value = text ? (await get<SearchAnswer>(`search?q=${encodeURIComponent(text)}`)).matches : [];
      chosen.value = 0;
    }, PAUSE);
  };
  const open = (match: NameMatch | undefined) => {
    if (!match) return;
    go(match.kind === "node" ? nodeLink(match.name) : podLink(match.name));
    matches.value = [];
    (document.getElementById("search") as HTMLInputElement).value = "";
    document.getElementById("main")?.focus();
  };
  return (
    <div class="search">
      <input
        id="search"
        type="text"
        role="combobox"
        aria-label="Search pods and nodes"
        aria-expanded={matches.value.length > 0}
        aria-controls="matches"
        aria-activedescendant={matches.value.length ? `match-${chosen.value}` : undefined}
        placeholder="Search pods and nodes  ( / )"
        autocomplete="off"
        onInput={(event) => find(event.currentTarget.value)}
        onBlur={() => setTimeout(() => (matches.value = []), 150)}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step) {
            chosen.value = (chosen.value + step + matches.value.length) % Math.max(1, matches.value.length);
            event.preventDefault();
          } else if (event.key === "Enter") open(matches.value[chosen.value]);
        }}
      />
      <ul id="matches" role="listbox" aria-label="Matches" hidden={!matches.value.length}>
        {matches.value.map((match, number) => (
          <li
            key={match.kind + match.name}
            id={`match-${number}`}
            role="option"
            aria-selected={number === chosen.value}
            onPointerDown={() => open(match)}
          >
            <span class="match-kind">{match.kind}</span>
            <bdi>{match.name}</bdi>
            <span class="soft">{match.detail}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
