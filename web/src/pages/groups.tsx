// Gangs, and what of each quota is used.

import type { GangRow, GroupsAnswer, QuotaRow } from "../api";
import { useAnswer } from "../asking";
import { queueCommand } from "../commands";
import { Empty, Head, Loading, Panel, PodName, Wrong } from "../parts/small";
import { quantity } from "../quantities";

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
