// Reads quantities of Kubernetes.

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
