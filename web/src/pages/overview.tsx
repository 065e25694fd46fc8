// The start page: what waits and why, how fast pods are placed, what changed, and the nodes.

import type { QueueAnswer, Snapshot } from "../api";
import { useAnswer } from "../asking";
import { counts, entries, placed, rates, revision, snapshot, waiting } from "../cluster";
import { queueCommand } from "../commands";
import { amount, amountInWords, counted, grouped, percent, share, shortKey } from "../format";
import { ClusterMap } from "../map/cluster-map";
import { Bar, Empty, Entries, Head, Loading, Panel, PodName, QUEUES, queueWords, Reason, Tile } from "../parts/small";
import { Sparkline } from "../parts/sparkline";
import { link, nodeLink } from "../routing";

const MOST_CARDS = 100;
const MOST_GROUPS = 8;
const MOST_NAMED = 100;

export function Overview() {
  const queue = useAnswer<QueueAnswer>(() => "queue?limit=100", 2);
  const known = snapshot.value;
  if (!known) return <Loading />;
  return (
    <>
      <Head title="Overview" command={queueCommand()} json="queue" />
      <Tiles known={known} />
      <div class="columns">
        <Panel title="What waits, and why" aside={<a href={link("queue")}>Queue</a>}>
          <Reasons answer={queue.value.value} />
        </Panel>
        <Panel title="Placed a second, and waiting">
          {rates.value.length > 1 ? (
            <Sparkline
              label="Pods placed in a second, and pods that wait"
              times={rates.value.map((each) => each.time)}
              courses={[
                { label: "placed a second", values: rates.value.map((each) => each.bound), colour: 1 },
                { label: "waiting", values: rates.value.map((each) => each.waiting), colour: 2 },
              ]}
              height={220}
            />
          ) : (
            <Empty title="Nothing is measured yet">
              <p>The course begins with the first pods that are placed while you look. A dump has none.</p>
            </Empty>
          )}
        </Panel>
      </div>
      <Panel title="Nodes" aside={<a href={link("map")}>Map</a>}>
        {known.names.length <= MOST_CARDS ? <NodeCards known={known} /> : <ClusterMap small />}
      </Panel>
      <Panel title="What changed">
        {entries.value.length ? (
          <Entries entries={entries.value.slice(0, 25)} named />
        ) : (
          <p class="soft">Decisions show up here as they are made.</p>
        )}
      </Panel>
    </>
  );
}

function Tiles({ known }: { known: Snapshot }) {
  void revision.value;
  const total = waiting(counts.value);
  const rate = rates.value.at(-1)?.bound ?? 0;
  const nodes = known.names.length;
  const cordoned = known.flags.filter((flag) => flag & 1).length;
  const notReady = known.flags.filter((flag) => flag & 2).length;
  const state = [cordoned ? `${cordoned} cordoned` : "", notReady ? `${notReady} not ready` : ""].filter(Boolean);
  return (
    <div class="tiles">
      <Tile label="Nodes" value={grouped(nodes)} detail={state.join(", ") || "all ready"} href={link("map")} />
      <Tile label="Pods placed" value={grouped(placed.value)} detail={`${rate.toFixed(rate < 10 ? 1 : 0)} a second`} />
      <Tile
        label="Pods waiting"
        value={grouped(total)}
        detail={QUEUES.flatMap((queue) =>
          counts.value[queue] ? `${counts.value[queue]} ${queueWords(queue)}` : [],
        ).join(", ")}
        href={link("queue")}
      />
      {known.resources.map((resource) => {
        const requested = sum(resource.requested);
        const allocatable = sum(resource.allocatable);
        if (!allocatable || (resource.name === "ephemeral-storage" && !requested)) return null;
        return (
          <Tile
            key={resource.name}
            label={`${shortKey(resource.name)} requested`}
            value={percent(share(requested, allocatable))}
            detail={`${amount(resource.name, requested)} of ${amountInWords(resource.name, allocatable)}`}
          />
        );
      })}
    </div>
  );
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function Reasons({ answer }: { answer: QueueAnswer | null }) {
  if (!answer) return <Loading />;
  if (!answer.pods.length) {
    return (
      <Empty title="Every pod has a node">
        <p>
          Pods that wait are grouped here by what keeps them out. To see one, create a pod that asks for more than any
          node has.
        </p>
      </Empty>
    );
  }
  return (
    <ul class="reasons">
      {answer.groups.slice(0, MOST_GROUPS).map((group) => (
        <li key={group.reason}>
          <span class="reason-count">{group.count}</span>
          <div>
            <p class="reason">
              <Reason text={group.reason} />
            </p>
            <p class="reason-pods">
              {(answer.pods.length <= MOST_NAMED ? named(answer, group.reason, group.pods) : group.pods).map((pod) => (
                <PodName key={pod} name={pod} />
              ))}
              {group.count > group.pods.length && answer.pods.length > MOST_NAMED && (
                <span class="soft">and {group.count - group.pods.length} more</span>
              )}
            </p>
          </div>
        </li>
      ))}
      {answer.groups.length > MOST_GROUPS && (
        <li class="soft">
          <a href={link("queue")}>{counted(answer.groups.length - MOST_GROUPS, "more reason")}</a>
        </li>
      )}
      {answer.hidden > 0 && <li class="soft">{counted(answer.hidden, "pod")} of namespaces that you may not see</li>}
    </ul>
  );
}

function named(answer: QueueAnswer, reason: string, fallback: string[]): string[] {
  const found = answer.pods.filter((pod) => pod.reason === reason).map((pod) => pod.pod);
  return found.length ? found : fallback;
}

function NodeCards({ known }: { known: Snapshot }) {
  void revision.value;
  if (!known.names.length) {
    return (
      <Empty title="No nodes yet">
        <p>The scheduler knows of no node. In podium up, --nodes says how many there are.</p>
      </Empty>
    );
  }
  return (
    <ul class="cards">
      {known.names.map((name, place) => (
        <li key={name}>
          <a class="card" href={nodeLink(name)}>
            <span class="card-name">
              <bdi>{name}</bdi>
              <Marks flags={known.flags[place] ?? 0} />
            </span>
            {known.resources
              .filter((resource) => (resource.allocatable[place] ?? 0) > 0 && resource.name !== "ephemeral-storage")
              .slice(0, 4)
              .map((resource) => (
                <Bar
                  key={resource.name}
                  name={resource.name}
                  label={shortKey(resource.name)}
                  requested={resource.requested[place] ?? 0}
                  allocatable={resource.allocatable[place] ?? 0}
                  brief
                />
              ))}
            <span class="card-pods soft">{counted(known.pods[place] ?? 0, "pod")}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

export function Marks({ flags }: { flags: number }) {
  return (
    <>
      {Boolean(flags & 1) && <span class="mark cordoned">cordoned</span>}
      {Boolean(flags & 2) && <span class="mark bad">not ready</span>}
      {Boolean(flags & 4) && <span class="mark">tainted</span>}
    </>
  );
}
