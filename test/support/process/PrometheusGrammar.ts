// A strict reader of Prometheus' text format 0.0.4. Every line is one of five kinds, the lines of a family follow its HELP and TYPE,
// no series occurs twice, and the counts of a histogram are consistent.

interface Series {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface FamilyText {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly series: ReadonlyArray<Series>
}

const numberPattern = /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]Inf|NaN)$/
const linePattern = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/
const labelPattern = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y

const labelsOf = (text: string): Record<string, string> => {
  const labels: Record<string, string> = {}
  labelPattern.lastIndex = 0
  while (labelPattern.lastIndex < text.length) {
    const match = labelPattern.exec(text)
    if (match === null) throw new Error(`not labels: ${text}`)
    if (match[1]! in labels) throw new Error(`a label twice: ${text}`)
    labels[match[1]!] = match[2]!.replace(/\\(.)/g, (_, one: string) => (one === "n" ? "\n" : one))
  }
  return labels
}

const valueOf = (text: string): number => {
  if (!numberPattern.test(text)) throw new Error(`not a number: ${text}`)
  return Number(text.replace("Inf", "Infinity"))
}

/** Whether a line of this name belongs to the family. */
const belongs = (line: string, { name, type }: { readonly name: string; readonly type: string }): boolean =>
  type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`].includes(line) : line === name

const checkHistogram = ({ name, series }: FamilyText): void => {
  const groups = new Map<string, Array<Series>>()
  for (const one of series) {
    const { le: _, ...rest } = one.labels
    const key = JSON.stringify(rest)
    groups.set(key, [...(groups.get(key) ?? []), one])
  }
  for (const [key, group] of groups) {
    const buckets = group.filter((one) => one.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) => valueOf(labels.le ?? "none"))
    const counts = buckets.map(({ value }) => value)
    const rising = (values: ReadonlyArray<number>, strictly: boolean) =>
      values.every((value, at) => at === 0 || value - values[at - 1]! >= (strictly ? Number.MIN_VALUE : 0))
    const count = group.find((one) => one.name === `${name}_count`)?.value
    const hasSum = group.some((one) => one.name === `${name}_sum`)
    if (!rising(bounds, true) || bounds.at(-1) !== Number.POSITIVE_INFINITY)
      throw new Error(`bounds of ${name}${key}`)
    if (!rising(counts, false) || counts.at(-1) !== count || !hasSum)
      throw new Error(`counts of ${name}${key}`)
  }
}

/** The families of a scrape. Throws an error with the first wrong line. */
export const parseExposition = (text: string): ReadonlyArray<FamilyText> => {
  if (!text.endsWith("\n")) throw new Error("the last line has no end")
  const families: Array<FamilyText & { readonly series: Array<Series> }> = []
  const seen = new Set<string>()
  let help: readonly [name: string, text: string] | undefined
  for (const line of text.slice(0, -1).split("\n")) {
    const [, word, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
    if (word === "HELP") {
      if (families.some((one) => one.name === name)) throw new Error(`a family twice: ${name}`)
      help = [name, rest]
    } else if (word === "TYPE") {
      if (help?.[0] !== name || !/^(counter|gauge|histogram|summary|untyped)$/.test(rest))
        throw new Error(line)
      families.push({ name, type: rest, help: help[1], series: [] })
    } else {
      const match = linePattern.exec(line)
      const family = families.at(-1)
      if (match === null || family === undefined || !belongs(match[1]!, family))
        throw new Error(`stray: ${line}`)
      const labels = labelsOf(match[2] ?? "")
      const key = match[1] + JSON.stringify(Object.entries(labels).sort())
      if (seen.has(key)) throw new Error(`a series twice: ${line}`)
      seen.add(key)
      family.series.push({ name: match[1]!, labels, value: valueOf(match[3]!) })
    }
  }
  for (const family of families) if (family.type === "histogram") checkHistogram(family)
  return families
}
