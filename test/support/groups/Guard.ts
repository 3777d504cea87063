// Checks each test file against the group in its name (Groups.ts). A test fails if it uses something that the group may not use, or
// if the file does not use what its group is for. vitest runs this before every file. It wraps the methods that start processes, listen
// and load native code, because only what happens shows what a file needs: its imports do not say which of their functions it calls.
// A file also fails if its tests leave something of the process changed for the next file of its worker (ProcessState.ts).
import child from "node:child_process"
import { syncBuiltinESMExports } from "node:module"
import net from "node:net"
import { afterAll, beforeAll, type RunnerTestCase, type RunnerTestSuite } from "vitest"
import type { Group } from "./Groups.ts"
import { changesSince, processState } from "./ProcessState.ts"
import { uses, verdict } from "./Uses.ts"

type Call = (this: unknown, ...args: Array<unknown>) => unknown

/** Calls `before` with the arguments of every call of a method, and `after` with them once it has returned. */
const observe = (
  owner: object,
  name: string,
  before: (args: ReadonlyArray<unknown>) => void,
  after: (args: ReadonlyArray<unknown>) => void = () => {},
): void => {
  const original = Reflect.get(owner, name) as Call
  const observed: Call = function (...args) {
    before(args)
    const returned = original.apply(this, args)
    after(args)
    return returned
  }
  // promisify reads its own variant of `exec` and `execFile` from a property.
  Object.defineProperties(observed, Object.getOwnPropertyDescriptors(original))
  Reflect.set(owner, name, observed)
}

/** Beginning of the file name of native code → the group whose tests may load it. */
const nativeCode: ReadonlyArray<readonly [string, Group]> = [
  ["llama-addon", "weights"],
  ["onnxruntime_binding", "weights"],
  ["uws", "process"],
]

const nativeCodeOf = (path: unknown) => {
  const file = String(path).split("/").at(-1) ?? ""
  return nativeCode.find(([start]) => file.startsWith(start))
}

/** Native code is loaded once in a worker, and what it exports is used by many files: each read of an export is a use. */
const observeExports = (module: { exports: object }, use: () => void): void => {
  module.exports = new Proxy(module.exports, {
    get: (exports, name) => {
      use()
      return Reflect.get(exports, name) as unknown
    },
  })
}

const observeAll = (): void => {
  for (const name of ["spawn", "spawnSync", "fork", "exec", "execSync", "execFile", "execFileSync"])
    observe(child, name, ([program]) => uses("process", `the program ${String(program).split("/").at(-1)}`))
  observe(net.Server.prototype, "listen", () => uses("process", "a listening server"))
  const useOf = (path: unknown) => () => {
    const [name, group] = nativeCodeOf(path) ?? []
    if (name !== undefined && group !== undefined) uses(group, `the native code ${name}`)
  }
  observe(
    process,
    "dlopen",
    ([, path]) => useOf(path)(),
    ([module, path]) => {
      if (nativeCodeOf(path) !== undefined) observeExports(module as { exports: object }, useOf(path))
    },
  )
  syncBuiltinESMExports()
}

/**
 * Files share workers, so the methods are wrapped only once. What only loads native code, and what reads its exports once (uWebSockets.js),
 * is seen in the first file of a worker: such a file, and what starts a listener, says so itself (`uses`).
 */
const observed = Symbol.for("edgewise tests are observed")
if (Reflect.get(globalThis, observed) === undefined) {
  Reflect.set(globalThis, observed, true)
  observeAll()
}

const allRan = (tasks: ReadonlyArray<RunnerTestCase | RunnerTestSuite>): boolean =>
  tasks.every((task) =>
    task.type === "suite"
      ? task.mode !== "skip" && allRan(task.tasks as never)
      : task.result?.state === "pass",
  )

// biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of wanted fixtures from the pattern
afterAll(({}, file) => {
  const problem = verdict(allRan(file.tasks as never))
  if (problem !== undefined) throw new Error(problem)
})

// These hooks are registered before the file's own: the first begins before them, the other ends after them.
let before: ReadonlyMap<string, unknown> = new Map()
beforeAll(() => {
  before = processState()
})
/** The real one, whatever the tests have put in its place. */
const { setImmediate } = globalThis
afterAll(async () => {
  // A closed server counts as one that listens until the event loop has closed it, which it does after what is immediate.
  for (let turns = 0; turns < 2; turns++) await new Promise<void>((resolve) => void setImmediate(resolve))
  const left = changesSince(before)
  if (left.length > 0)
    throw new Error(`the tests of this file leave changed in the process: ${left.join(", ")}`)
})
