// Moves through the past that the dashboard remembers: the map, its totals and the list of changes follow.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { TimelineAnswer } from "../api";
import { get } from "../client";
import { snapshot } from "../cluster";
import { bytes, clock, span } from "../format";
import { ask, at } from "../routing";
import { Icon } from "./small";

const EVERY = 5000;
const SPEEDS = [1, 10, 100, 1000];
const FRAME = 200;

export function Scrubber() {
  const line = useSignal<TimelineAnswer | null>(null);
  const speed = useSignal(0);
  useEffect(() => {
    const look = () => {
      if (!document.hidden)
        void get<TimelineAnswer>("timeline")
          .then((found) => (line.value = found))
          .catch(() => undefined);
    };
    const first = setTimeout(look, 1500);
    const timer = setInterval(look, EVERY);
    return () => {
      clearTimeout(first);
      clearInterval(timer);
    };
  }, []);
  useSignalEffect(() => {
    if (!speed.value) return undefined;
    const timer = setInterval(() => {
      const known = line.peek();
      const time = Date.parse(at.peek()) + FRAME * speed.peek();
      if (!known || Number.isNaN(time) || time >= Date.parse(known.ends)) {
        speed.value = 0;
        ask({ at: "" });
      } else ask({ at: new Date(time).toISOString() });
    }, FRAME);
    return () => clearInterval(timer);
  });
  const known = line.value;
  if (!known || snapshot.value?.state.source === "dump") return <footer class="scrubber" hidden />;
  const [begins, ends] = [Date.parse(known.begins), Date.parse(known.ends)];
  const time = at.value ? Date.parse(at.value) : ends;
  const whole = Math.max(1, ends - begins);
  const most = Math.max(1, ...known.points.map((point) => point.waiting));
  const step = (by: number) => {
    const marks = known.marks.map((mark) => Date.parse(mark.time));
    const next = by > 0 ? marks.find((mark) => mark > time + 1) : marks.filter((mark) => mark < time - 1).at(-1);
    if (next !== undefined) ask({ at: new Date(next).toISOString() });
  };
  return (
    <footer class="scrubber">
      <button type="button" class="button icon" onClick={() => step(-1)} aria-label="To the failure before">
        <Icon path="M4 3h2v10H4zM13 3v10L6 8z" />
      </button>
      <button
        type="button"
        class="button icon"
        aria-label={speed.value ? "Pause" : "Play"}
        onClick={() => {
          if (speed.value) speed.value = 0;
          else {
            if (!at.value) ask({ at: known.begins });
            speed.value = 10;
          }
        }}
      >
        <Icon path={speed.value ? "M4 3h3v10H4zM9 3h3v10H9z" : "M4 3v10l9-5z"} />
      </button>
      <button type="button" class="button icon" onClick={() => step(1)} aria-label="To the next failure">
        <Icon path="M10 3h2v10h-2zM3 3v10l7-5z" />
      </button>
      {speed.value > 0 && (
        <select
          aria-label="Speed"
          value={String(speed.value)}
          onChange={(event) => {
            speed.value = Number(event.currentTarget.value);
          }}
        >
          {SPEEDS.map((each) => (
            <option key={each} value={each}>
              ×{each}
            </option>
          ))}
        </select>
      )}
      <div class="scrub-track">
        <svg viewBox="0 0 1000 24" preserveAspectRatio="none" aria-hidden="true">
          <polyline
            points={known.points
              .map((p) => `${((Date.parse(p.time) - begins) / whole) * 1000},${23 - (p.waiting / most) * 20}`)
              .join(" ")}
          />
          {known.marks.map((mark) => (
            <rect key={mark.number} x={((Date.parse(mark.time) - begins) / whole) * 1000} y="0" width="2" height="6" />
          ))}
        </svg>
        <input
          type="range"
          aria-label="Time"
          aria-valuetext={at.value ? clock(at.value) : "now"}
          min={begins}
          max={ends}
          step={1000}
          value={time}
          onInput={(event) => {
            const chosen = Number(event.currentTarget.value);
            ask({ at: chosen >= ends - 1000 ? "" : new Date(chosen).toISOString() });
          }}
        />
      </div>
      <span class="scrub-time">{at.value ? clock(at.value) : "now"}</span>
      <span class="soft scrub-reach" title={`${bytes(known.bytesUsed)} of ${bytes(known.bytesAllowed)} used`}>
        {span(whole / 1000)} remembered
      </span>
    </footer>
  );
}
