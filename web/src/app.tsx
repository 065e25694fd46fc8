// The frame of all pages: navigation, search, the state of the connection, and the keys.

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { leads, needsToken, now, snapshot, trouble } from "./cluster";
import { clock } from "./format";
import { Configuration } from "./pages/configuration";
import { Groups } from "./pages/groups";
import { MapPage } from "./pages/map";
import { Node } from "./pages/node";
import { Overview } from "./pages/overview";
import { Pod } from "./pages/pod";
import { Differences, Policy, Qos } from "./pages/policies";
import { Queue } from "./pages/queue";
import { SignIn } from "./pages/sign-in";
import { WhatIf } from "./pages/whatif";
import { Keys, onKey } from "./parts/keys";
import { Scrubber } from "./parts/scrubber";
import { Search } from "./parts/search";
import { Icon } from "./parts/small";
import { at, link, route } from "./routing";
import { theme, toggle } from "./theme";

export const PAGES: [page: string, title: string, key: string, view: ComponentType][] = [
  ["", "Overview", "o", Overview],
  ["map", "Cluster map", "m", MapPage],
  ["queue", "Queue", "u", Queue],
  ["groups", "Gangs and quotas", "g", Groups],
  ["qos", "QoS", "s", Qos],
  ["policy", "Learned policies", "l", Policy],
  ["differences", "Differences", "d", Differences],
  ["whatif", "What if", "f", WhatIf],
  ["configuration", "Configuration", "c", Configuration],
];
const OTHERS: Record<string, ComponentType> = { pods: Pod, nodes: Node };

const SUN =
  "M8 4a4 4 0 100 8 4 4 0 000-8zM7.3 0h1.4v2.4H7.3zM7.3 13.6h1.4V16H7.3zM0 7.3h2.4v1.4H0zM13.6 7.3H16v1.4h-2.4z";
const MOON = "M6 1a7 7 0 109 9A6 6 0 016 1z";

export const keysShown = signal(false);

export function App() {
  const { page, rest } = route.value;
  const View = PAGES.find(([name]) => name === page)?.[3] ?? OTHERS[page] ?? Missing;
  const main = useRef<HTMLElement>(null);
  const title = [...rest, PAGES.find(([name]) => name === page)?.[1] ?? ""].filter(Boolean).join("/");
  useEffect(() => {
    document.title = `${title} · Podium`;
    main.current?.scrollTo(0, 0);
    document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [page, rest.join("/")]);
  useEffect(() => {
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  if (needsToken.value) return <SignIn />;
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        To the content
      </button>
      <header class="top">
        <a class="brand" href={link("")}>
          <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
            <path d="M12 8h8v17h-8zM3 15h8v10H3zM21 18h8v7h-8z" />
          </svg>
          Podium
        </a>
        <Source />
        <Search />
        <div class="top-right">
          <button
            type="button"
            class="button icon"
            onClick={toggle}
            aria-label={`Show it ${theme.value === "dark" ? "light" : "dark"}`}
          >
            <Icon path={theme.value === "dark" ? SUN : MOON} />
          </button>
          <button type="button" class="button icon" onClick={() => (keysShown.value = true)} aria-label="Keys">
            ?
          </button>
        </div>
      </header>
      <nav class="side" aria-label="Pages">
        <ul>
          {PAGES.map(([name, label]) => (
            <li key={name}>
              <a href={link(name)} aria-current={name === page ? "page" : undefined}>
                {label}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <main id="main" ref={main} tabIndex={-1}>
        {trouble.value && (
          <p class="wrong banner" role="alert">
            {trouble.value}
          </p>
        )}
        {at.value && (
          <p class="note banner" role="status">
            The map and its totals are as they were at {clock(at.value)}. <a href={link(page, rest)}>Back to now</a>
          </p>
        )}
        <View key={page + rest.join("/")} />
      </main>
      <Scrubber />
      <Keys />
    </div>
  );
}

function Source() {
  const state = snapshot.value?.state;
  return (
    <div class="source">
      <span class={trouble.value ? "dot off" : "dot"} aria-hidden="true" />
      <span>
        {state
          ? ["podium up", "podium run"].includes(state.source)
            ? `${state.source}, ${leads.value ? "leads" : "does not lead"}`
            : state.source
          : "connecting"}
      </span>
      <time class="soft">{now.value && clock(now.value)}</time>
    </div>
  );
}

function Missing() {
  return (
    <div class="empty">
      <h1>There is no such page</h1>
      <p>
        The address is wrong, or older than this version. <a href={link("")}>To the overview</a>
      </p>
    </div>
  );
}
