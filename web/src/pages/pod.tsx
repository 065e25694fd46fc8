// A pod: why it is where it is beside the runner-up, why not elsewhere, what would unblock it, and its past.

import type { ExplainAnswer, Explanation, NodeAnswer, PodDetails } from "../api";
import { useAnswer } from "../asking";
import { explainCommand } from "../commands";
import { amountInWords, counted } from "../format";
import { ScoreTable } from "../parts/score-table";
import { Empty, Entries, Head, Loading, NodeName, Panel, PodName, queueWords, Wrong } from "../parts/small";
import { Waterfall } from "../parts/waterfall";
import { ask, link, route } from "../routing";
import { rejections } from "../scores";

export function Pod() {
  const key = route.value.rest.join("/");
  const name = () => `pods/${route.value.rest.map(encodeURIComponent).join("/")}`;
  const details = useAnswer<PodDetails>(name, 2);
  const why = useAnswer<ExplainAnswer>(() => `${name()}/explain`, 0);
  const { value, error } = details.value;
  const explanation = why.value.value?.explanation;
  return (
    <>
      <Head title={key} command={explainCommand(key)} json={`${name()}/explain`}>
        <a class="button quiet" href={link("map", [], { pod: key })}>
          On the map
        </a>
      </Head>
      <Wrong error={error} />
      {!value && !error && <Loading />}
      {value && <Summary pod={value} outcome={why.value.value?.outcome ?? ""} explanation={explanation} />}
      {value && (
        <>
          {!explanation && !why.value.error && <Loading />}
          <Wrong error={why.value.error} />
          {explanation && <WhyHere explanation={explanation} placed={value.node} />}
          {explanation && <WhyNotThere explanation={explanation} />}
          {explanation && <Unblock explanation={explanation} />}
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

function Summary(props: { pod: PodDetails; outcome: string; explanation: Explanation | undefined }) {
  const { pod, explanation } = props;
  const waits = pod.waiting;
  return (
    <section class="verdict" aria-live="polite">
      <p class="verdict-line">{verdict(pod, explanation)}</p>
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
        <ScoreTable nodes={scored} chosen={winner.name} />
      </details>
    </Panel>
  );
}

const NAMED = 12;

function WhyNotThere({ explanation }: { explanation: Explanation }) {
  const rows = rejections(explanation.nodes);
  if (!rows.length) return null;
  return (
    <Panel title="Why not there">
      <div class="scroll" tabIndex={0} role="region" aria-label="Nodes that refuse the pod">
        <table class="table">
          <thead>
            <tr>
              <th class="number">Nodes</th>
              <th>Plugin</th>
              <th>Reason</th>
              <th>Which</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.plugin + row.reason}>
                <td class="number">{row.nodes.length}</td>
                <td>{row.plugin}</td>
                <td>{row.reason}</td>
                <td class="names">
                  {row.nodes.slice(0, NAMED).map((name) => (
                    <NodeName key={name} name={name} />
                  ))}
                  {row.nodes.length > NAMED && <span class="soft">and {row.nodes.length - NAMED} more</span>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
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
        <table class="table">
          <thead>
            <tr>
              <th>Node</th>
              <th>Would take it with</th>
            </tr>
          </thead>
          <tbody>
            {remedies.map((remedy) => (
              <tr key={remedy.node}>
                <td>
                  <NodeName name={remedy.node} />
                </td>
                <td>{remedy.changes.join("; ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}
