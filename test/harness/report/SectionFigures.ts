// The figures of a part of a load's section by their names, for tests.
import type { Distribution, Figure } from "#harness/report/Figure.ts"
import type { Section } from "#harness/report/Result.ts"

/** A figure with numbers where the form may have null. */
interface Found {
  readonly readings: number
  readonly median: number
  readonly mean: number
  readonly p95: number
  readonly p99: number
  readonly max: number
  readonly histogram: string
}

const number = (value: number | null | undefined): number => value ?? Number.NaN

const foundOf = ({ distribution, median, readings }: Figure): Found => {
  const part = (name: keyof Pick<Distribution, "mean" | "p95" | "p99">) => number(distribution?.[name].value)
  return {
    readings,
    median: number(median),
    mean: part("mean"),
    p95: part("p95"),
    p99: part("p99"),
    max: number(distribution?.max),
    histogram: distribution?.histogram ?? "",
  }
}

export const figuresIn = (
  section: Section | undefined,
  title: string,
): Readonly<Record<string, Found | undefined>> => {
  const part = section?.parts.find((each) => each.title === title)
  return Object.fromEntries((part?.figures ?? []).map((figure) => [figure.name, foundOf(figure)]))
}
