// The last lines of a run: how many tests were skipped, why, and what is required to run them (Needs.ts).
import type { Reporter, TestCase, TestModule, TestSuite, Vitest } from "vitest/node"

const reasonOf = (task: TestCase | TestSuite): string =>
  task.meta().missing ?? (task.parent.type === "suite" ? reasonOf(task.parent) : "no reason given")

export default class SkippedTests implements Reporter {
  #filtered = false

  onInit(vitest: Vitest): void {
    // With a pattern of names most tests are skipped on request.
    this.#filtered = vitest.config.testNamePattern !== undefined
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>): void {
    if (this.#filtered) return
    const counts = new Map<string, number>()
    for (const module of modules)
      for (const test of module.children.allTests("skipped")) {
        const reason = reasonOf(test)
        counts.set(reason, (counts.get(reason) ?? 0) + 1)
      }
    for (const [reason, count] of counts) console.log(`${count} tests skipped: ${reason}`)
  }
}
