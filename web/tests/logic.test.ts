// The logic of the page that needs no browser.

import { describe, expect, it } from "vitest";
import type { NodeAnswer, Snapshot, Tick } from "../src/api";
import { events } from "../src/client";
import { amount, amountInWords, bytes, duration, percent, quantity, span, words } from "../src/format";
import { fittingCell, grouped, layout, neighbour, nodeAt } from "../src/map/layout";

import { sorted } from "../src/parts/table";
import { change, options, wishes } from "../src/questions";
import { link, parse, podLink } from "../src/routing";
import { rejections, steps } from "../src/scores";

describe("numbers for people", () => {
  it("writes amounts as Kubernetes does", () => {
    expect([amount("cpu", 1500), amount("cpu", 2000), amount("memory", 6 * 2 ** 30), amount("pods", 1100)]).toEqual([
      "1.5",
      "2",
      "6Gi",
      "1,100",
    ]);
    expect([amount("cpu", 43_330), amount("cpu", 1_234_000)]).toEqual(["43.33", "1,234"]);
    expect([amountInWords("cpu", 1000), amountInWords("cpu", 250)]).toEqual(["1 core", "0.25 cores"]);
    expect([words("newlyBlocked"), words("only-podium")]).toEqual(["Newly blocked", "Only podium"]);
    expect([bytes(1536), percent(0.255), span(59), span(3700), duration(0.00012)]).toEqual([
      "1.5Ki",
      "26 %",
      "59s",
      "61m",
      "120 µs",
    ]);
  });
  it("reads quantities", () => {
    expect([quantity("100m"), quantity("1.5Gi"), quantity(4), quantity("2k"), quantity("odd!")]).toEqual([
      0.1,
      1.5 * 2 ** 30,
      4,
      2000,
      0,
    ]);
  });
});

describe("addresses", () => {
  it("lead back to what they were made of, whatever the name", () => {
    for (const name of ["web", "<img src=x>", "a/b?c#d", "\u202Etxt", "🙂", "100%"]) {
      expect(parse(link("nodes", [name])).rest).toEqual([name]);
      expect(parse(podLink(`shop/${name.replace("/", "")}`)).rest).toEqual(["shop", name.replace("/", "")]);
    }
    const asked = parse(link("map", [], { at: "2026-11-17T09:30:00Z", group: "" })).query;
    expect([...asked]).toEqual([["at", "2026-11-17T09:30:00Z"]]);
  });
});

describe("tables", () => {
  it("are in the order that the address names, or as they came", () => {
    const columns = [
      { title: "Pod", cell: () => "", by: (name: string) => name },
      { title: "Size", cell: () => "", by: (name: string) => name.length },
      { title: "Why", cell: () => "" },
    ];
    const rows = ["web-10", "web-9", "a"];
    expect(sorted(rows, columns, "Pod")).toEqual(["a", "web-9", "web-10"]);
    expect(sorted(rows, columns, "-Size")).toEqual(["web-10", "web-9", "a"]);
    for (const order of ["", "Why", "none"]) expect(sorted(rows, columns, order)).toEqual(rows);
  });
});

describe("server-sent events", () => {
  it("are the same however the stream is cut", () => {
    const text = 'event: tick\ndata: {"number":1}\n\nevent: problem\ndata: {"error":"a: b"}\n\n';
    for (let cut = 0; cut <= text.length; cut += 1) {
      const first = events(text.slice(0, cut));
      const second = events(first.rest + text.slice(cut));
      const found = [...first.found, ...second.found];
      expect(found).toEqual([
        { event: "tick", data: '{"number":1}' },
        { event: "problem", data: '{"error":"a: b"}' },
      ]);
      expect(second.rest).toBe("");
    }
  });
});

