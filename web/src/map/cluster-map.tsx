// The map: a canvas with all nodes, moved and zoomed with mouse or keys, and what is under the pointer in words.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Explanation, Snapshot } from "../api";
import { revision, snapshot } from "../cluster";
import { amount, grouped, percent, share } from "../format";
import { go, nodeLink } from "../routing";
import { theme } from "../theme";
import { colours } from "./colours";
import { fittingCell, grouped as inGroups, layout, neighbour, nodeAt, type Order } from "./layout";
import { type Bar, type Inks, paint, type View } from "./painting";

export const ZONE = "topology.kubernetes.io/zone";
const LARGEST = 220;
/** The largest card while nothing is zoomed; the height of a small map, and what stands around a large one. */
const CARD = 160;
const SMALL = 320;
const AROUND = 300;

/** A resource, pods or a measured series as what is drawn of each node; undefined: there is none of that name. */
export function barOf(known: Snapshot, name: string): Bar | undefined {
  const measured = known.measured.find((each) => `measured:${each.query}` === name);
  if (measured) {
    const most = Math.max(1e-9, ...measured.values.map((value) => value ?? 0));
    return {
      values: Float32Array.from(measured.values, (value) => (value === null ? Number.NaN : value / most)),
      text: (place) => brief(measured.values[place] ?? null),
    };
  }
  const resource = known.resources.find((each) => each.name === name);
  const [parts, wholes] =
    name === "pods" ? [known.pods, known.allowedPods] : [resource?.requested ?? [], resource?.allocatable];
  if (!wholes) return undefined;
  const values = Float32Array.from(wholes, (whole, place) => (whole > 0 ? (parts[place] ?? 0) / whole : Number.NaN));
  return { values, text: (place) => ((wholes[place] ?? 0) > 0 ? percent(values[place] ?? 0) : "none") };
}

/** A measured value; what it counts is up to its query. */
export function brief(value: number | null): string {
  return value === null ? "–" : grouped(Number(value.toPrecision(3)));
}

/** How much each node likes a pod; NaN and the plugin where it refuses. */
function scoresOf(known: Snapshot, explanation: Explanation): Bar {
  const answers = new Map(explanation.nodes.map((node) => [node.name, node]));
  const totals = known.names.map((name) => {
    const answer = answers.get(name);
    return answer?.feasible ? (answer.total ?? 0) : Number.NaN;
  });
  const numbers = totals.filter((total) => !Number.isNaN(total));
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  return {
    values: Float32Array.from(totals, (total) =>
      most > least ? 0.15 + (0.85 * (total - least)) / (most - least) : total / total,
    ),
    text: (place) => {
      const answer = answers.get(known.names[place] ?? "");
      return answer?.feasible ? `score ${answer.total ?? "–"}` : (answer?.plugin ?? "");
    },
  };
}

interface MapProps {
  small?: boolean;
  group?: string;
  order?: Order;
  bars?: string[];
  explanation?: Explanation | undefined;
  selected?: Set<string>;
  onSelect?: (names: string[]) => void;
}

