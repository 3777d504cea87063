// Families of metrics as Prometheus' text format 0.0.4. Pure; knows no metric.
import type { Histogram } from "#domain/queues/Histogram.ts"

/** Label names and values; values are from fixed lists and the catalog's ids, never chosen by a user or caller. */
type Labels = Readonly<Record<string, string>>

export type Family = {
  /** Without the product's prefix. */
  readonly name: string
  readonly help: string
} & (
  | {
      readonly type: "gauge" | "counter"
      readonly samples: ReadonlyArray<readonly [labels: Labels, value: number]>
    }
  | {
      readonly type: "histogram"
      readonly samples: ReadonlyArray<readonly [labels: Labels, value: Histogram]>
    }
)

export type Samples = ReadonlyArray<readonly [Labels, number]>

export const gauge = (name: string, help: string, samples: Samples): Family => ({
  name,
  help,
  type: "gauge",
  samples,
})
export const counter = (name: string, help: string, samples: Samples): Family => ({
  name,
  help,
  type: "counter",
  samples,
})
/** The one series of a family without labels. */
export const alone = (value: number): Samples => [[{}, value]]

export const contentType = "text/plain; version=0.0.4; charset=utf-8"

/** Prefix of every metric of this product. */
const prefix = "edgewise_"

const escaped = (value: string): string =>
  value.replace(/[\\"\n]/g, (found) => (found === "\n" ? "\\n" : `\\${found}`))

const labelText = (labels: Labels): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(",")

const braced = (labels: string): string => (labels === "" ? "" : `{${labels}}`)

/** Numbers that the format spells unlike JavaScript. */
const numberText = (value: number): string =>
  value === Number.POSITIVE_INFINITY ? "+Inf" : value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value)

const histogramLines = (name: string, labels: string, { bounds, counts, sum }: Histogram): string => {
  const own = labels === "" ? "" : `${labels},`
  let total = 0
  let text = ""
  for (let at = 0; at <= bounds.length; at++) {
    total += counts[at]!
    text += `${name}_bucket{${own}le="${numberText(bounds[at] ?? Number.POSITIVE_INFINITY)}"} ${total}\n`
  }
  return `${text}${name}_sum${braced(labels)} ${numberText(sum)}\n${name}_count${braced(labels)} ${total}\n`
}

const familyText = (family: Family): string => {
  const name = prefix + family.name
  const help = family.help.replace(/[\\\n]/g, (found) => (found === "\n" ? "\\n" : "\\\\"))
  let text = `# HELP ${name} ${help}\n# TYPE ${name} ${family.type}\n`
  if (family.type === "histogram") {
    for (const [labels, value] of family.samples) text += histogramLines(name, labelText(labels), value)
  } else {
    for (const [labels, value] of family.samples)
      text += `${name}${braced(labelText(labels))} ${numberText(value)}\n`
  }
  return text
}

export const render = (families: ReadonlyArray<Family>): string => families.map(familyText).join("")
