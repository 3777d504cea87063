// The last lines of a run. First, which tests failed, each in one line: a service that keeps only the end of what a run prints still
// shows them all, also where one of them prints a whole object. Then how many were skipped, why, and what is required to run them (Needs.ts).
import { relative } from "node:path"
import type { Reporter, TestCase, TestModule, TestSuite, Vitest } from "vitest/node"

/** What failed in one of these. */
type Failed = TestCase | TestSuite | TestModule

const reasonOf = (task: TestCase | TestSuite): string =>
  task.meta().missing ?? (task.parent.type === "suite" ? reasonOf(task.parent) : "no reason given")

/** Characters of a line, and lines. */
const mostCharacters = 300
const mostLines = 40

/** A test of a failed hook is not listed beside its hook: it is skipped. */
const failuresOf = (module: TestModule): ReadonlyArray<Failed> =>
  [module, ...module.children.allSuites(), ...module.children.allTests()].filter((task) =>
    task.type === "test" ? task.result().state === "failed" : task.errors().length > 0,
  )

const errorsOf = (task: Failed) => (task.type === "test" ? task.result().errors : task.errors()) ?? []

const lineOf = (task: Failed): string => {
  const [error] = errorsOf(task)
  // What is thrown need not be an Error: Effect.flip throws what succeeded.
  const message = error?.message ?? `thrown: ${Object.keys(error ?? {}).join(", ")}`
  const module = task.type === "module" ? task : task.module
  const name = task.type === "module" ? "" : ` > ${task.fullName}`
  return `failed: ${relative(process.cwd(), module.moduleId)}${name}: ${message.replaceAll(/\s+/g, " ")}`
}

export default class EndOfRun implements Reporter {
  #filtered = false

  onInit(vitest: Vitest): void {
    // With a pattern of names most tests are skipped on request.
    this.#filtered = vitest.config.testNamePattern !== undefined
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>): void {
    const failures = modules.flatMap(failuresOf)
    for (const task of failures.slice(0, mostLines)) console.log(lineOf(task).slice(0, mostCharacters))
    if (failures.length > mostLines) console.log(`${failures.length - mostLines} more failed`)
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
