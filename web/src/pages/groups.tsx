// Gangs, and what of each quota is used.

import type { GangRow, GroupsAnswer, QuotaRow } from "../api";
import { useAnswer } from "../asking";
import { queueCommand } from "../commands";
import { Empty, Head, Loading, Panel, PodName, Wrong } from "../parts/small";

export function Groups() {
  const { value, error } = useAnswer<GroupsAnswer>(() => "groups", 2).value;
  return (
    <>
      <Head title="Gangs and quotas" command={queueCommand()} json="groups" />
      <Wrong error={error} />
      {!value && !error && <Loading />}
      {value && (
        <>
          <Panel title="Gangs">
            {value.gangs.length ? (
              value.gangs.map((gang) => <Gang key={gang.key} gang={gang} />)
            ) : (
              <Empty title="No pods start together">
                <p>
                  A gang is placed whole or not at all. Give pods the label <code>scheduling.x-k8s.io/pod-group</code>{" "}
                  and enable Coscheduling, or use Kubernetes' own PodGroups with the gate GenericWorkload.
                </p>
              </Empty>
            )}
          </Panel>
          <Panel title="Quotas">
            {value.quotas.length ? (
              value.quotas.map((quota) => <Quota key={quota.key} quota={quota} />)
            ) : (
              <Empty title={value.readsQuotas ? "No elastic quotas" : "No plugin reads quotas"}>
                <p>
                  An ElasticQuota guarantees a namespace its min, lets it borrow up to its max, and gives back what
                  others need. Enable CapacityScheduling in a profile, and create one.
                </p>
              </Empty>
            )}
          </Panel>
        </>
      )}
    </>
  );
}

function Gang({ gang }: { gang: GangRow }) {
  const needed = Math.max(gang.minimum, 1);
  const starts = gang.assigned >= gang.minimum;
  return (
    <div class="gang">
      <div class="gang-head">
        <b>
          <bdi>{gang.key}</bdi>
        </b>
        <span class={starts ? "state active" : "state unschedulable"}>{starts ? "runs" : "waits"}</span>
        <span class="soft">
          {gang.assigned} of {gang.members} placed, {gang.minimum} needed
        </span>
      </div>
      <div class="boxes" role="img" aria-label={`${gang.assigned} of ${gang.members} members have a node`}>
        {Array.from({ length: Math.min(Math.max(gang.members, needed), 200) }, (_, number) => (
          <span
            key={`box-${number}`}
            class={number < gang.assigned ? "box on" : number < needed ? "box needed" : "box"}
          />
        ))}
      </div>
      {gang.waiting.map((row) => (
        <p key={row.pod} class="gang-member">
          <PodName name={row.pod} /> <span class="soft">{row.reason || "not tried yet"}</span>
        </p>
      ))}
    </div>
  );
}

/** A quantity of Kubernetes as a number. */
export function quantity(value: unknown): number {
  const text = String(value ?? 0);
  const found = /^([+-]?[\d.]+(?:e[+-]?\d+)?)([a-zA-Z]*)$/i.exec(text);
  if (!found) return 0;
  const units: Record<string, number> = {
    n: 1e-9,
    u: 1e-6,
    m: 1e-3,
    k: 1e3,
    M: 1e6,
    G: 1e9,
    T: 1e12,
    P: 1e15,
    E: 1e18,
    Ki: 2 ** 10,
    Mi: 2 ** 20,
    Gi: 2 ** 30,
    Ti: 2 ** 40,
    Pi: 2 ** 50,
    Ei: 2 ** 60,
  };
  return Number(found[1]) * (units[found[2] ?? ""] ?? 1);
}

function Quota({ quota }: { quota: QuotaRow }) {
  const names = [...new Set([...Object.keys(quota.max), ...Object.keys(quota.min)])];
  return (
    <div class="gang">
      <b>
        <bdi>{quota.key}</bdi>
      </b>
      {names.map((name) => {
        const [used, least, most] = [quota.used[name], quota.min[name], quota.max[name]];
        const whole = Math.max(quantity(most), quantity(least), quantity(used), 1e-9);
        const borrowed = quantity(used) > quantity(least);
        return (
          <div key={name} class="bar-row">
            <span class="bar-name">{name}</span>
            <span class="bar">
              <span class="bar-part" style={{ width: `${(100 * quantity(used)) / whole}%` }} />
              <span
                class="bar-mark"
                style={{ left: `${(100 * quantity(least)) / whole}%` }}
                title={`min ${least ?? 0}`}
              />
            </span>
            <span class="bar-value">
              {String(used ?? 0)} used, {String(least ?? 0)} guaranteed,{" "}
              {most === undefined ? "no max" : `${most} at most`}
              {borrowed && <span class="mark">borrows</span>}
            </span>
          </div>
        );
      })}
    </div>
  );
}
