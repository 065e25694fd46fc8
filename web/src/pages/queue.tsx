// The pods that wait: in which order, since when, why, and what would wake them.

import type { QueueAnswer, WaitingPodRow } from "../api";
import { useAnswer } from "../asking";
import { now } from "../cluster";
import { queueCommand } from "../commands";
import { clock, counted, secondsBetween, span } from "../format";
import { Empty, Head, Panel, PodName, QUEUES, queueWords, Reason, Waiting } from "../parts/small";
import { Table } from "../parts/table";
import { ask, route } from "../routing";

export function Queue() {
  const answer = useAnswer<QueueAnswer>(() => "queue?limit=2000", 2);
  const { value } = answer.value;
  const query = route.value.query;
  const only = query.get("queue") ?? "";
  const text = (query.get("q") ?? "").toLowerCase();
  const by = query.get("by") ?? "order";
  const rows = (value?.pods ?? []).filter(
    (row) =>
      (!only || row.queue === only) && (!text || `${row.pod} ${row.reason} ${row.owner}`.toLowerCase().includes(text)),
  );
  return (
    <>
      <Head title="Queue" command={queueCommand()} json="queue" />
      <Waiting answer={answer.value} />
      {value && (
        <>
          <div class="filters">
            <div class="chips" role="group" aria-label="Which queue">
              <button type="button" class="chip" aria-pressed={!only} onClick={() => ask({ queue: "" })}>
                all <b>{value.pods.length + value.hidden}</b>
              </button>
              {QUEUES.map((queue) => (
                <button
                  type="button"
                  key={queue}
                  class="chip"
                  aria-pressed={only === queue}
                  onClick={() => ask({ queue: only === queue ? "" : queue })}
                >
                  {queueWords(queue)} <b>{value.counts[queue]}</b>
                </button>
              ))}
            </div>
            <label class="field">
              <span>Filter</span>
              <input
                type="search"
                value={query.get("q") ?? ""}
                onInput={(event) => ask({ q: event.currentTarget.value })}
                placeholder="name, owner or reason"
              />
            </label>
            <label class="field">
              <span>Group by</span>
              <select value={by} onChange={(event) => ask({ by: event.currentTarget.value })}>
                <option value="order">order in the queue</option>
                <option value="reason">reason</option>
                <option value="owner">owner</option>
              </select>
            </label>
          </div>
          {rows.length === 0 && (
            <Empty title={value.pods.length ? "No pod matches" : "Every pod has a node"}>
              <p>
                {value.pods.length
                  ? "Take a filter away to see the others."
                  : "Pods wait here in the order in which they will be tried, each with what keeps it out."}
              </p>
            </Empty>
          )}
          {groups(rows, by).map(([title, members]) => (
            <Panel
              key={title}
              title={by === "owner" ? title : counted(members.length, "pod")}
              aside={by === "owner" && <b>{members.length}</b>}
            >
              {by === "reason" && (
                <p class="reason">
                  <Reason text={title} />
                </p>
              )}
              <Rows rows={members} reasons={by !== "reason"} />
            </Panel>
          ))}
          {value.hidden > 0 && <p class="soft">{counted(value.hidden, "pod")} of namespaces that you may not see.</p>}
        </>
      )}
    </>
  );
}

export function groups(rows: WaitingPodRow[], by: string): [string, WaitingPodRow[]][] {
  if (by === "order") return rows.length ? [["", rows]] : [];
  const found = new Map<string, WaitingPodRow[]>();
  for (const row of rows) {
    const key = (by === "owner" ? row.owner : row.reason) || (by === "owner" ? "no owner" : "not tried yet");
    found.set(key, [...(found.get(key) ?? []), row]);
  }
  return [...found].sort(([, a], [, b]) => b.length - a.length);
}

function Rows({ rows, reasons }: { rows: WaitingPodRow[]; reasons: boolean }) {
  const time = now.value;
  return (
    <Table
      label="Pods that wait"
      rows={rows}
      keyOf={(row) => row.pod}
      columns={[
        {
          title: "Pod",
          cell: (row) => (
            <>
              <PodName name={row.pod} />
              {row.owner && (
                <div class="soft small">
                  <bdi>{row.owner}</bdi>
                </div>
              )}
            </>
          ),
          by: (row) => row.pod,
        },
        { title: "Place", number: true, cell: (row) => row.position ?? "", by: (row) => row.position ?? 1e9 },
        { title: "Queue", cell: (row) => <span class={`state ${row.queue}`}>{queueWords(row.queue)}</span> },
        { title: "Tries", number: true, cell: (row) => row.attempts ?? "–", by: (row) => row.attempts ?? 0 },
        {
          title: "Waits",
          number: true,
          cell: (row) => <span title={row.since}>{span(secondsBetween(row.since, time))}</span>,
          by: (row) => -Date.parse(row.since),
        },
        { title: "Priority", number: true, cell: (row) => row.priority, by: (row) => row.priority },
        { title: "Next try", cell: (row) => <span title={row.nextTry ?? ""}>{nextTry(row, time)}</span> },
        {
          title: reasons ? "Why" : "Kept out by",
          wide: true,
          cell: (row) => (
            <>
              {reasons && <Reason text={row.reason} />}
              <div class="soft small" title={row.waitsFor.map((each) => each.events.join("; ")).join("\n")}>
                {row.waitsFor.map((each) => each.plugin).join(", ")}
              </div>
            </>
          ),
        },
      ]}
    />
  );
}

function nextTry(row: WaitingPodRow, time: string): string {
  if (row.queue === "gated") return "when its gate opens";
  if (!row.nextTry) return "–";
  const left = secondsBetween(time, row.nextTry);
  if (left <= 0 || row.queue === "active") return "now";
  return row.queue === "backoff" ? `in ${span(left)}` : `by ${clock(row.nextTry)}`;
}
