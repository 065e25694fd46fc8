// What plugins say of themselves: QoS, learned policies, and where a shadow decided otherwise.

import type { DifferencesAnswer, PluginNumber, PolicyAnswer, PolicyRow, QosAnswer } from "../api";
import { useAnswer } from "../asking";
import { duration, grouped, percent, span, words } from "../format";
import { Empty, Head, NodeName, Panel, PodName, Tile, Waiting } from "../parts/small";
import { Table } from "../parts/table";
import { link } from "../routing";

type QosRow = QosAnswer["rows"][number];

export function Qos() {
  const answer = useAnswer<QosAnswer>(() => "qos", 2).value;
  const { value } = answer;
  return (
    <>
      <Head title="QoS" command="podium qos" json="qos" />
      <Waiting answer={answer} />
      {value && !value.rows.length && (
        <Empty title={value.served ? "No workload has a promise yet" : "No plugin follows QoS"}>
          <p>
            QosAware promises workloads a share of time in which they run. Enable it in a profile, and write the promise
            into the pods' annotation <code>slo</code>. Then each controller is listed here with what it got.
          </p>
        </Empty>
      )}
      {value && value.rows.length > 0 && (
        <Panel title="Promised and kept: the share of time in which pods run">
          <Table
            label="QoS of controllers"
            rows={[...value.rows].sort((a, b) => slack(a) - slack(b))}
            keyOf={(row) => String(row.controller)}
            columns={[
              {
                title: "Controller",
                cell: (row) => <bdi>{String(row.controller)}</bdi>,
                by: (row) => String(row.controller),
              },
              {
                title: "Promised",
                number: true,
                cell: (row) => percent(Number(row.slo), 1),
                by: (row) => Number(row.slo),
              },
              {
                title: "Kept",
                number: true,
                cell: (row) => <b>{percent(Number(row.qos), 1)}</b>,
                by: (row) => Number(row.qos),
              },
              {
                title: "State",
                cell: (row) => (
                  <span class={slack(row) >= 0 ? "state active" : "state unschedulable"}>
                    {slack(row) >= 0 ? "kept" : "broken"}
                  </span>
                ),
              },
              { title: "Slack", number: true, cell: (row) => left(row.ttv_s), by: (row) => seconds(row.ttv_s) },
              {
                title: "Ran",
                number: true,
                cell: (row) => span(seconds(row.running_s)),
                by: (row) => seconds(row.running_s),
              },
              {
                title: "Waited",
                number: true,
                cell: (row) => span(seconds(row.waiting_s)),
                by: (row) => seconds(row.waiting_s),
              },
              { title: "Running now", number: true, cell: (row) => String(row.running) },
              { title: "Pending now", number: true, cell: (row) => String(row.pending) },
              { title: "Measured as", cell: (row) => String(row.approach) },
            ]}
          />
          <p class="soft">
            Slack: how long pods could stop until the promise is broken; below zero, how long they must run to keep it.
          </p>
        </Panel>
      )}
    </>
  );
}

/** How far a controller is above its promise. */
function slack(row: QosRow): number {
  return Number(row.qos) - Number(row.slo);
}

/** Seconds as JSON has them, where "+Inf" is a text. */
function seconds(value: unknown): number {
  return value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value);
}

function left(value: unknown): string {
  const found = seconds(value);
  if (!Number.isFinite(found)) return "–";
  return found < 0 ? `−${span(-found)}` : span(found);
}

export function Policy() {
  const answer = useAnswer<PolicyAnswer>(() => "policy", 2).value;
  const { value } = answer;
  const log = value?.policies.map((policy) => String(policy.arguments.log ?? "")).find(Boolean);
  return (
    <>
      <Head title="Learned policies" command={`podium policy report ${log ?? "LOG"}`} json="policy" />
      <Waiting answer={answer} />
      {value && !value.policies.length && (
        <Empty title="No policy is in use">
          <p>
            A profile with LearnedScore asks a policy that you trained (<code>podium train</code>); one with OnlineScore
            learns from rewards. Here you see how often each decides, how often it falls back and why, and how it
            drifts.
          </p>
        </Empty>
      )}
      {value?.policies.map((policy) => (
        <Panel key={policy.profile + policy.plugin} title={`${policy.plugin} in ${policy.profile}`}>
          <Guard numbers={policy.numbers} />
          <details>
            <summary>All numbers</summary>
            <Numbers policy={policy} />
          </details>
          <details>
            <summary>Arguments</summary>
            <pre class="json" tabIndex={0}>
              {JSON.stringify(policy.arguments, null, 2)}
            </pre>
          </details>
        </Panel>
      ))}
    </>
  );
}

const MODES: Record<string, string> = {
  off: "the fallback decides",
  shadow: "the fallback decides, the model is compared",
  canary: "the model decides for some pods",
  active: "the model decides",
  demoted: "the model did badly: the fallback decides",
};

