// The what-if panel: changes are tried on a copy, and what would become of pods is shown. Nothing is changed.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { CapacityRecord, FitRecord, PodRecord, StateRecord } from "../api";
import { post } from "../client";
import { command } from "../commands";
import { counted, grouped, words } from "../format";
import { Copy, Empty, Head, NodeName, Panel, PodName, Tile, Wrong } from "../parts/small";
import { type Column, Table } from "../parts/table";
import { CHANGES, change, type Option, options, type Wish, wishes } from "../questions";
import { go, link, route } from "../routing";

interface Answered<T> {
  schema: string;
  state: StateRecord;
  question: unknown;
  answer: T;
}

const EXAMPLE = `apiVersion: v1
kind: Pod
metadata: {name: example, namespace: default}
spec:
  containers:
  - name: main
    image: example
    resources: {requests: {cpu: 500m, memory: 256Mi}}
`;

export function WhatIf() {
  const asked = wishes(route.value.query);
  const manifests = useSignal("");
  const preempt = useSignal(false);
  const option = useSignal<Option>("drain");
  const text = useSignal("");
  const error = useSignal("");
  const busy = useSignal(false);
  const fit = useSignal<Answered<FitRecord> | null>(null);
  const count = useSignal<Answered<CapacityRecord> | null>(null);

  const set = (next: Wish[]) => {
    const query = new URLSearchParams(next.map((wish) => [wish.option, wish.text]));
    go(`${link("whatif")}${query.size ? `?${query}` : ""}`, true);
  };
  const judge = async (what: "whatif" | "capacity") => {
    busy.value = true;
    error.value = "";
    try {
      const question = { changes: asked.map(change), manifests: manifests.value, preempt: preempt.value };
      if (what === "whatif") {
        fit.value = await post<Answered<FitRecord>>(what, question);
        count.value = null;
      } else {
        const { preempt: _, ...counting } = question;
        count.value = await post<Answered<CapacityRecord>>(what, counting);
        fit.value = null;
      }
    } catch (problem) {
      error.value = (problem as Error).message;
    } finally {
      busy.value = false;
    }
  };
  // A link from a node or the map asks at once.
  useEffect(() => {
    if (asked.length) void judge("whatif");
  }, []);
  const hint = CHANGES.find((each) => each.option === option.value)?.hint ?? "";
  const line = options(asked, manifests.value, preempt.value);
  return (
    <>
      <Head title="What if" command={`${command("whatif")}${line ? ` ${line}` : ""}`} />
      <Panel title="Changes, in this order">
        {asked.length > 0 && (
          <ol class="wishes">
            {asked.map((wish, number) => (
              <li key={`${wish.option}-${wish.text}`}>
                <code>
                  --{wish.option} {wish.text}
                </code>
                <button
                  type="button"
                  class="button quiet"
                  aria-label={`Remove ${wish.option} ${wish.text}`}
                  onClick={() => set(asked.filter((_, other) => other !== number))}
                >
                  Remove
                </button>
              </li>
            ))}
          </ol>
        )}
        <form
          class="filters"
          onSubmit={(event) => {
            event.preventDefault();
            try {
              change({ option: option.value, text: text.value });
              error.value = "";
              set([...asked, { option: option.value, text: text.value }]);
              text.value = "";
            } catch (problem) {
              error.value = (problem as Error).message;
            }
          }}
        >
          <label class="field">
            <span>Change</span>
            <select
              value={option.value}
              onChange={(event) => {
                option.value = event.currentTarget.value as Option;
              }}
            >
              {CHANGES.map((each) => (
                <option key={each.option} value={each.option}>
                  {each.label}
                </option>
              ))}
            </select>
          </label>
          <label class="field grow">
            <span>Applies to</span>
            <input
              value={text.value}
              placeholder={hint}
              onInput={(event) => {
                text.value = event.currentTarget.value;
              }}
            />
          </label>
          <button type="submit" class="button">
            Add
          </button>
        </form>
        <details>
          <summary>Judge these pods instead of those that wait</summary>
          <textarea
            aria-label="Pods, or what makes pods, as YAML"
            rows={9}
            placeholder={EXAMPLE}
            value={manifests.value}
            onInput={(event) => {
              manifests.value = event.currentTarget.value;
            }}
          />
          <label class="field">
            <input
              type="checkbox"
              checked={preempt.value}
              onChange={(event) => {
                preempt.value = event.currentTarget.checked;
              }}
            />
            <span>let them evict pods of lower priority</span>
          </label>
        </details>
        <div class="selection">
          <button type="button" class="button main" disabled={busy.value} onClick={() => void judge("whatif")}>
            {busy.value ? "Judging…" : "What if?"}
          </button>
          <button
            type="button"
            class="button"
            disabled={busy.value || !manifests.value.trim()}
            onClick={() => void judge("capacity")}
          >
            How many would fit?
          </button>
        </div>
        <Wrong error={error.value} />
      </Panel>
      {fit.value && <Fit answered={fit.value} />}
      {count.value && <Count answered={count.value} line={line} />}
      {!fit.value && !count.value && (
        <Empty title="Try a change before you make it">
          <p>
            Changes are tried on a copy of what the scheduler knows, with its own plugins. You see what becomes of each
            pod; nothing is changed, and nothing is reserved.
          </p>
        </Empty>
      )}
    </>
  );
}

