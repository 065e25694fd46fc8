// Draws a course over time with uPlot, in the colours of the theme.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { theme } from "../theme";

function timeOfDay(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}

export interface Course {
  label: string;
  values: number[];
  /** The number of its colour in the palette. */
  colour: number;
}

export function Sparkline(props: { times: number[]; courses: Course[]; height?: number; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const height = props.height ?? 120;
  const names = props.courses.map((course) => course.label).join();
  const data = [props.times, ...props.courses.map((course) => course.values)] as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;

  useEffect(() => {
    const box = place.current;
    if (!box) return undefined;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    plot.current = new uPlot(
      {
        width: box.clientWidth,
        height,
        cursor: { y: false, points: { show: false } },
        legend: { show: props.courses.length > 1, live: false },
        scales: { y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [
          { ...axis, font: "11px system-ui", size: 28, space: 70, values: (_plot, times) => times.map(timeOfDay) },
          { ...axis, font: "11px system-ui", size: 44 },
        ],
        series: [
          {},
          ...props.courses.map((course) => ({
            label: course.label,
            stroke: colour(`--c${course.colour}`),
            width: 1.5,
            points: { show: false },
          })),
        ],
      },
      latest.current,
      box,
    );
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: box.clientWidth, height }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [theme.value, names, height]);

  useEffect(() => {
    plot.current?.setData(data);
  });
  return <div class="sparkline" ref={place} role="img" aria-label={props.label} />;
}
