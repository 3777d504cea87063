// docs/telemetry.md, the dashboard and /metrics say the same: every family has its row, every row its family, and no query
// names a metric that does not exist.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, expect, it } from "vitest"
import { settings } from "#config/Settings.ts"
import { startNode, type TestNode } from "../support/nodes/TestNode.ts"
import { type FamilyText, parseExposition } from "../support/process/PrometheusGrammar.ts"

const doc = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../docs/${name}`, import.meta.url)), "utf8")

let node: TestNode
let families: ReadonlyArray<FamilyText>
beforeAll(async () => {
  node = await startNode()
  await (await node.fetch("/health")).text()
  families = parseExposition(await (await node.fetch("/metrics")).text())
})
afterAll(() => node.stop())

/** Names and kinds of the rows of the table. */
const rows = () =>
  doc("telemetry.md")
    .split("\n")
    .filter((line) => line.startsWith("| `edgewise_"))
    .flatMap((line) => {
      const [, names = "", kind = "", labels = ""] = line.split("|").map((cell) => cell.trim())
      const labelNames = [...labels.matchAll(/`([a-z]+)`/g)].map(([, name]) => name!)
      return [...names.matchAll(/`(edgewise_[a-z_]+)`/g)].map(([, name]) => ({
        name: name!,
        kind,
        labelNames,
      }))
    })

it("every family has a row of its kind, and every row a family", () => {
  const documented = rows().map(({ kind, name }) => `${name} ${kind}`)
  expect(documented.toSorted()).toEqual(families.map(({ name, type }) => `${name} ${type}`).toSorted())
})

it("series have the labels of their row and no others", () => {
  const labels = new Map(rows().map(({ labelNames, name }) => [name, labelNames.toSorted()]))
  for (const { name, series } of families) {
    for (const one of series) {
      const own = Object.keys(one.labels).filter((label) => label !== "le")
      expect([name, own.toSorted()]).toEqual([name, labels.get(name)])
    }
  }
})

interface Dashboard {
  readonly panels: ReadonlyArray<{
    readonly title: string
    readonly targets: ReadonlyArray<{ readonly expr: string }>
  }>
}

it("the dashboard's queries name metrics that exist, and together all of them", () => {
  const { panels } = JSON.parse(doc("grafana-dashboard.json")) as Dashboard
  const series = new Map(
    families.flatMap(({ name, type }) =>
      (type === "histogram" ? ["_bucket", "_sum", "_count"] : [""]).map(
        (suffix) => [name + suffix, name] as const,
      ),
    ),
  )
  const shown = new Set<string>()
  for (const { targets, title } of panels) {
    for (const { expr } of targets) {
      const names = [...expr.matchAll(/edgewise_[a-z_]+/g)].map(([name]) => name)
      expect([title, names.length > 0]).toEqual([title, true])
      for (const name of names) {
        expect([...series.keys()]).toContain(name)
        shown.add(series.get(name)!)
      }
    }
  }
  expect([...shown].toSorted()).toEqual(
    families
      .map(({ name }) => name)
      .filter((name) => name !== "edgewise_info")
      .toSorted(),
  )
})

it("names the settings as they are", async () => {
  const text = doc("telemetry.md")
  for (const { variable } of [settings.accessLog, settings.log, settings.logLevel])
    expect(text).toContain(variable)
  for (const [, variable = ""] of text.matchAll(/`(OTEL_[A-Z_]+)`/g)) {
    const template = variable.replace(/TRACES|LOGS/, () => "$" + "{signal}")
    const known = sources.includes(variable) || sources.includes(template)
    expect([variable, known]).toEqual([variable, true])
  }
})

const sources = readFileSync(
  fileURLToPath(new URL("../../src/telemetry/OtlpSettings.ts", import.meta.url)),
  "utf8",
)