function Fit({ answered }: { answered: Answered<FitRecord> }) {
  const { answer, state } = answered;
  return (
    <>
      <div class="tiles">
        {Object.entries(answer.summary)
          .filter(([, number]) => number > 0)
          .map(([verdict, number]) => (
            <Tile key={verdict} label={words(verdict)} value={grouped(number)} />
          ))}
        {answer.rounds !== undefined && (
          <Tile label="Rounds" value={grouped(answer.rounds)} detail="of evictions, as disruption budgets allow" />
        )}
      </div>
      {answer.drained !== undefined && (
        <p class={answer.drained ? "note" : "wrong"} role="status">
          {answer.drained ? "All pods have another place." : "The drain would not end: some pods stay."}
        </p>
      )}
      <Panel title={counted(answer.pods.length, "pod")}>
        {answer.pods.length === 0 && <p class="soft">No pod is touched by this, and none waits.</p>}
        {answer.pods.length > 0 && (
          <Table label="What becomes of pods" rows={answer.pods} keyOf={(pod) => pod.pod} columns={FATES} />
        )}
        <p class="soft">
          Not simulated: {state.notSimulated.join(", ")}. Rules of Kubernetes {state.kubernetesVersion}.
        </p>
        <details>
          <summary>JSON</summary>
          <pre class="json" tabIndex={0}>
            {JSON.stringify(answered, null, 2)}
          </pre>
        </details>
      </Panel>
    </>
  );
}

const BAD = new Set(["noPlace", "newlyBlocked", "blocked", "needsFlag", "budget", "quota"]);

const FATES: Column<PodRecord>[] = [
  {
    title: "Pod",
    cell: (pod) => (
      <>
        <PodName name={pod.pod} />
        <div class="soft small">{pod.origin}</div>
      </>
    ),
    by: (pod) => pod.pod,
  },
  {
    title: "Verdict",
    cell: (pod) => (
      <span class={BAD.has(pod.verdict) ? "state unschedulable" : "state active"}>{words(pod.verdict)}</span>
    ),
    by: (pod) => pod.verdict,
  },
  { title: "Before", cell: (pod) => (pod.before?.node ? <NodeName name={pod.before.node} /> : "–") },
  {
    title: "After",
    cell: ({ after }) => (
      <>
        {after.node ? <NodeName name={after.node} /> : "–"}
        {after.ties && after.ties.length > 1 && (
          <div class="soft small">or {counted(after.ties.length - 1, "equal node")}</div>
        )}
      </>
    ),
  },
  {
    title: "Why",
    wide: true,
    cell: (pod) =>
      pod.message ?? pod.after.message ?? pod.flag ?? pod.budgets?.map((each) => each.name).join(", ") ?? "",
  },
];

function Count({ answered, line }: { answered: Answered<CapacityRecord>; line: string }) {
  const { answer } = answered;
  return (
    <>
      <div class="tiles">
        <Tile label="Would fit" value={grouped(answer.replicas)} detail={answer.reached} />
        {answer.stop && (
          <Tile label="Runs out first" value={answer.stop.first || "–"} detail={answer.stop.message ?? ""} />
        )}
      </div>
      <Panel title="Where" aside={<Copy text={`${command("capacity")} ${line}`} />}>
        <Table
          label="Where they would go"
          rows={answer.nodes.slice(0, 200)}
          keyOf={(node) => node.node}
          columns={[
            { title: "Node", cell: (node) => <NodeName name={node.node} />, by: (node) => node.node },
            { title: "Pods", number: true, cell: (node) => node.replicas, by: (node) => node.replicas },
            {
              title: "Left over",
              wide: true,
              cell: (node) =>
                Object.entries(node.leftOver)
                  .map(([name, value]) => `${value} ${name}`)
                  .join(", "),
            },
          ]}
        />
      </Panel>
    </>
  );
}
