// The configuration in force: profiles, plugins with the time they take, gates, and sources of measured load.

import type { ConfigurationAnswer, PluginTime } from "../api";
import { useAnswer } from "../asking";
import { command } from "../commands";
import { duration, grouped, span } from "../format";
import { Head, Loading, Panel, Wrong } from "../parts/small";

interface Profile {
  schedulerName?: string;
  plugins?: Record<string, { enabled?: { name: string; weight?: number }[] }>;
}

export function Configuration() {
  const { value, error } = useAnswer<ConfigurationAnswer>(() => "configuration", 5).value;
  const profiles = (value?.configuration.profiles ?? []) as Profile[];
  const failures = Object.entries(value?.failures ?? {});
  return (
    <>
      <Head title="Configuration" command={command("plugins")} json="configuration" />
      <Wrong error={error} />
      {!value && !error && <Loading />}
      {profiles.map((profile) => (
        <Panel key={profile.schedulerName ?? ""} title={`Profile ${profile.schedulerName}`}>
          <dl class="points">
            {Object.entries(profile.plugins ?? {})
              .filter(([, point]) => point.enabled?.length)
              .map(([point, { enabled }]) => (
                <div key={point}>
                  <dt>{point}</dt>
                  <dd>
                    {enabled?.map((plugin) => (
                      <span key={plugin.name} class="chip plain">
                        {plugin.name}
                        {plugin.weight ? <b> ×{plugin.weight}</b> : null}
                      </span>
                    ))}
                  </dd>
                </div>
              ))}
          </dl>
        </Panel>
      ))}
      {value && (
        <>
          {failures.length > 0 && (
            <Panel title="Plugins that failed">
              <ul class="plain">
                {failures.map(([where, number]) => (
                  <li key={where} class="bad-text">
                    {where}: {grouped(number)}
                  </li>
                ))}
              </ul>
            </Panel>
          )}
          <Panel title="Time that plugins take">
            {value.times.length ? (
              <Times times={value.times} />
            ) : (
              <p class="soft">Nothing is timed here yet: one attempt in ten is.</p>
            )}
          </Panel>
          <Panel title="Measured load">
            {value.telemetry.length ? (
              <table class="table">
                <thead>
                  <tr>
                    <th>Series</th>
                    <th>Source</th>
                    <th class="number">Nodes</th>
                    <th class="number">Oldest</th>
                    <th>Problem</th>
                  </tr>
                </thead>
                <tbody>
                  {value.telemetry.map((each) => (
                    <tr key={each.query + each.address}>
                      <td>
                        <code>{each.query}</code>
                      </td>
                      <td>
                        {each.source} <span class="soft">{each.address}</span>
                      </td>
                      <td class="number">{each.nodes}</td>
                      <td class="number">{each.oldestSeconds === null ? "–" : span(each.oldestSeconds)}</td>
                      <td class={each.problem ? "bad-text" : ""}>{each.problem ?? "none"}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            ) : (
              <p class="soft">No plugin of the configuration follows measured load.</p>
            )}
          </Panel>
          <Panel title="Feature gates">
            <p>
              {value.featureGates.length
                ? value.featureGates.map((gate) => (
                    <span class="chip plain" key={gate}>
                      {gate}
                    </span>
                  ))
                : "None is on."}
            </p>
          </Panel>
          <Panel title="As a KubeSchedulerConfiguration">
            <details>
              <summary>All of it, without secrets</summary>
              <pre class="json" tabIndex={0}>
                {JSON.stringify(value.configuration, null, 2)}
              </pre>
            </details>
          </Panel>
        </>
      )}
    </>
  );
}

function Times({ times }: { times: PluginTime[] }) {
  const slowest = [...times].sort((a, b) => b.meanSeconds * b.calls - a.meanSeconds * a.calls);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Time that plugins take">
      <table class="table">
        <thead>
          <tr>
            <th>Plugin</th>
            <th>Step</th>
            <th class="number">Calls timed</th>
            <th class="number">Mean</th>
            <th class="number">p50 at most</th>
            <th class="number">p99 at most</th>
          </tr>
        </thead>
        <tbody>
          {slowest.map((each) => (
            <tr key={each.plugin + each.step}>
              <td>{each.plugin}</td>
              <td>{each.step}</td>
              <td class="number">{grouped(each.calls)}</td>
              <td class="number">{duration(each.meanSeconds)}</td>
              <td class="number">{duration(each.p50Seconds)}</td>
              <td class="number">{duration(each.p99Seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
