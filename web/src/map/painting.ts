// Paints the map. Far away every node is a few pixels in a buffer; near by it is a card with bars and its name.

import type { Snapshot } from "../api";
import { type Colours, step } from "./colours";
import type { Layout } from "./layout";

const CORDONED = 1;
const NOT_READY = 2;
const TAINTED = 4;
/** From this size of a cell on, nodes are drawn with bars; from the next on, with names. */
const BARS = 16;
const NAMES = 64;
/** From this width of a bar on, a number stands above it, in a line of this height. */
const TEXT = 28;
const LINE = 14;

export interface View {
  /** Pixels to a cell. */
  cell: number;
  /** What is at the left and top edge, in pixels of the map. */
  left: number;
  top: number;
  width: number;
  height: number;
  /** Pixels of the screen to one of the page. */
  ratio: number;
}

/** What is drawn of each node. */
export interface Bar {
  /** Between 0 and 1; NaN: refused or unknown. */
  values: Float32Array;
  /** What a card says of it. */
  text(place: number): string;
}

export interface Shown {
  known: Snapshot;
  plan: Layout;
  bars: Bar[];
  focus: number;
  selected: Set<number>;
}

export interface Inks {
  page: string;
  ink: string;
  soft: string;
  line: string;
  box: string;
  focus: string;
  bad: string;
}

export function paint(context: CanvasRenderingContext2D, view: View, shown: Shown, colours: Colours, inks: Inks): void {
  context.setTransform(1, 0, 0, 1, 0, 0);
  if (view.cell < BARS) paintPixels(context, view, shown, colours);
  else {
    context.fillStyle = inks.page;
    context.fillRect(0, 0, view.width * view.ratio, view.height * view.ratio);
    context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    paintCards(context, view, shown, colours, inks);
  }
  context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  paintTitles(context, view, shown, inks);
  paintMarks(context, view, shown, inks);
}

let buffer: ImageData | null = null;

function paintPixels(context: CanvasRenderingContext2D, view: View, shown: Shown, colours: Colours): void {
  const width = Math.round(view.width * view.ratio);
  const height = Math.round(view.height * view.ratio);
  if (buffer?.width !== width || buffer.height !== height) buffer = new ImageData(width, height);
  const pixels = new Uint32Array(buffer.data.buffer);
  pixels.fill(colours.page);
  const { plan, bars, known } = shown;
  const cell = view.cell * view.ratio;
  const gap = cell >= 5 ? 1 : 0;
  const [left, top] = [view.left * view.ratio, view.top * view.ratio];
  const size = Math.max(1, Math.round(cell) - gap);
  const wide = Math.max(1, Math.floor(size / bars.length));
  for (let place = 0; place < known.names.length; place += 1) {
    const x0 = Math.round((plan.x[place] ?? 0) * cell - left);
    const y0 = Math.round((plan.y[place] ?? 0) * cell - top);
    if (x0 + size <= 0 || y0 + size <= 0 || x0 >= width || y0 >= height) continue;
    const hatched = (known.flags[place] ?? 0) & (CORDONED | NOT_READY);
    const last = Math.min(height, y0 + size);
    for (let bar = 0; bar < bars.length; bar += 1) {
      const value = bars[bar]?.values[place] ?? Number.NaN;
      const colour = Number.isNaN(value) ? colours.refused : (colours.scale[step(value)] ?? 0);
      const from = Math.max(0, x0 + bar * wide);
      const to = Math.min(width, bar === bars.length - 1 ? x0 + size : x0 + (bar + 1) * wide);
      for (let y = Math.max(0, y0); y < last; y += 1) {
        if (hatched && (y - y0) % 2) continue;
        pixels.fill(colour, y * width + from, y * width + Math.max(from, to));
      }
    }
  }
  context.putImageData(buffer, 0, 0);
}

