// A pod: why it is where it is beside the runner-up, why not elsewhere, what would unblock it, and its past.

import type { ExplainAnswer, Explanation, NodeAnswer, PodDetails } from "../api";
import { useAnswer } from "../asking";
import { command } from "../commands";
import { amountInWords, counted, spaced } from "../format";
import { Empty, Entries, Head, NodeName, Panel, PodName, queueWords, Reason, Waiting } from "../parts/small";
import { Table } from "../parts/table";
import { Waterfall } from "../parts/waterfall";
import { ask, link, route } from "../routing";
import { rejections } from "../scores";

export function Pod() {
  const key = route.value.rest.join("/");
  const name = () => `pods/${route.value.rest.map(encodeURIComponent).join("/")}`;
  const details = useAnswer<PodDetails>(name, 2);
  const why = useAnswer<ExplainAnswer>(() => `${name()}/explain`, 0);
  const { value } = details.value;
  const explanation = why.value.value?.explanation;
  return (
    <>
      <Head title={key} command={command("explain", key)} json={`${name()}/explain`}>
        <a class="button quiet" href={link("map", [], { pod: key })}>
          On the map
        </a>
      </Head>
      <Waiting answer={details.value} />
      {value && (
        <>
          <Summary pod={value} explanation={explanation} />
          <Waiting answer={why.value} />
          {explanation && <WhyHere explanation={explanation} placed={value.node} />}
          {explanation && <WhyNotThere explanation={explanation} />}
          {explanation && !value.node && <Unblock explanation={explanation} />}
          <Panel title="Timeline">
            {value.timeline.length ? (
              <Entries entries={[...value.timeline].reverse()} named={false} />
            ) : (
              <Empty title="Nothing is remembered of this pod">
                <p>
                  The dashboard remembers what happened while it ran: when the pod was queued, which event woke it, each
                  attempt, and its binding. A dump has no past.
                </p>
              </Empty>
            )}
          </Panel>
        </>
      )}
    </>
  );
}

function Summary({ pod, explanation }: { pod: PodDetails; explanation: Explanation | undefined }) {
  const waits = pod.waiting;
  return (
    <section class="verdict" aria-live="polite">
      <p class="verdict-line">
        <Reason text={verdict(pod, explanation)} />
      </p>
      {explanation?.warnings?.map((warning) => (
        <p key={warning} class="wrong">
          {warning}
        </p>
      ))}
      {explanation?.notes?.map((note) => (
        <p key={note}>{note}</p>
      ))}
      <dl class="facts">
        <Fact name="Phase" value={pod.phase} />
        {pod.owner && <Fact name="Owner" value={pod.owner} />}
        <Fact name="Scheduler" value={pod.scheduler} />
        <Fact name="Priority" value={String(pod.priority)} />
        {Object.entries(pod.requests).map(([resource, value]) => (
          <Fact key={resource} name={resource} value={amountInWords(resource, value)} />
        ))}
        {waits && (
          <Fact
            name="Queue"
            value={`${queueWords(waits.queue)}${waits.attempts ? `, ${counted(waits.attempts, "attempt")}` : ""}`}
          />
        )}
        {pod.nominated && <Fact name="Nominated" value={pod.nominated} />}
      </dl>
      {waits?.waitsFor.some((each) => each.events.length > 0) && (
        <p class="soft">Tried again when this happens: {waits.waitsFor.flatMap((each) => each.events).join("; ")}.</p>
      )}
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <bdi>{value}</bdi>
      </dd>
    </div>
  );
}

/** The first sentence of podium explain. */
function verdict(pod: PodDetails, explanation: Explanation | undefined): string {
  if (pod.node) {
    const best = explanation?.selected;
    const now = best && best !== pod.node ? ` Decided again now, it would go to ${best}.` : "";
    return `${pod.pod} is on ${pod.node}.${now}`;
  }
  if (!explanation) return `${pod.pod} waits.`;
  if (explanation.selected) return `${pod.pod} would go to ${explanation.selected}.`;
  return `${pod.pod} fits nowhere: ${explanation.message ?? ""}`;
}

