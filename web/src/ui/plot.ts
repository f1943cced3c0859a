import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { alone, axisTime, type Series, topOf, wholeSteps } from "./chart";

export interface PlotOptions {
  host: HTMLElement;
  height: number;
  /** The beginnings of the steps, in seconds. */
  steps: readonly number[];
  stepSeconds: number;
  series: readonly Series[];
  bars: boolean;
  /** The least maximum of the scale. */
  least: number;
  threshold: number | undefined;
  say: (value: number) => string;
  /** Whether times are in UTC. */
  utc: boolean;
  /** Whether the system forces its colours. */
  forced: boolean;
  onPoint: (step: number | undefined) => void;
}

/** The present value of a colour: a token depends on the theme, and on the system if that forces colours. */
function colourOf(host: HTMLElement, colour: string): string {
  const probe = host.ownerDocument.createElement("span");
  probe.style.color = colour;
  host.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Draws a chart into its host, with the present colours. The caller destroys it. */
export function plot(options: PlotOptions): uPlot {
  const { host, height, steps, stepSeconds, series, bars, least, threshold, say, utc, forced, onPoint } = options;
  const line = colourOf(host, forced ? "GrayText" : "var(--line)");
  const text = colourOf(host, "var(--text-3)");
  const danger = colourOf(host, "var(--danger)");
  const font = `11px ${getComputedStyle(host).fontFamily}`;
  const top = topOf(series, least, threshold);
  const axis = {
    stroke: text,
    font, // A system colour is as strong as the data.
    grid: { stroke: line, width: 1, ...(forced ? { dash: [1, 5] } : {}) },
    ticks: { stroke: line, width: 1, size: 4 },
  };
  return new uPlot(
    {
      width: Math.max(1, host.clientWidth),
      height,
      padding: [8, 20, 0, 0],
      tzDate: (seconds) => (utc ? uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") : new Date(seconds * 1000)),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: !bars } },
      scales: {
        x: { time: true, range: (_, from, to) => [from, to + (bars ? stepSeconds : 0)] },
        y: { range: () => [0, top] },
      },
      axes: [
        { ...axis, space: 64, size: 28, values: (_, at, __, ___, apart) => at.map((value) => axisTime(value, apart)) },
        { ...axis, space: 26, size: 58, incrs: wholeSteps, values: (_, at) => at.map((value) => say(value)) },
      ],
      series: [
        {},
        ...series.map(({ name, hue, values }, at) => {
          const colour = colourOf(host, `var(${hue})`);
          return {
            label: name,
            stroke: colour,
            width: bars ? 0 : 1.5,
            // If all lines have the same colour, the second one is dotted.
            ...(forced && at > 0 ? { dash: [2, 4] } : {}),
            // A value between two gaps has no line.
            points: bars ? { show: false } : { show: true, size: 5, fill: colour, filter: () => [...alone(values)] },
            ...(bars && uPlot.paths.bars ? { fill: colour, paths: uPlot.paths.bars({ size: [0.85], align: 1 }) } : {}),
          };
        }),
      ],
      hooks: {
        setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)],
        draw: [
          (drawn) => {
            if (threshold === undefined || threshold > top) return;
            const { ctx, bbox } = drawn;
            const y = drawn.valToPos(threshold, "y", true);
            ctx.save();
            ctx.strokeStyle = danger;
            ctx.lineWidth = devicePixelRatio;
            ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
            ctx.beginPath();
            ctx.moveTo(bbox.left, y);
            ctx.lineTo(bbox.left + bbox.width, y);
            ctx.stroke();
            ctx.restore();
          },
        ],
      },
    },
    [[...steps], ...series.map(({ values }) => [...values])] as uPlot.AlignedData,
    host,
  );
}
