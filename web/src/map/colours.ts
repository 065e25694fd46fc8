// The colours of load: one hue from little to much, so that it can be told by lightness alone.

const LIGHT = ["#e7eef8", "#b9d3f1", "#6ea6e2", "#2a78d6", "#174b8b", "#0a2547"];
const DARK = ["#262b33", "#24436a", "#2c66aa", "#4f9bf0", "#9cc9ff", "#e9f3ff"];
const STEPS = 256;

/** Colours as ImageData has them: bytes red, green, blue, alpha from the lowest. */
export interface Colours {
  scale: Uint32Array;
  css: string[];
  page: number;
  refused: number;
  unknown: number;
}

export function colours(dark: boolean): Colours {
  const stops = (dark ? DARK : LIGHT).map(rgb);
  const scale = new Uint32Array(STEPS + 1);
  const css: string[] = [];
  for (let step = 0; step <= STEPS; step += 1) {
    const place = (step / STEPS) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(place));
    const [a, b] = [stops[low] ?? [0, 0, 0], stops[low + 1] ?? [0, 0, 0]];
    const mixed = a.map((value, channel) => Math.round(value + ((b[channel] ?? 0) - value) * (place - low)));
    scale[step] = packed(mixed);
    css.push(`rgb(${mixed.join()})`);
  }
  return {
    scale,
    css,
    page: packed(rgb(dark ? "#1a1a19" : "#fcfcfb")),
    refused: packed(rgb(dark ? "#55504a" : "#cfc9c2")),
    unknown: packed(rgb(dark ? "#2a2a28" : "#f0efeb")),
  };
}

export function step(value: number): number {
  return Math.max(0, Math.min(STEPS, Math.round(value * STEPS)));
}

function rgb(hex: string): number[] {
  return [1, 3, 5].map((place) => Number.parseInt(hex.slice(place, place + 2), 16));
}

function packed([red = 0, green = 0, blue = 0]: number[]): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