export function ClusterMap(props: MapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const focus = useSignal(-1);
  const pointed = useSignal<{ x: number; y: number } | null>(null);
  const known = snapshot.value;
  const view = useRef<View>({ cell: 10, left: 0, top: 0, width: 0, height: 0, ratio: 1 });
  const base = useRef(10);
  const dirty = useRef<() => void>(() => undefined);
  const bars = props.bars ?? ["cpu", "memory", "pods"];
  const order = props.order ?? "name";
  const group = props.group ?? "";
  const groups = useMemo(() => (known ? inGroups(known, group, order) : []), [known, group, order]);
  const plan = useRef(layout([], 0, 100, 10));
  const width = useSignal(0);

  useEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box) return undefined;
    const observer = new ResizeObserver(() => {
      width.value = box.clientWidth;
    });
    observer.observe(box);
    return () => observer.disconnect();
  }, []);

  // Everything anew where the nodes, their order or the room for them changed.
  useEffect(() => {
    const box = canvas.current;
    if (!known || !width.value || !box) return;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const most = props.small ? SMALL : Math.max(SMALL, innerHeight - AROUND);
    base.current = fittingCell(groups, width.value, most, props.small ? 40 : CARD);
    plan.current = layout(groups, known.names.length, width.value, base.current);
    const height = Math.min(most, Math.ceil(plan.current.height * base.current));
    view.current = { cell: base.current, left: 0, top: 0, width: width.value, height, ratio };
    box.style.height = `${height}px`;
    box.width = Math.round(width.value * ratio);
    box.height = Math.round(height * ratio);
    dirty.current();
  }, [groups, width.value]);

  useEffect(() => {
    const context = canvas.current?.getContext("2d", { alpha: false });
    if (!context || !known || !width.value) return undefined;
    const palette = colours(theme.value === "dark");
    const inks = inksOf();
    const drawn = props.explanation
      ? [scoresOf(known, props.explanation)]
      : bars.flatMap((bar) => barOf(known, bar) ?? []);
    const selected = new Set(known.names.flatMap((name, place) => (props.selected?.has(name) ? [place] : [])));
    let frame = 0;
    dirty.current = () => {
      if (frame) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        const shown = { known, plan: plan.current, bars: drawn, focus: focus.peek(), selected };
        paint(context, view.current, shown, palette, inks);
      });
    };
    dirty.current();
    return () => cancelAnimationFrame(frame);
  }, [known, revision.value, theme.value, bars.join(), props.explanation, groups, width.value, props.selected]);

  useEffect(() => {
    dirty.current();
  }, [focus.value]);

  const zoom = (factor: number, x = view.current.width / 2, y = view.current.height / 2) => {
    const now = view.current;
    const cell = Math.max(base.current, Math.min(LARGEST, now.cell * factor));
    const real = cell / now.cell;
    now.left = (now.left + x) * real - x;
    now.top = (now.top + y) * real - y;
    now.cell = cell;
    bound();
    dirty.current();
  };
  const bound = () => {
    const now = view.current;
    const wide = Math.max(...plan.current.groups.map((each) => each.left + each.columns)) * now.cell;
    const high = plan.current.height * now.cell;
    now.left = Math.max(0, Math.min(now.left, Math.max(0, wide - now.width)));
    now.top = Math.max(0, Math.min(now.top, Math.max(0, high - now.height)));
  };
  const pan = (x: number, y: number) => {
    view.current.left += x;
    view.current.top += y;
    bound();
    dirty.current();
  };
  const placeAt = (event: MouseEvent): number => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return -1;
    const { cell, left, top } = view.current;
    return nodeAt(plan.current, (event.clientX - box.left + left) / cell, (event.clientY - box.top + top) / cell);
  };
  const reveal = (place: number) => {
    const now = view.current;
    const [x, y] = [(plan.current.x[place] ?? 0) * now.cell, (plan.current.y[place] ?? 0) * now.cell];
    if (x < now.left) now.left = x;
    if (x + now.cell > now.left + now.width) now.left = x + now.cell - now.width;
    if (y < now.top + 20) now.top = y - 20;
    if (y + now.cell > now.top + now.height) now.top = y + now.cell - now.height;
    bound();
  };
  const open = (place: number) => {
    const name = known?.names[place];
    if (name !== undefined) go(nodeLink(name));
  };

  const drag = useRef<{ x: number; y: number; moved: boolean; brush: boolean; chosen: Set<string> } | null>(null);
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End") {
      focus.value = neighbour(plan.current, focus.value, event.key);
      pointed.value = null;
      reveal(focus.value);
    } else if (event.key === "Enter") open(focus.value);
    else if (event.key === "+" || event.key === "=") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "0") zoom(0);
    else if (event.key === " " && props.onSelect && known) props.onSelect([known.names[focus.value] ?? ""]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const place = focus.value;
  return (
    <div class={props.small ? "map small" : "map"}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`Map of ${known?.names.length ?? 0} nodes. Arrow keys move, Enter opens a node.`}
        onKeyDown={onKey}
        onWheel={(event) => {
          if (props.small && !event.ctrlKey) return;
          event.preventDefault();
          const box = event.currentTarget.getBoundingClientRect();
          zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
        }}
        onPointerDown={(event) => {
          const brush = event.shiftKey && Boolean(props.onSelect);
          drag.current = { x: event.clientX, y: event.clientY, moved: false, brush, chosen: new Set() };
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          const from = drag.current;
          const under = placeAt(event);
          if (from?.brush) {
            from.moved = true;
            const name = known?.names[under];
            if (name && !from.chosen.has(name)) {
              from.chosen.add(name);
              props.onSelect?.([name]);
            }
          } else if (from) {
            if (Math.abs(event.clientX - from.x) + Math.abs(event.clientY - from.y) > 4) from.moved = true;
            if (from.moved) {
              pan(from.x - event.clientX, from.y - event.clientY);
              from.x = event.clientX;
              from.y = event.clientY;
            }
          } else {
            focus.value = under;
            const box = event.currentTarget.getBoundingClientRect();
            pointed.value = { x: event.clientX - box.left, y: event.clientY - box.top };
          }
        }}
        onPointerUp={(event) => {
          if (drag.current && !drag.current.moved) {
            if (drag.current.brush) props.onSelect?.([known?.names[placeAt(event)] ?? ""]);
            else open(placeAt(event));
          }
          drag.current = null;
        }}
        onPointerLeave={() => {
          pointed.value = null;
        }}
      />
      {known && place >= 0 && known.names[place] !== undefined && (
        <Tooltip known={known} place={place} at={pointed.value} width={width.value} explanation={props.explanation} />
      )}
    </div>
  );
}

