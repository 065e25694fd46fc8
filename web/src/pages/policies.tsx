// What plugins say of themselves: QoS, learned policies, and where a shadow decided otherwise.

import type { DifferencesAnswer, PluginNumber, PolicyAnswer, QosAnswer } from "../api";
import { useAnswer } from "../asking";
import { command } from "../commands";
import { grouped, percent } from "../format";
import { Empty, Head, Loading, NodeName, Panel, PodName, Tile, Wrong } from "../parts/small";
import { link } from "../routing";

export function Qos() {
  const { value, error } = useAnswer<QosAnswer>(() => "qos", 2).value;
  return (
    <>
      <Head title="QoS" command={command("qos")} json="qos" />
      <Wrong error={error} />
      {!value && !error && <Loading />}
      {value && !value.rows.length && (
        <Empty title={value.served ? "No workload has a promise yet" : "No plugin follows QoS"}>
          <p>
            Workloads can be promised a share of time in which they run. Enable QosAware in a profile, and write the
            promise into the pods' annotations; then each controller is listed here with what it got.
          </p>
        </Empty>
      )}
      {value && value.rows.length > 0 && (
        <Panel title="Controllers">
          <div class="scroll" tabIndex={0} role="region" aria-label="QoS of controllers">
            <table class="table">
              <thead>
                <tr>
                  <th>Controller</th>
                  <th class="number">Promised</th>
                  <th class="number">Kept</th>
                  <th>Course</th>
                  <th class="number">Running</th>
                  <th class="number">Pending</th>
                  <th>Approach</th>
                </tr>
              </thead>
              <tbody>
                {value.rows.map((row) => (
                  <tr key={String(row.controller)}>
                    <td>
                      <bdi>{String(row.controller)}</bdi>
                    </td>
                    <td class="number">{percent(Number(row.slo))}</td>
                    <td class="number">
                      <b>{percent(Number(row.qos))}</b>
                    </td>
                    <td>
                      <span class={Number(row.qos) >= Number(row.slo) ? "state active" : "state unschedulable"}>
                        {Number(row.qos) >= Number(row.slo) ? "kept" : "broken"}
                      </span>
                    </td>
                    <td class="number">{String(row.running)}</td>
                    <td class="number">{String(row.pending)}</td>
                    <td>{String(row.approach)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Panel>
      )}
    </>
  );
}

export function Policy() {
  const { value, error } = useAnswer<PolicyAnswer>(() => "policy", 2).value;
  return (
    <>
      <Head title="Learned policies" json="policy" />
      <Wrong error={error} />
      {!value && !error && <Loading />}
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
          <table class="table">
            <thead>
              <tr>
                <th>What</th>
                <th>Of</th>
                <th class="number">Value</th>
              </tr>
            </thead>
            <tbody>
              {policy.numbers.map((number) => (
                <tr key={number.name + JSON.stringify(number.labels)}>
                  <td>{number.text}</td>
                  <td>{Object.values(number.labels).join(", ")}</td>
                  <td class="number">{Number(number.value.toPrecision(6))}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <details>
            <summary>Arguments</summary>
            <pre class="json">{JSON.stringify(policy.arguments, null, 2)}</pre>
          </details>
        </Panel>
      ))}
    </>
  );
}

/** The first things to know of a policy: who decides, and how often it cannot. */
function Guard({ numbers }: { numbers: PluginNumber[] }) {
  const decisions = numbers.filter((each) => each.name.endsWith("_decisions_total"));
  const all = decisions.reduce((sum, each) => sum + each.value, 0);
  const model = decisions.find((each) => each.labels.source === "model")?.value ?? 0;
  const mode = numbers.find((each) => each.name.endsWith("_mode"))?.labels.mode;
  return (
    <div class="tiles">
      {mode && <Tile label="Mode" value={mode} />}
      <Tile label="Decisions" value={grouped(all)} />
      <Tile label="By the fallback" value={all ? percent((all - model) / all) : "–"} />
    </div>
  );
}

export function Differences() {
  const { value, error } = useAnswer<DifferencesAnswer>(() => "differences", 2).value;
  const all = value ? Object.values(value.counts).reduce((sum, each) => sum + each, 0) : 0;
  return (
    <>
      <Head title="Differences" command="podium shadow report LOG" json="differences" />
      <Wrong error={error} />
      {!value && !error && <Loading />}
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
                label={outcome}
                value={grouped(value.counts[outcome] ?? 0)}
                detail={`${all ? percent((value.counts[outcome] ?? 0) / all) : "–"}: ${meaning}`}
              />
            ))}
          </div>
          <Panel title="The newest differences">
            {value.findings.length === 0 && <p class="soft">None so far.</p>}
            {value.findings.length > 0 && (
              <table class="table">
                <thead>
                  <tr>
                    <th>Pod</th>
                    <th>Outcome</th>
                    <th>Podium</th>
                    <th>In charge</th>
                    <th class="number">Points</th>
                    <th>Why</th>
                  </tr>
                </thead>
                <tbody>
                  {value.findings.map((each, number) => (
                    <tr key={`${each.pod}-${number}`}>
                      <td>
                        <PodName name={each.pod} />
                      </td>
                      <td>{each.outcome}</td>
                      <td>{each.podium ? <NodeName name={each.podium} /> : "no node"}</td>
                      <td>{each.other ? <NodeName name={each.other} /> : "no node"}</td>
                      <td class="number">{each.points ?? ""}</td>
                      <td>{each.reason ?? ""}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </Panel>
        </>
      )}
    </>
  );
}