/** The first things to know of a policy: who decides, whether it is as good, how quick, and how far from its training. */
function Guard({ numbers }: { numbers: PluginNumber[] }) {
  const those = (ending: string) => numbers.filter((each) => each.name.endsWith(ending));
  const value = (ending: string, label?: string) =>
    those(ending).find((each) => !label || Object.values(each.labels).includes(label))?.value;
  const sum = (ending: string) => those(ending).reduce((total, each) => total + each.value, 0);
  const decisions = sum("_decisions_total");
  const compared = sum("_comparisons_total");
  const mode = those("_mode")
    .find((each) => each.value)
    ?.labels.mode?.split(":")[0];
  const late = value("_bad_ratio");
  const drift = value("_drift");
  return (
    <div class="tiles">
      {mode && <Tile label="Mode" value={mode} detail={MODES[mode] ?? ""} />}
      <Tile
        label="By the model"
        value={decisions ? percent((value("_decisions_total", "model") ?? 0) / decisions) : "–"}
        detail={`of ${grouped(decisions)} decisions`}
      />
      {compared > 0 && (
        <>
          <Tile
            label="Same best node"
            value={percent((value("_comparisons_total", "same") ?? 0) / compared)}
            detail={`as the fallback, ${grouped(compared)} compared`}
          />
          <Tile
            label="Rank correlation"
            value={(sum("_rank_correlation_sum_total") / compared).toFixed(2)}
            detail="mean; 1: the same order, 0: no relation"
          />
        </>
      )}
      {value("_seconds", "0.99") !== undefined && (
        <Tile
          label="Answer time"
          value={duration(value("_seconds", "0.99") ?? null)}
          detail={`99 % within this, half within ${duration(value("_seconds", "0.5") ?? null)}`}
        />
      )}
      {late !== undefined && (
        <Tile label="Late or failed" value={percent(late, 1)} detail="of the last 1,000 answers" />
      )}
      {drift !== undefined && (
        <Tile label="Drift" value={drift.toFixed(2)} detail="0: pods as in training, 1: none in common" />
      )}
    </div>
  );
}

function Numbers({ policy }: { policy: PolicyRow }) {
  return (
    <Table
      label={`Numbers of ${policy.plugin}`}
      rows={policy.numbers}
      keyOf={(number) => number.name + JSON.stringify(number.labels)}
      columns={[
        {
          title: "Metric",
          wide: true,
          cell: ({ name, text }) => (
            <>
              {text}
              <div class="soft small">{name}</div>
            </>
          ),
        },
        { title: "Label", cell: ({ labels }) => Object.values(labels).join(", ") },
        {
          title: "Value",
          number: true,
          cell: ({ name, value }) =>
            name.endsWith("_seconds") ? duration(value) : grouped(Number(value.toPrecision(6))),
        },
      ]}
    />
  );
}

export function Differences() {
  const answer = useAnswer<DifferencesAnswer>(() => "differences", 2).value;
  const { value } = answer;
  const all = value ? Object.values(value.counts).reduce((sum, each) => sum + each, 0) : 0;
  return (
    <>
      <Head title="Differences" command="podium shadow report LOG" json="differences" />
      <Waiting answer={answer} />
      {value && !value.shadows && (
        <Empty title="This scheduler shadows nobody">
          <p>
            <code>podium run --shadow --dashboard</code> decides beside the scheduler in charge, binds nothing, and
            lists here where it would decide otherwise. To compare two configurations, ask{" "}
            <a href={link("whatif")}>what if</a>.
          </p>
        </Empty>
      )}
      {value?.shadows && (
        <>
          <div class="tiles">
            {Object.entries(value.meanings).map(([outcome, meaning]) => (
              <Tile
                key={outcome}
                label={words(outcome)}
                value={grouped(value.counts[outcome] ?? 0)}
                detail={`${all ? percent((value.counts[outcome] ?? 0) / all) : "–"}: ${meaning}`}
              />
            ))}
          </div>
          <Panel title="The newest differences">
            {value.findings.length === 0 && (
              <p class="soft">None so far: every decision compared was the same, or a tie.</p>
            )}
            {value.findings.length > 0 && (
              <Table
                label="The newest differences"
                rows={value.findings}
                keyOf={(each) => `${each.pod} ${each.podium} ${each.other}`}
                columns={[
                  { title: "Pod", cell: (each) => <PodName name={each.pod} /> },
                  { title: "Outcome", cell: (each) => words(each.outcome) },
                  { title: "Podium", cell: (each) => (each.podium ? <NodeName name={each.podium} /> : "no node") },
                  { title: "In charge", cell: (each) => (each.other ? <NodeName name={each.other} /> : "no node") },
                  {
                    title: "Points apart",
                    number: true,
                    cell: (each) => each.points ?? "",
                    by: (each) => each.points ?? 0,
                  },
                  { title: "Why", wide: true, cell: (each) => each.reason ?? "" },
                ]}
              />
            )}
          </Panel>
        </>
      )}
    </>
  );
}
