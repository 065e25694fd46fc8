// The configuration in force: profiles, plugins with the time they take, gates, and sources of measured load.

import type { ConfigurationAnswer } from "../api";
import { useAnswer } from "../asking";
import { configurationCommand } from "../commands";
import { duration, grouped, span } from "../format";
import { Head, Panel, Waiting } from "../parts/small";
import { Table } from "../parts/table";

export function Configuration() {
  const answer = useAnswer<ConfigurationAnswer>(() => "configuration", 5).value;
  return (
    <>
      <Head title="Configuration" command={configurationCommand()} json="configuration" />
      <Waiting answer={answer} />
      {answer.value && <Shown value={answer.value} />}
    </>
  );
}

function Shown({ value }: { value: ConfigurationAnswer }) {
  const failures = Object.entries(value.failures);
  return (
    <>
      {failures.length > 0 && (
        <Panel title="Plugins that failed">
          <ul class="plain">
            {failures.map(([where, number]) => (
              <li key={where} class="bad-text">
                {where}: {grouped(number)} times
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {value.profiles.map((profile) => (
        <Panel key={profile.name} title={`Profile ${profile.name}: plugins in running order`}>
          <dl class="points">
            {profile.points.map(({ point, plugins }) => (
              <div key={point}>
                <dt>{point}</dt>
                <dd>
                  {plugins.map((plugin) => (
                    <span key={plugin.name} class="chip plain">
                      {plugin.name}
                      {plugin.weight !== null && <b title={`weight ${plugin.weight}`}> ×{plugin.weight}</b>}
                    </span>
                  ))}
                </dd>
              </div>
            ))}
          </dl>
        </Panel>
      ))}
      <Panel title="Time that plugins take">
        {value.times.length ? (
          <Table
            label="Time that plugins take"
            rows={[...value.times].sort((a, b) => b.meanSeconds * b.calls - a.meanSeconds * a.calls)}
            keyOf={(each) => each.plugin + each.step}
            columns={[
              { title: "Plugin", cell: (each) => each.plugin, by: (each) => each.plugin },
              { title: "Extension point", cell: (each) => each.step },
              { title: "Calls timed", number: true, cell: (each) => grouped(each.calls), by: (each) => each.calls },
              {
                title: "Mean",
                number: true,
                cell: (each) => duration(each.meanSeconds),
                by: (each) => each.meanSeconds,
              },
              { title: "Half within", number: true, cell: (each) => duration(each.p50Seconds) },
              {
                title: "99 % within",
                number: true,
                cell: (each) => duration(each.p99Seconds),
                by: (each) => each.p99Seconds ?? Number.POSITIVE_INFINITY,
              },
            ]}
          />
        ) : (
          <p class="soft">No plugin is timed yet. The scheduler times one attempt in ten.</p>
        )}
      </Panel>
      <Panel title="Measured load">
        {value.telemetry.length ? (
          <Table
            label="Sources of measured load"
            rows={value.telemetry}
            keyOf={(each) => each.query + each.address}
            columns={[
              { title: "Series", cell: (each) => <code>{each.query}</code> },
              {
                title: "Source",
                cell: (each) => (
                  <>
                    {each.source} <span class="soft">{each.address}</span>
                  </>
                ),
              },
              { title: "Nodes", number: true, cell: (each) => grouped(each.nodes) },
              {
                title: "Oldest",
                number: true,
                cell: (each) => (each.oldestSeconds === null ? "–" : span(each.oldestSeconds)),
              },
              {
                title: "Problem",
                cell: (each) => <span class={each.problem ? "bad-text" : ""}>{each.problem ?? "none"}</span>,
              },
            ]}
          />
        ) : (
          <p class="soft">
            No plugin of these profiles reads measured load. TargetLoadPacking and MeasuredLoad do, for example.
          </p>
        )}
      </Panel>
      <Panel title="Feature gates">
        {value.featureGates.length ? (
          <p>
            {value.featureGates.map((gate) => (
              <span class="chip plain" key={gate}>
                {gate}
              </span>
            ))}
          </p>
        ) : (
          <p class="soft">All are at their defaults.</p>
        )}
      </Panel>
      <Panel title="As a KubeSchedulerConfiguration">
        <details>
          <summary>The whole configuration, without secrets</summary>
          <pre class="json" tabIndex={0}>
            {JSON.stringify(value.configuration, null, 2)}
          </pre>
        </details>
      </Panel>
    </>
  );
}