function paintCards(context: CanvasRenderingContext2D, view: View, shown: Shown, colours: Colours, inks: Inks): void {
  const { plan, bars, known } = shown;
  const size = view.cell - (view.cell > 30 ? 4 : 2);
  const named = view.cell >= NAMES;
  const head = named ? 18 : 0;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (let place = 0; place < known.names.length; place += 1) {
    const x = (plan.x[place] ?? 0) * view.cell - view.left;
    const y = (plan.y[place] ?? 0) * view.cell - view.top;
    if (x + size < 0 || y + size < 0 || x > view.width || y > view.height) continue;
    context.fillStyle = inks.box;
    context.fillRect(x, y, size, size);
    const room = size - head - 4;
    const wide = (size - 4) / bars.length;
    bars.forEach(({ values, text }, bar) => {
      const value = values[place] ?? Number.NaN;
      const left = x + 2 + bar * wide;
      const refused = Number.isNaN(value);
      const most = wide >= TEXT ? room - LINE : room;
      const high = refused ? most : Math.max(1, Math.min(1, value) * most);
      const from = y + head + 2 + room - high;
      context.fillStyle = refused ? inks.line : (colours.css[step(0.25 + 0.75 * value)] ?? "");
      context.fillRect(left, from, wide - 1, high);
      if (wide >= TEXT) {
        context.fillStyle = inks.soft;
        context.fillText(fitting(context, text(place), wide - 4), left + 2, from - LINE / 2);
      }
    });
    if (named) {
      context.fillStyle = inks.ink;
      context.fillText(fitting(context, known.names[place] ?? "", size - 8), x + 4, y + 10);
    }
    paintState(context, known.flags[place] ?? 0, x, y, size, inks);
  }
}

/** States are shapes: stripes for cordoned, a cross for not ready, a corner for tainted. */
function paintState(
  context: CanvasRenderingContext2D,
  flags: number,
  x: number,
  y: number,
  size: number,
  inks: Inks,
): void {
  context.lineWidth = 1;
  if (flags & CORDONED) {
    context.save();
    context.beginPath();
    context.rect(x, y, size, size);
    context.clip();
    context.strokeStyle = inks.soft;
    context.beginPath();
    for (let at = -size; at < size; at += 6) {
      context.moveTo(x + at, y + size);
      context.lineTo(x + at + size, y);
    }
    context.stroke();
    context.restore();
  }
  if (flags & NOT_READY) {
    context.strokeStyle = inks.bad;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x + 3, y + 3);
    context.lineTo(x + size - 3, y + size - 3);
    context.moveTo(x + size - 3, y + 3);
    context.lineTo(x + 3, y + size - 3);
    context.stroke();
  }
  if (flags & TAINTED) {
    const side = Math.min(10, size / 3);
    context.fillStyle = inks.soft;
    context.beginPath();
    context.moveTo(x + size - side, y);
    context.lineTo(x + size, y);
    context.lineTo(x + size, y + side);
    context.fill();
  }
}

function paintTitles(context: CanvasRenderingContext2D, view: View, shown: Shown, inks: Inks): void {
  context.font = "600 12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = inks.ink;
  for (const group of shown.plan.groups) {
    if (!group.title) continue;
    const y = group.top * view.cell - view.top - 9;
    if (y < -10 || y > view.height + 10) continue;
    const x = group.left * view.cell - view.left;
    const room = group.columns * view.cell;
    context.fillText(fitting(context, `${group.title}  ${group.nodes.length}`, room), Math.max(2, x), y);
  }
}

function paintMarks(context: CanvasRenderingContext2D, view: View, shown: Shown, inks: Inks): void {
  const size = Math.max(4, view.cell - (view.cell > 30 ? 4 : view.cell >= 5 ? 1 : 0));
  context.strokeStyle = inks.focus;
  const frame = (place: number, width: number) => {
    context.lineWidth = width;
    const x = (shown.plan.x[place] ?? 0) * view.cell - view.left;
    const y = (shown.plan.y[place] ?? 0) * view.cell - view.top;
    context.strokeRect(x - width / 2, y - width / 2, size + width, size + width);
  };
  for (const place of shown.selected) frame(place, 1.5);
  if (shown.focus >= 0) frame(shown.focus, 3);
}

function fitting(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`…${text.slice(-end)}`).width > width) end -= 1;
  return `…${text.slice(-end)}`;
}
