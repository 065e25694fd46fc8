// A node: what it offers, who is on it, what still fits, and what came and went.

import type { NodeDetails, NodePodRow } from "../api";
import { useAnswer } from "../asking";
import { nodeCommand } from "../commands";
import { amount, amountInWords, counted, percent, share, span } from "../format";
import { Bar, Empty, Entries, Head, Panel, PodName, Waiting } from "../parts/small";
import { Table } from "../parts/table";
import { link, route } from "../routing";

export function Node() {
  const name = route.value.rest[0] ?? "";
  const answer = useAnswer<NodeDetails>(() => `nodes/${encodeURIComponent(route.value.rest[0] ?? "")}`, 2);
  const { value } = answer.value;
  return (
    <>
      <Head title={name} command={nodeCommand(name)} json={`nodes/${encodeURIComponent(name)}`}>
        <a class="button" href={link("whatif", [], { drain: name })}>
          What if it is drained?
        </a>
      </Head>
      <Waiting answer={answer.value} />
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
          <Table
            label="What still fits"
            rows={[...node.resources, { name: "pods", allocatable: node.allowedPods, requested: node.podCount }]}
            keyOf={(each) => each.name}
            columns={[
              { title: "Resource", cell: (each) => each.name },
              {
                title: "Free",
                number: true,
                cell: (each) => amountInWords(each.name, each.allocatable - each.requested),
              },
              {
                title: "Of the node",
                number: true,
                cell: (each) => percent(share(each.allocatable - each.requested, each.allocatable)),
              },
            ]}
          />
          <p class="soft">A pod fits if it asks for no more than this, and the node meets its other rules.</p>
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
  const resources = [...new Set(node.pods.flatMap((pod) => Object.keys(pod.requests)))];
  return (
    <Table
      label="Pods on the node"
      rows={[...node.pods].sort((a, b) => (b.requests.cpu ?? 0) - (a.requests.cpu ?? 0))}
      keyOf={(pod) => pod.pod}
      columns={[
        {
          title: "Pod",
          cell: (pod) => (
            <>
              <PodName name={pod.pod} /> {pod.assumed && <span class="mark">binding</span>}
            </>
          ),
          by: (pod) => pod.pod,
        },
        { title: "Owner", cell: (pod) => <bdi>{pod.owner}</bdi>, by: (pod) => pod.owner },
        { title: "Priority", number: true, cell: (pod) => pod.priority, by: (pod) => pod.priority },
        ...resources.map((name) => ({
          title: name,
          number: true,
          cell: (pod: NodePodRow) => (name in pod.requests ? amountInWords(name, pod.requests[name] ?? 0) : ""),
          by: (pod: NodePodRow) => pod.requests[name] ?? 0,
        })),
      ]}
    />
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
