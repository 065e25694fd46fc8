// The cluster map: all nodes, grouped and ordered as asked, with a table that says the same.

import { useSignal } from "@preact/signals";
import type { ExplainAnswer, Snapshot } from "../api";
import { useAnswer } from "../asking";
import { revision, snapshot } from "../cluster";
import { command, nodeCommand } from "../commands";
import { amount, amountInWords, counted, shortKey } from "../format";
import { barOf, ClusterMap, ZONE } from "../map/cluster-map";
import { grouped, type Order } from "../map/layout";
import { Head, Loading, NodeName, PodName } from "../parts/small";
import { type Column, Table } from "../parts/table";
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
    ...known.measured.map((each) => MEASURED + each.query),
  ];
  const bars = (query.get("bars") ?? DEFAULT_BARS).split(",").filter((name) => names.includes(name));
  return (
    <>
      <Head title="Cluster map" command={pod ? command("explain", pod) : nodeCommand()} json="snapshot">
        <button type="button" class="button quiet" onClick={() => ask({ as: asTable ? "" : "table" })}>
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
        {!pod && (
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
                {barWords(name)}
              </button>
            ))}
          </fieldset>
        )}
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
        <NodeTable known={known} group={group} order={order} bars={bars} />
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
  const requested = bars.filter((bar) => !bar.startsWith(MEASURED)).map(shortKey);
  const measured = bars.filter((bar) => bar.startsWith(MEASURED)).map(barWords);
  return (
    <div class="legend">
      {scored ? (
        <>
          <span>how the nodes rate it</span>
          <Ramp />
          <span class="legend-mark refused">a plugin refuses</span>
        </>
      ) : (
        <>
          <span>
            {requested.length > 0 && `requested: ${requested.join(", ")}`}
            {requested.length > 0 && measured.length > 0 && "; "}
            {measured.length > 0 && `${measured.join(", ")}, beside the highest of all nodes`}
          </span>
          <Ramp />
        </>
      )}
      <span class="legend-mark cordoned">cordoned</span>
      <span class="legend-mark not-ready">not ready</span>
      <span class="legend-mark tainted">tainted</span>
      <span class="soft">Shift and drag selects nodes; + and − zoom</span>
    </div>
  );
}

function Ramp() {
  return (
    <span class="legend-ramp">
      little <span class="ramp" aria-hidden="true" /> much
    </span>
  );
}

const MEASURED = "measured:";

function barWords(name: string): string {
  return name.startsWith(MEASURED) ? `measured ${name.slice(MEASURED.length)}` : name;
}

/** The same as a table. */
function NodeTable({ known, group, order, bars }: { known: Snapshot; group: string; order: Order; bars: string[] }) {
  void revision.value;
  const rows = grouped(known, group, order).flatMap((each) => each.nodes.map((node) => ({ node, title: each.title })));
  const columns = bars.flatMap((name): Column<(typeof rows)[number]>[] => {
    const bar = barOf(known, name);
    const resource = known.resources.find((each) => each.name === name);
    if (!bar) return [];
    return [
      {
        title: barWords(name),
        number: true,
        by: ({ node }) => bar.values[node] ?? -1,
        cell: ({ node }) => {
          if (name === "pods") return `${known.pods[node]} of ${known.allowedPods[node]}`;
          if (!resource) return bar.text(node);
          const [part, whole] = [resource.requested[node] ?? 0, resource.allocatable[node] ?? 0];
          return whole > 0 ? `${amount(name, part)} of ${amountInWords(name, whole)}, ${bar.text(node)}` : "none";
        },
      },
    ];
  });
  const zone: Column<(typeof rows)[number]> = {
    title: shortKey(group) || "group",
    cell: ({ title }) => <bdi>{title}</bdi>,
    by: ({ title }) => title,
  };
  return (
    <div class="map-box">
      <Table
        label="Nodes"
        rows={rows}
        keyOf={({ node }) => known.names[node] ?? ""}
        inSight={Math.max(8, Math.floor((innerHeight - 330) / 33))}
        columns={[
          {
            title: "Node",
            cell: ({ node }) => <NodeName name={known.names[node] ?? ""} />,
            by: ({ node }) => known.names[node] ?? "",
          },
          ...(group === "none" ? [] : [zone]),
          ...columns,
          { title: "State", cell: ({ node }) => <Marks flags={known.flags[node] ?? 0} /> },
        ]}
      />
    </div>
  );
}