function WhyHere({ explanation, placed }: { explanation: Explanation; placed: string }) {
  const scored = explanation.nodes
    .filter((node): node is NodeAnswer & { total: number } => typeof node.total === "number")
    .sort((a, b) => b.total - a.total || a.name.localeCompare(b.name));
  const winner = scored.find((node) => node.name === (placed || explanation.selected)) ?? scored[0];
  const chosen = route.value.query.get("with");
  const others = scored.filter((node) => node !== winner);
  const other = others.find((node) => node.name === chosen) ?? others[0];
  if (!winner) return null;
  const title = placed ? "Why here" : "Where it would go";
  if (!other) {
    return (
      <Panel title={title}>
        <p>
          <NodeName name={winner.name} /> is the only node that takes it.
        </p>
      </Panel>
    );
  }
  return (
    <Panel
      title={title}
      aside={
        <label class="field">
          <span>Beside</span>
          <select value={other.name} onChange={(event) => ask({ with: event.currentTarget.value })}>
            {others.slice(0, 500).map((node) => (
              <option key={node.name} value={node.name}>
                {node.name} ({node.total})
              </option>
            ))}
          </select>
        </label>
      }
    >
      <Waterfall winner={winner} other={other} />
      <details>
        <summary>All {counted(scored.length, "node")} that take it, plugin by plugin</summary>
        <Scores nodes={scored} chosen={winner.name} />
      </details>
    </Panel>
  );
}

/** Nodes × plugins. */
function Scores({ nodes, chosen }: { nodes: NodeAnswer[]; chosen: string }) {
  const plugins = Object.keys(nodes[0]?.scores ?? {}).filter((plugin) => nodes.some((node) => node.scores?.[plugin]));
  const score = (node: NodeAnswer, plugin: string) => node.scores?.[plugin] ?? 0;
  return (
    <Table
      label="Scores of all nodes"
      rows={nodes}
      keyOf={(node) => node.name}
      inSight={14}
      chosen={(node) => node.name === chosen}
      columns={[
        { title: "Node", cell: (node) => <NodeName name={node.name} />, by: (node) => node.name },
        { title: "Total", number: true, cell: (node) => <b>{node.total}</b>, by: (node) => node.total ?? 0 },
        ...plugins.map((plugin) => ({
          title: spaced(plugin),
          number: true,
          cell: (node: NodeAnswer) => score(node, plugin),
          by: (node: NodeAnswer) => score(node, plugin),
        })),
      ]}
    />
  );
}

const NAMED = 12;

function WhyNotThere({ explanation }: { explanation: Explanation }) {
  const rows = rejections(explanation.nodes);
  if (!rows.length) return null;
  return (
    <Panel title="Why not there">
      <Table
        label="Nodes that refuse the pod"
        rows={rows}
        keyOf={(row) => row.plugin + row.reason}
        columns={[
          { title: "Plugin", cell: (row) => row.plugin },
          { title: "Reason", cell: (row) => row.reason },
          { title: "Nodes", number: true, cell: (row) => row.nodes.length },
          {
            title: "Which",
            wide: true,
            cell: (row) => (
              <span class="reason-pods">
                {row.nodes.slice(0, NAMED).map((name) => (
                  <NodeName key={name} name={name} />
                ))}
                {row.nodes.length > NAMED && <span class="soft">and {row.nodes.length - NAMED} more</span>}
              </span>
            ),
          },
        ]}
      />
    </Panel>
  );
}

function Unblock({ explanation }: { explanation: Explanation }) {
  const { preemption, remedies, gang } = explanation;
  if (!preemption && !remedies?.length && !gang) return null;
  return (
    <Panel title="What would unblock it">
      {preemption && (
        <p>
          Preemption makes room on <NodeName name={preemption.node} /> by evicting{" "}
          {preemption.victims.map((victim) => (
            <PodName key={victim} name={victim} />
          ))}
          .
        </p>
      )}
      {gang && (
        <p>
          It starts together with others: {gang.assigned} of {gang.members} have a node, and {gang.minimum} must.
        </p>
      )}
      {remedies && remedies.length > 0 && (
        <Table
          label="Nodes that a change would open"
          rows={remedies}
          keyOf={(remedy) => remedy.node}
          columns={[
            { title: "Node", cell: (remedy) => <NodeName name={remedy.node} /> },
            { title: "Would take it with", wide: true, cell: (remedy) => remedy.changes.join("; ") },
          ]}
        />
      )}
    </Panel>
  );
}
