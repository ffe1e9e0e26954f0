// Charts over time, drawn by uPlot: outcomes stacked, durations as lines, restarts as marks. Charts of one page share their cursor.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "preact/hooks";
import { theme } from "../state/settings.ts";
import { exact } from "../state/clock.ts";
import type { Tone } from "./status.tsx";

export type Series = {
  readonly label: string;
  readonly tone: Tone | "accent" | "accent-2";
  readonly values: readonly (number | null)[];
};

export type Mark = { readonly at: number; readonly label: string };

export type ChartProps = {
  readonly label: string;
  /** Epoch milliseconds, one for each value. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly marks?: readonly Mark[];
  readonly stacked?: boolean;
  /** Durations: from a millisecond to hours on one scale, so that one long run does not flatten all others. */
  readonly isLatency?: boolean;
  readonly height?: number;
  readonly format?: (value: number) => string;
  /** A stretch of time was chosen by dragging. */
  readonly onRange?: (from: number, until: number) => void;
};

const sync = uPlot.sync("page");

export function Chart(props: ChartProps) {
  const { label, times, series, stacked = false, height = 168, format = String } = props;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const names = series.map((each) => each.label).join("|");
  const data = dataOf(props);

  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const make = (): void => {
      chart.current?.destroy();
      chart.current = new uPlot(
        optionsOf(latest, element.clientWidth, height, stacked),
        dataOf(latest.current),
        element,
      );
    };
    make();
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) chart.current?.setSize({ width: element.clientWidth, height });
    });
    observer.observe(element);
    // What is drawn holds the colours of its theme.
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", make);
    const stopTheme = theme.subscribe(() => queueMicrotask(make));
    return () => {
      stopTheme();
      dark.removeEventListener("change", make);
      observer.disconnect();
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [names, stacked, height]);

  useEffect(() => chart.current?.setData(data), [data]);

  const last = times.length - 1;
  return (
    <figure class="chart">
      <figcaption class="row wrap">
        <h3 class="sr">{label}</h3>
        {series.map((each) => (
          <span key={each.label} class="legend">
            <i class={`swatch ${each.tone}`} aria-hidden="true" />
            {each.label}
          </span>
        ))}
      </figcaption>
      <div ref={box} class="chart-box" style={{ height: `${height}px` }} aria-hidden="true" />
      <p class="sr">
        {times.length === 0
          ? "There are no values."
          : `From ${exact(times[0] ?? 0)} to ${exact(times[last] ?? 0)}. ${series
              .map(
                ({ label: name, values }) =>
                  `${name}: ${format(values.reduce<number>((sum, each) => Math.max(sum, each ?? 0), 0))} at most`,
              )
              .join("; ")}.`}
      </p>
    </figure>
  );
}

function dataOf({ times, series, stacked = false, isLatency = false }: ChartProps): uPlot.AlignedData {
  const seconds = times.map((at) => at / 1000);
  if (isLatency) return [seconds, ...series.map(({ values }) => values.map((value) => value && Math.max(1, value)))];
  if (!stacked) return [seconds, ...series.map(({ values }) => [...values])];
  const sums = times.map(() => 0);
  const layers = series.map(({ values }) =>
    values.map((value, index) => (sums[index] = (sums[index] ?? 0) + (value ?? 0))),
  );
  // The highest is drawn first, and the lower ones over it.
  return [seconds, ...layers.toReversed()];
}