function inksOf(): Inks {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: of("--ink"),
    soft: of("--soft"),
    line: of("--line"),
    box: of("--box"),
    focus: of("--c2"),
    bad: of("--bad"),
    page: of("--page"),
  };
}

function Tooltip(props: {
  known: Snapshot;
  place: number;
  at: { x: number; y: number } | null;
  width: number;
  explanation?: Explanation | undefined;
}) {
  void revision.value;
  const { known, place, at } = props;
  const name = known.names[place] ?? "";
  const flags = known.flags[place] ?? 0;
  const states = [flags & 1 ? "cordoned" : "", flags & 2 ? "not ready" : "", flags & 4 ? "tainted" : ""].filter(
    Boolean,
  );
  const answer = props.explanation?.nodes.find((node) => node.name === name);
  const style = at ? { left: `${Math.max(4, Math.min(at.x + 14, props.width - 250))}px`, top: `${at.y + 14}px` } : {};
  return (
    <div class={at ? "tooltip" : "tooltip docked"} style={style} role="status">
      <b>
        <bdi>{name}</bdi>
      </b>
      {states.length > 0 && <span class="soft"> {states.join(", ")}</span>}
      {answer && (
        <div>
          {answer.feasible
            ? `takes it, total ${answer.total ?? "–"}`
            : `${answer.plugin}: ${answer.reasons?.join(", ")}`}
        </div>
      )}
      {known.resources
        .filter((resource) => (resource.allocatable[place] ?? 0) > 0)
        .map((resource) => {
          const [part, whole] = [resource.requested[place] ?? 0, resource.allocatable[place] ?? 0];
          return (
            <div key={resource.name} class="tooltip-row">
              <span>{resource.name}</span>
              <span>
                {amount(resource.name, part)} of {amount(resource.name, whole)} · {percent(share(part, whole))}
              </span>
            </div>
          );
        })}
      <div class="tooltip-row">
        <span>pods</span>
        <span>
          {known.pods[place]} of {known.allowedPods[place]}
        </span>
      </div>
      {known.measured.map((each) => (
        <div key={each.query} class="tooltip-row">
          <span>measured {each.query}</span>
          <span>{brief(each.values[place] ?? null)}</span>
        </div>
      ))}
    </div>
  );
}
