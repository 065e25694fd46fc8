// Writes numbers, amounts, spans of time and names for people.

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** An amount as the scheduler counts it: CPU in thousandths, memory in bytes. */
export function amount(resource: string, value: number): string {
  if (resource === "cpu") return value % 1000 === 0 || value >= 10_000 ? cores(value) : `${grouped(value)}m`;
  if (isBinary(resource)) return bytes(value);
  return grouped(value);
}

/** The same in a line of text, where the unit of CPU is a word: 2.5 cores. */
export function amountInWords(resource: string, value: number): string {
  if (resource !== "cpu") return amount(resource, value);
  const cores = Math.round(value / 10) / 100;
  return `${cores} ${cores === 1 ? "core" : "cores"}`;
}

function cores(value: number): string {
  return grouped(Math.round(value / 10) / 100);
}

export function isBinary(resource: string): boolean {
  return resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-");
}

export function bytes(value: number): string {
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < BINARY.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size >= 100 || Number.isInteger(size) ? Math.round(size) : size.toFixed(1)}${BINARY[unit]}`;
}

export function grouped(value: number): string {
  return value.toLocaleString("en-US");
}

export function share(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}

export function percent(value: number): string {
  return `${Math.round(value * 100)} %`;
}

/** Seconds as people say them: 4s, 12m, 3h 5m, 2d. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 120) return `${whole}s`;
  if (whole < 7200) return `${Math.floor(whole / 60)}m`;
  if (whole < 172_800) return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86_400)}d`;
}

/** A short duration: 12 µs, 3.4 ms, 1.2 s. */
export function duration(seconds: number | null): string {
  if (seconds === null) return "–";
  if (seconds < 0.001) return `${trimmed(seconds * 1e6)} µs`;
  if (seconds < 1) return `${trimmed(seconds * 1e3)} ms`;
  return `${trimmed(seconds)} s`;
}

function trimmed(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(2).replace(/\.0$/, "");
}

/** The time of day of an RFC 3339 time. */
export function clock(time: string): string {
  return new Date(time).toLocaleTimeString("en-GB");
}

export function secondsBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}

/** "1 pod", "3 pods". */
export function counted(number: number, what: string): string {
  return `${grouped(number)} ${what}${number === 1 ? "" : "s"}`;
}

/** A plugin's name in words that can break: "Node Resources Fit". */
export function spaced(name: string): string {
  return name.replace(/([a-z0-9])([A-Z])/g, "$1 $2");
}

/** A label's key without its domain, which rarely tells two of them apart. */
export function shortKey(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}
