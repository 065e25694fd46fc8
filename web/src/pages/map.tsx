// The cluster map: all nodes, grouped and ordered as asked, with a table that says the same.

import { useSignal } from "@preact/signals";
import type { ExplainAnswer, Snapshot } from "../api";
import { useAnswer } from "../asking";
import { revision, snapshot } from "../cluster";
import { command } from "../commands";
import { amount, counted, percent, share, shortKey } from "../format";
import { ClusterMap, ZONE } from "../map/cluster-map";
import { grouped, type Order } from "../map/layout";
import { Head, Loading, NodeName, PodName, Wrong } from "../parts/small";
import { ask, go, link, route } from "../routing";
import { Marks } from "./overview";

const DEFAULT_BARS = "cpu,memory,pods";

export function MapPage() {
  const query = route.value.query;
  const known = snapshot.value;
  const chosen = useSignal<Set<string>>(new Set());
  const pod = query.get("pod") ?? "";
  const explained = useAnswer<ExplainAnswer>(() => {
    const wanted = route.value.query.get("pod") ?? "";
    return wanted ? `pods/${wanted.split("/").map(encodeURIComponent).join("/")}/explain` : "";
  }, 0);
  const hasZones = known?.labels.some((label) => label.key === ZONE);
  const group = query.get("group") ?? (hasZones ? ZONE : "");
  const order = (query.get("sort") ?? "name") as Order;
  const bars = (query.get("bars") ?? DEFAULT_BARS).split(",").filter(Boolean);
  const asTable = query.get("as") === "table";
  const select = (names: string[]) => {
    const next = new Set(chosen.value);
    for (const name of names) {
      if (next.has(name)) next.delete(name);
      else next.add(name);
    }
    chosen.value = next;
  };
  if (!known) return <Loading />;
  const names = [
    ...known.resources.map((resource) => resource.name),
    "pods",
    ...known.measured.map((each) => `measured:${each.query}`),
  ];
  return (
    <>
      <Head title="Cluster map" command={pod ? command("explain", pod) : command("whatif", "--each")} json="snapshot">
        <button
          type="button"
          class="button quiet"
          onClick={() => ask({ as: asTable ? "" : "table" })}
          aria-pressed={asTable}
        >
          {asTable ? "Map" : "Table"}
        </button>
      </Head>
      <div class="filters">
        <label class="field">
          <span>Group by</span>
          <select value={group} onChange={(event) => ask({ group: event.currentTarget.value || "none" })}>
            <option value="none">nothing</option>
            {known.labels.map((label) => (
              <option key={label.key} value={label.key}>
                {shortKey(label.key)}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Sort by</span>
          <select value={order} onChange={(event) => ask({ sort: event.currentTarget.value })}>
            <option value="name">name</option>
            <option value="use">most requested</option>
            <option value="free">most free</option>
          </select>
        </label>
        <fieldset class="chips">
          <legend class="hidden">Bars</legend>
          {names.map((name) => (
            <button
              type="button"
              key={name}
              class="chip"
              aria-pressed={bars.includes(name)}
              onClick={() => {
                const next = bars.includes(name) ? bars.filter((each) => each !== name) : [...bars, name];
                ask({ bars: next.length ? next.join() : name });
              }}
            >
              {name.startsWith("measured:") ? `measured ${name.slice(9)}` : name}
            </button>
          ))}
        </fieldset>
        <form
          class="field"
          onSubmit={(event) => {
            event.preventDefault();
            ask({ pod: String(new FormData(event.currentTarget).get("pod") ?? "") });
          }}
        >
          <label for="where-pod">Where could it go?</label>
          <input id="where-pod" name="pod" type="search" value={pod} placeholder="namespace/pod" />
        </form>
      </div>
      {pod && (
        <p class="note" role="status">
          <PodName name={pod} />{" "}
          {explained.value.error || (explained.value.value ? takers(explained.value.value) : "is being judged…")}
        </p>
      )}
      <Wrong error={explained.value.error} />
      {chosen.value.size > 0 && (
        <div class="selection" role="status">
          <b>{counted(chosen.value.size, "node")}</b> selected
          <button
            type="button"
            class="button"
            onClick={() => go(link("whatif", [], { drain: [...chosen.value].join() }))}
          >
            What if they are drained?
          </button>
          <button
            type="button"
            class="button"
            onClick={() => go(link("whatif", [], { cordon: [...chosen.value].join() }))}
          >
            What if they are cordoned?
          </button>
          <button type="button" class="button quiet" onClick={() => (chosen.value = new Set())}>
            Clear
          </button>
        </div>
      )}
      {asTable ? (
        <NodeTable known={known} group={group} order={order} />
      ) : (
        <div class="map-box">
          <ClusterMap
            group={group}
            order={order}
            bars={bars}
            explanation={explained.value.value?.explanation}
            selected={chosen.value}
            onSelect={select}
          />
          <Legend bars={bars} scored={Boolean(explained.value.value)} />
        </div>
      )}
    </>
  );
}

function takers(answer: ExplainAnswer): string {
  const taking = answer.explanation.nodes.filter((node) => node.feasible).length;
  if (!taking) return `fits nowhere: ${answer.explanation.message ?? ""}`;
  return `fits on ${counted(taking, "node")}; the more, the better they rate it`;
}

function Legend({ bars, scored }: { bars: string[]; scored: boolean }) {
  return (
    <div class="legend">
      <span>{scored ? "score" : `requested, left to right: ${bars.join(", ")}`}</span>
      <span class="ramp" aria-hidden="true" />
      <span>little – much</span>
      <span class="legend-mark cordoned">cordoned</span>
      <span class="legend-mark not-ready">not ready</span>
      <span class="legend-mark tainted">tainted</span>
      <span class="soft">Shift and drag selects nodes; + and − zoom</span>
    </div>
  );
}

const ROW = 33;

/** The same as a table, of which only the rows in sight are in the document. */
function NodeTable({ known, group, order }: { known: Snapshot; group: string; order: Order }) {
  void revision.value;
  const top = useSignal(0);
  const places = grouped(known, group, order).flatMap((each) =>
    each.nodes.map((node) => ({ node, title: each.title })),
  );
  const first = Math.max(0, Math.floor(top.value / ROW) - 10);
  const shown = places.slice(first, first + 60);
  const resources = known.resources.filter((each) => each.name !== "ephemeral-storage");
  return (
    <div
      class="scroll virtual tall"
      tabIndex={0}
      role="region"
      aria-label="Nodes"
      onScroll={(event) => {
        top.value = event.currentTarget.scrollTop;
      }}
    >
      <table class="table" aria-rowcount={places.length + 1}>
        <thead>
          <tr>
            <th>Node</th>
            <th>{shortKey(group) || "Group"}</th>
            {resources.map((resource) => (
              <th key={resource.name} class="number">
                {resource.name}
              </th>
            ))}
            <th class="number">Pods</th>
            <th>State</th>
          </tr>
        </thead>
        <tbody>
          {first > 0 && <Gap rows={first} columns={resources.length + 4} />}
          {shown.map(({ node, title }, number) => (
            <tr key={known.names[node]} aria-rowindex={first + number + 2}>
              <td>
                <NodeName name={known.names[node] ?? ""} />
              </td>
              <td>{title}</td>
              {resources.map((resource) => {
                const [part, whole] = [resource.requested[node] ?? 0, resource.allocatable[node] ?? 0];
                return (
                  <td key={resource.name} class="number">
                    {whole > 0
                      ? `${amount(resource.name, part)} of ${amount(resource.name, whole)}, ${percent(share(part, whole))}`
                      : ""}
                  </td>
                );
              })}
              <td class="number">{known.pods[node]}</td>
              <td>
                <Marks flags={known.flags[node] ?? 0} />
              </td>
            </tr>
          ))}
          <Gap rows={places.length - first - shown.length} columns={resources.length + 4} />
        </tbody>
      </table>
    </div>
  );
}

function Gap({ rows, columns }: { rows: number; columns: number }) {
  if (rows <= 0) return null;
  return (
    <tr aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * ROW}px` }} />
    </tr>
  );
}
