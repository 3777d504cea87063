// Barriers for people with disabilities on a page, found by axe-core.
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Page } from "playwright-core"

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: ReadonlyArray<{ readonly html: string; readonly failureSummary: string }>
}

/** Findings that axe calls serious or critical, one line for each place. */
export const seriousFindings = async (page: Page): Promise<ReadonlyArray<string>> => {
  // As an expression of the debugger, which the page's content security policy does not touch.
  await page.evaluate(`${source};0`)
  const { violations } = (await page.evaluate("axe.run(document)")) as { violations: ReadonlyArray<Finding> }
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ failureSummary, html }) => `${id}: ${html} ${failureSummary.replaceAll(/\s+/g, " ")}`),
    )
}