function optionsOf(
  latest: { readonly current: ChartProps },
  width: number,
  height: number,
  stacked: boolean,
): uPlot.Options {
  const { series, format = String, isLatency = false } = latest.current;
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => resolve(style.getPropertyValue(`--${name}`));
  const drawn = stacked ? series.toReversed() : series;
  const axis = { stroke: colour("ink-3"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
  const font = `11px ${style.getPropertyValue("--sans")}`;
  return {
    width,
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: sync.key }, y: false, points: { size: 6 }, drag: { x: true, y: false, setScale: false } },
    scales: {
      y: isLatency
        ? { distr: 3, range: (_, __, most) => [1, Math.max(10, (most ?? 1) * 1.6)] }
        : { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] },
    },
    axes: [
      { ...axis, font, space: 76, size: 26, values: (_, values) => timeLabels(values) },
      {
        ...axis,
        font,
        size: 52,
        ...(isLatency ? { splits: (_, __, least, most) => splitsOf(least, most), filter: (_, splits) => splits } : {}),
        values: (_, values) => values.map((value) => format(value)),
      },
    ],
    series: [
      {},
      ...drawn.map(({ label, tone }) => ({
        label,
        stroke: colour(varOf(tone)),
        width: stacked ? 1 : 1.6,
        ...(stacked ? { fill: colour(varOf(tone)) } : {}),
        points: { show: false },
        ...(stacked && uPlot.paths.bars !== undefined ? { paths: uPlot.paths.bars({ size: [0.86, 24] }) } : {}),
      })),
    ],
    plugins: [tooltip(latest)],
    hooks: {
      draw: [(chart) => drawMarks(chart, latest.current.marks ?? [], colour("lost"))],
      setSelect: [
        (chart) => {
          if (chart.select.width < 6) return;
          const from = chart.posToVal(chart.select.left, "x") * 1000;
          const until = chart.posToVal(chart.select.left + chart.select.width, "x") * 1000;
          chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          latest.current.onRange?.(Math.round(from), Math.round(until));
        },
      ],
    },
  };
}

const roundMs = [1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 360_000_000];

/** At most five lines, at durations that people count in. */
function splitsOf(least: number, most: number): number[] {
  const within = roundMs.filter((ms) => ms >= least && ms <= most);
  const step = Math.ceil(within.length / 5);
  return within.filter((_, index) => index % step === 0);
}

/** Hours within a day or two, days beyond. */
function timeLabels(seconds: readonly number[]): string[] {
  const span = (seconds.at(-1) ?? 0) - (seconds[0] ?? 0);
  return seconds.map((second) => {
    const text = exact(second * 1000);
    return span > 2 * 86_400 ? text.slice(5, 10) : text.slice(11, 16);
  });
}

function varOf(tone: Series["tone"]): string {
  return tone === "accent-2" ? "busy" : tone;
}

function drawMarks(chart: uPlot, marks: readonly Mark[], colour: string): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { at } of marks) {
    const x = chart.valToPos(at / 1000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** What the values are where the cursor stands. */
function tooltip(latest: { readonly current: ChartProps }): uPlot.Plugin {
  const element = document.createElement("div");
  element.className = "chart-tip";
  element.hidden = true;
  return {
    hooks: {
      init: (chart) => chart.over.append(element),
      setCursor: (chart) => {
        const { idx, left = -1 } = chart.cursor;
        const { times, series, marks = [], format = String } = latest.current;
        element.hidden = idx === null || idx === undefined || left < 0 || times[idx] === undefined;
        if (element.hidden || idx === null || idx === undefined) return;
        const at = times[idx] ?? 0;
        const stepMs = (times[1] ?? at) - (times[0] ?? at);
        const near = marks.filter((mark) => mark.at >= at && mark.at < at + stepMs);
        element.replaceChildren(
          line(exact(at).slice(5, 16), "chart-tip-time"),
          ...series.map(({ label, values }) =>
            line(`${label}: ${values[idx] === null ? "–" : format(values[idx] ?? 0)}`),
          ),
          ...near.map(({ label }) => line(label, "chart-tip-mark")),
        );
        element.style.left = `${left > chart.over.clientWidth / 2 ? left - element.offsetWidth - 12 : left + 12}px`;
      },
    },
  };
}

function line(text: string, name = ""): HTMLElement {
  const element = document.createElement("div");
  element.className = name;
  element.textContent = text.slice(0, 120);
  return element;
}

/** A canvas knows no `light-dark()`: the browser says what it is now. */
function resolve(value: string): string {
  const probe = document.createElement("i");
  probe.style.color = value;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
