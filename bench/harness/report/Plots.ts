// Plots as SVG text: lines and dots over two axes, linear or logarithmic. Colours come from the page's style sheet, so that
// they follow its light or dark form. Pure.

export interface Series {
  readonly name: string
  /** Number of the colour in the style sheet, from 1 on. */
  readonly colour: number
  readonly points: ReadonlyArray<readonly [x: number, y: number]>
  readonly form: "line" | "dots" | "line and dots"
  /** Bounds for each point, drawn as bars. */
  readonly bars?: ReadonlyArray<readonly [low: number, high: number]>
}

interface Axis {
  readonly label: string
  readonly log?: boolean
  readonly from?: number
  readonly to?: number
  /** Places and their labels; default: chosen by the range. */
  readonly ticks?: ReadonlyArray<readonly [at: number, label: string]>
}

interface Plot {
  readonly title: string
  readonly x: Axis
  readonly y: Axis
  readonly series: ReadonlyArray<Series>
}

export const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const width = 720
const height = 320
const margin = { left: 64, right: 16, top: 16, bottom: 44 }

const short = (value: number): string => {
  const size = Math.abs(value)
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`
  return String(Number(value.toPrecision(3)))
}

/** About five round numbers in the range. */
const linearTicks = (from: number, to: number): ReadonlyArray<number> => {
  const rough = (to - from) / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough
  const first = Math.ceil(from / step) * step
  return Array.from(
    { length: Math.max(0, Math.floor((to - first) / step + 1e-9) + 1) },
    (_, i) => first + i * step,
  )
}

/** Digits that have a tick in each decade, from few to many. */
const tickDigits = [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]]
const leastTicks = 4

const logTicks = (from: number, to: number): ReadonlyArray<number> => {
  const first = Math.floor(Math.log10(from))
  const last = Math.ceil(Math.log10(to))
  const withDigits = (digits: ReadonlyArray<number>) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i)
      .flatMap((power) => digits.map((digit) => digit * 10 ** power))
      .filter((value) => value >= from * 0.999 && value <= to * 1.001)
  const all = tickDigits.map(withDigits)
  return all.find((ticks) => ticks.length >= leastTicks) ?? linearTicks(from, to)
}

/** Fewer decades than a tenth would be a flat line without ticks. */
const widened = (from: number, to: number, log: boolean): readonly [number, number] => {
  if (log) return to / from < 1.3 ? [from / 1.3, to * 1.3] : [from, to]
  return to > from ? [from, to] : [from - 1, to + 1]
}

/** A logarithmic axis begins above it: below a picosecond nothing was measured. */
const leastOnLog = 1e-9

interface Scale {
  readonly place: (value: number) => number
  readonly ticks: ReadonlyArray<readonly [number, string]>
}

const scaleOf = (axis: Axis, values: ReadonlyArray<number>, low: number, high: number): Scale => {
  const log = axis.log === true
  const finite = values.filter((value) => Number.isFinite(value) && (!log || value > leastOnLog))
  const least = finite.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)
  const most = finite.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)
  const [from, to] =
    finite.length === 0 ? [1, 10] : widened(axis.from ?? least, axis.to ?? most * (log ? 1 : 1.05), log)
  const at = log ? Math.log : (value: number) => value
  const share = (value: number) => (at(Math.max(value, log ? from : value)) - at(from)) / (at(to) - at(from))
  const ticks =
    axis.ticks ?? (log ? logTicks : linearTicks)(from, to).map((value) => [value, short(value)] as const)
  return { place: (value) => low + share(value) * (high - low), ticks }
}

const rounded = (value: number): string => String(Math.round(value * 10) / 10)

const drawSeries = ({ bars, colour, form, points }: Series, x: Scale, y: Scale): string => {
  const placed = points.map(([a, b]) => [rounded(x.place(a)), rounded(y.place(b))] as const)
  const line =
    form === "dots"
      ? ""
      : `<polyline class="line c${colour}" points="${placed.map((at) => at.join(",")).join(" ")}"/>`
  const dots =
    form === "line"
      ? ""
      : placed.map(([a, b]) => `<circle class="dot c${colour}" cx="${a}" cy="${b}" r="2.5"/>`).join("")
  const intervals = (bars ?? [])
    .map(([low, high], at) => {
      const place = placed[at]?.[0]
      if (place === undefined || !Number.isFinite(low) || !Number.isFinite(high)) return ""
      return `<line class="line c${colour}" x1="${place}" x2="${place}" y1="${rounded(y.place(low))}" y2="${rounded(y.place(high))}"/>`
    })
    .join("")
  return line + intervals + dots
}

const legend = (series: ReadonlyArray<Series>): string =>
  series.length < 2
    ? ""
    : `<p class="legend">${series.map(({ colour, name }) => `<span><i class="c${colour}"></i>${escaped(name)}</span>`).join(" ")}</p>`

/** A figure element with its title as caption and as the name that screen readers say. */
export const drawPlot = ({ series, title, x, y }: Plot): string => {
  const all = series.flatMap(({ points }) => points)
  const bars = series.flatMap(({ bars = [] }) => bars.flat())
  const right = width - margin.right
  const bottom = height - margin.bottom
  const xScale = scaleOf(
    x,
    all.map(([a]) => a),
    margin.left,
    right,
  )
  const yScale = scaleOf(y, [...all.map(([, b]) => b), ...bars], bottom, margin.top)
  const grid = [
    ...xScale.ticks.map(([value, label]) => {
      const at = rounded(xScale.place(value))
      return `<line class="grid" x1="${at}" x2="${at}" y1="${margin.top}" y2="${bottom}"/><text class="tick" x="${at}" y="${bottom + 18}" text-anchor="middle">${escaped(label)}</text>`
    }),
    ...yScale.ticks.map(([value, label]) => {
      const at = rounded(yScale.place(value))
      return `<line class="grid" x1="${margin.left}" x2="${right}" y1="${at}" y2="${at}"/><text class="tick" x="${margin.left - 8}" y="${Number(at) + 4}" text-anchor="end">${escaped(label)}</text>`
    }),
  ].join("")
  const labels = `<text class="axis" x="${(margin.left + right) / 2}" y="${height - 6}" text-anchor="middle">${escaped(x.label)}</text><text class="axis" transform="translate(14 ${(margin.top + bottom) / 2}) rotate(-90)" text-anchor="middle">${escaped(y.label)}</text>`
  const drawn = series.map((one) => drawSeries(one, xScale, yScale)).join("")
  return `<figure><figcaption>${escaped(title)}</figcaption><svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">${grid}${labels}${drawn}</svg>${legend(series)}</figure>`
}
