// A node: what it offers, who is on it, what still fits, and what came and went.

import type { NodeDetails, NodePodRow } from "../api";
import { useAnswer } from "../asking";
import { command } from "../commands";
import { amount, counted, percent, share, span } from "../format";
import { Bar, Empty, Entries, Head, Loading, Panel, PodName, Wrong } from "../parts/small";
import { link, route } from "../routing";

export function Node() {
  const name = route.value.rest[0] ?? "";
  const answer = useAnswer<NodeDetails>(() => `nodes/${encodeURIComponent(route.value.rest[0] ?? "")}`, 2);
  const { value, error } = answer.value;
  return (
    <>
      <Head title={name} command={command("whatif", "--drain", name)} json={`nodes/${encodeURIComponent(name)}`}>
        <a class="button" href={link("whatif", [], { drain: name })}>
          What if it is drained?
        </a>
      </Head>
      <Wrong error={error} />
      {!value && !error && <Loading />}
      {value && <Details node={value} />}
    </>
  );
}

function Details({ node }: { node: NodeDetails }) {
  return (
    <>
      <div class="columns">
        <Panel title="Requested">
          {node.resources.map((each) => (
            <Bar key={each.name} name={each.name} requested={each.requested} allocatable={each.allocatable} />
          ))}
          <Bar name="pods" requested={node.podCount} allocatable={node.allowedPods} />
          {node.measured.length > 0 && <h3>Measured</h3>}
          {node.measured.map((each) => (
            <p key={each.query} class="measured">
              <code>{each.query}</code> <b>{Number(each.value.toPrecision(6))}</b>{" "}
              <span class="soft">
                {each.source}, {span(each.ageSeconds)} old
              </span>
            </p>
          ))}
        </Panel>
        <Panel title="What still fits">
          <table class="table">
            <thead>
              <tr>
                <th>Resource</th>
                <th class="number">Free</th>
                <th class="number">Of the node</th>
              </tr>
            </thead>
            <tbody>
              {node.resources.map((each) => (
                <tr key={each.name}>
                  <td>{each.name}</td>
                  <td class="number">{amount(each.name, each.allocatable - each.requested)}</td>
                  <td class="number">{percent(share(each.allocatable - each.requested, each.allocatable))}</td>
                </tr>
              ))}
              <tr>
                <td>pods</td>
                <td class="number">{node.allowedPods - node.podCount}</td>
                <td class="number">{percent(share(node.allowedPods - node.podCount, node.allowedPods))}</td>
              </tr>
            </tbody>
          </table>
          <p class="soft">A pod fits that asks for no more than this, and whose other rules the node meets.</p>
        </Panel>
      </div>
      <Panel title={counted(node.podCount, "pod")}>
        {node.pods.length ? <Pods node={node} /> : <p class="soft">No pod that you may see runs here.</p>}
        {node.hiddenPods > 0 && (
          <p class="soft">
            {counted(node.hiddenPods, "pod")} of namespaces that you may not see:{" "}
            {Object.entries(node.hiddenRequests)
              .map(([name, value]) => `${amount(name, value)} ${name}`)
              .join(", ")}
          </p>
        )}
      </Panel>
      <div class="columns">
        <Panel title="How it stands">
          <ul class="plain">
            <li>{node.ready ? "Ready" : "Not ready"}</li>
            {node.cordoned && <li>Cordoned: no new pods, unless they tolerate it</li>}
            {node.conditions.map((each) => (
              <li key={each} class="bad-text">
                {each}
              </li>
            ))}
            {node.taints.map((each) => (
              <li key={each}>
                Taint <code>{each}</code>
              </li>
            ))}
          </ul>
          <details>
            <summary>{counted(Object.keys(node.labels).length, "label")}</summary>
            <dl class="labels">
              {Object.entries(node.labels).map(([key, value]) => (
                <div key={key}>
                  <dt>{key}</dt>
                  <dd>
                    <bdi>{value}</bdi>
                  </dd>
                </div>
              ))}
            </dl>
          </details>
        </Panel>
        {node.devices.length > 0 && <Devices node={node} />}
        <Panel title="What came and went">
          {node.timeline.length ? (
            <Entries entries={[...node.timeline].reverse().slice(0, 50)} named />
          ) : (
            <Empty title="Nothing yet">
              <p>Pods that are bound here while the dashboard runs are listed with their time.</p>
            </Empty>
          )}
        </Panel>
      </div>
    </>
  );
}

function Pods({ node }: { node: NodeDetails }) {
  const columns = [...new Set(node.pods.flatMap((pod) => Object.keys(pod.requests)))];
  const biggest = [...node.pods].sort((a, b) => (b.requests.cpu ?? 0) - (a.requests.cpu ?? 0));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Pods on the node">
      <table class="table">
        <thead>
          <tr>
            <th>Pod</th>
            <th>Owner</th>
            <th class="number">Priority</th>
            {columns.map((name) => (
              <th key={name} class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {biggest.map((pod: NodePodRow) => (
            <tr key={pod.pod}>
              <td>
                <PodName name={pod.pod} /> {pod.assumed && <span class="mark">binding</span>}
              </td>
              <td>
                <bdi>{pod.owner}</bdi>
              </td>
              <td class="number">{pod.priority}</td>
              {columns.map((name) => (
                <td key={name} class="number">
                  {name in pod.requests ? amount(name, pod.requests[name] ?? 0) : ""}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Devices({ node }: { node: NodeDetails }) {
  const used = node.devices.filter((each) => each.claim).length;
  return (
    <Panel title={`${used} of ${counted(node.devices.length, "device")} in use`}>
      <ul class="devices">
        {node.devices.map((each) => (
          <li key={`${each.driver}/${each.pool}/${each.device}`} class={each.claim ? "device used" : "device"}>
            <b>{each.device}</b>
            <span class="soft">{each.claim || "free"}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
