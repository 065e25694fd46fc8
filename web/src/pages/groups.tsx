// Gangs, and what of each quota is used.

import type { GangRow, GroupsAnswer, QuotaRow } from "../api";
import { useAnswer } from "../asking";
import { queueCommand } from "../commands";
import { quantity } from "../format";
import { Empty, Head, Panel, PodName, Reason, Waiting } from "../parts/small";
import { groups } from "./queue";

export function Groups() {
  const answer = useAnswer<GroupsAnswer>(() => "groups", 2).value;
  const { value } = answer;
  return (
    <>
      <Head title="Gangs and quotas" command={queueCommand()} json="groups" />
      <Waiting answer={answer} />
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
      {groups(gang.waiting, "reason").map(([reason, rows]) => (
        <div key={reason} class="gang-reason">
          <p class="reason-pods">
            {rows.map((row) => (
              <PodName key={row.pod} name={row.pod} />
            ))}
          </p>
          <p>
            <Reason text={reason} />
          </p>
        </div>
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
          <div key={name} class="bar-row quota">
            <span class="bar-name">{name}</span>
            <span class="bar">
              <span class="bar-part" style={{ width: `${(100 * quantity(used)) / whole}%` }} />
              <span
                class="bar-mark"
                style={{ left: `calc(${(100 * quantity(least)) / whole}% - 2px)` }}
                title={`guaranteed: ${least ?? 0}`}
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