describe("scores", () => {
  const node = (name: string, scores: Record<string, number>): NodeAnswer => ({
    name,
    feasible: true,
    scores,
    total: Object.values(scores).reduce((sum, each) => sum + each, 0),
  });
  it("sum up to the margin", () => {
    const [winner, other] = [
      node("a", { Fit: 70, Spread: 200, Idle: 0 }),
      node("b", { Fit: 90, Spread: 150, Idle: 0 }),
    ];
    const rows = steps(winner, other);
    expect(rows.map((row) => row.plugin)).toEqual(["Spread", "Fit"]);
    expect(rows.at(-1)?.ahead).toBe((winner.total ?? 0) - (other.total ?? 0));
  });
  it("group the nodes that refuse", () => {
    const refused = (name: string, plugin: string): NodeAnswer => ({
      name,
      feasible: false,
      plugin,
      reasons: ["full"],
    });
    const rows = rejections([refused("a", "Fit"), refused("b", "Fit"), refused("c", "Taint"), node("d", {})]);
    expect(rows.map((row) => [row.plugin, row.nodes])).toEqual([
      ["Fit", ["a", "b"]],
      ["Taint", ["c"]],
    ]);
  });
});

describe("the map", () => {
  const known = (count: number): Snapshot =>
    ({
      names: Array.from({ length: count }, (_, number) => `node-${number}`),
      resources: [
        {
          name: "cpu",
          allocatable: Array.from({ length: count }, () => 100),
          requested: Array.from({ length: count }, (_, number) => number % 100),
        },
      ],
      labels: [{ key: "zone", values: ["b", "a"], of: Array.from({ length: count }, (_, number) => (number % 3) - 1) }],
    }) as unknown as Snapshot;
  it("has every node once, in a place of its own", () => {
    for (const count of [0, 1, 2, 7, 300, 20_000]) {
      const cluster = known(count);
      const groups = grouped(cluster, "zone", "name");
      const cell = fittingCell(groups, 1000, 600, 160);
      const plan = layout(groups, count, 1000, cell);
      const places = new Set<string>();
      for (let place = 0; place < count; place += 1) {
        places.add(`${plan.x[place]} ${plan.y[place]}`);
        expect(nodeAt(plan, (plan.x[place] ?? 0) + 0.5, (plan.y[place] ?? 0) + 0.5)).toBe(place);
      }
      expect(places.size).toBe(count);
    }
  });
  it("is walked through with arrows, and back", () => {
    const plan = layout(grouped(known(50), "", "name"), 50, 100, 10);
    expect(neighbour(plan, 0, "ArrowRight")).toBe(1);
    expect(neighbour(plan, 0, "ArrowDown")).toBe(10);
    expect(neighbour(plan, 10, "ArrowUp")).toBe(0);
    expect(neighbour(plan, 49, "ArrowDown")).toBe(49);
    expect(neighbour(plan, -1, "ArrowDown")).toBe(0);
  });
  it("sorts node-10 after node-9, and by use", () => {
    expect(grouped(known(12), "", "name")[0]?.nodes).toEqual([...Array(12).keys()]);
    expect(grouped(known(5), "", "use")[0]?.nodes).toEqual([4, 3, 2, 1, 0]);
  });
});

describe("ticks", () => {
  it("change the nodes that they name", async () => {
    const { apply } = await import("../src/cluster");
    const snapshot = {
      number: 1,
      pods: [1, 2],
      flags: [0, 0],
      resources: [{ requested: [10, 20] }],
    } as unknown as Snapshot;
    apply(snapshot, { number: 2, rows: [1], pods: [3], flags: [1], requested: [[25]] } as unknown as Tick);
    expect(snapshot).toMatchObject({ number: 2, pods: [1, 3], flags: [0, 1], resources: [{ requested: [10, 25] }] });
  });
});

describe("what-if questions", () => {
  it("are the same in the address, for the API and as a command", () => {
    const asked = wishes(
      new URLSearchParams("drain=worker-1&add-nodes=2=like:worker-1&at=now&taint=a*:k=v:NoSchedule"),
    );
    expect(asked.map(change)).toEqual([
      { change: "drain", nodes: "worker-1" },
      { change: "addNodes", count: 2, like: "worker-1" },
      { change: "taint", nodes: "a*", key: "k", value: "v", effect: "NoSchedule" },
    ]);
    expect(options(asked, "", true)).toBe(
      "--drain worker-1 --add-nodes 2=like:worker-1 --taint 'a*:k=v:NoSchedule' --preempt",
    );
    expect(() => change({ option: "scale", text: "web" })).toThrow("NAMESPACE/KIND/NAME");
  });
});
