// Writes numbers, amounts, spans of time and names for people, and reads quantities of Kubernetes.

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** An amount as the scheduler counts it: CPU in thousandths, memory in bytes. */
export function amount(resource: string, value: number): string {
  if (resource === "cpu") return grouped(Math.round(value) / 1000);
  if (isBinary(resource)) return bytes(value);
  return grouped(value);
}

/** The same in a line of text, where the unit of CPU is a word: 2.5 cores. */
export function amountInWords(resource: string, value: number): string {
  return resource === "cpu"
    ? `${amount(resource, value)} ${value === 1000 ? "core" : "cores"}`
    : amount(resource, value);
}

function isBinary(resource: string): boolean {
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

export function percent(value: number, digits = 0): string {
  return `${(value * 100).toFixed(digits)} %`;
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

/** The name of an outcome as people write it: "newlyBlocked" is "Newly blocked". */
export function words(name: string): string {
  const spaced = name
    .replace(/-/g, " ")
    .replace(/([a-z])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`);
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** A plugin's name in words that can break: "Node Resources Fit". */
export function spaced(name: string): string {
  return name.replace(/([a-z0-9])([A-Z])/g, "$1 $2");
}

/** A label's key without its domain, which rarely tells two of them apart. */
export function shortKey(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

/** A quantity of Kubernetes as a number. */
export function quantity(value: unknown): number {
  const text = String(value ?? 0);
  const found = /^([+-]?[\d.]+(?:e[+-]?\d+)?)([a-zA-Z]*)$/i.exec(text);
  if (!found) return 0;
  const units: Record<string, number> = {
    n: 1e-9,
    u: 1e-6,
    m: 1e-3,
    k: 1e3,
    M: 1e6,
    G: 1e9,
    T: 1e12,
    P: 1e15,
    E: 1e18,
    Ki: 2 ** 10,
    Mi: 2 ** 20,
    Gi: 2 ** 30,
    Ti: 2 ** 40,
    Pi: 2 ** 50,
    Ei: 2 ** 60,
  };
  return Number(found[1]) * (units[found[2] ?? ""] ?? 1);
}
