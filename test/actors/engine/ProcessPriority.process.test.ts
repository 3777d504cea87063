// Engines start with a lower priority and get the normal one back when they have loaded, if the system allows it: the check of
// that permission, and a real process.
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { getPriority } from "node:os"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import * as EngineProcess from "#actors/engine/EngineProcess.ts"
import { mayRaise, type Privileges } from "#actors/engine/ProcessPriority.ts"
import { needs } from "../../support/groups/Needs.ts"

const line = (soft: string) =>
  `Limit                     Soft Limit           Hard Limit           Units\nMax nice priority         ${soft}                    ${soft}                    \nMax realtime priority     0                    0                    \n`
const status = (capabilities: string) => `Name:\tnode\nCapPrm:\t0000000000000000\nCapEff:\t${capabilities}\n`
const everybody = "         0          0 4294967295\n"
const privileges = (more: Partial<Privileges>): Privileges => ({
  status: status("0000000000000000"),
  limits: line("0"),
  uidMap: everybody,
  priority: 0,
  ...more,
})

describe("a priority that was lowered may be raised", () => {
  it("by the capability, outside of user namespaces", () => {
    expect(mayRaise(privileges({ status: status("000001ffffffffff") }))).toBe(true)
    expect(mayRaise(privileges({ status: status("0000000000800000") }))).toBe(true)
    // The capabilities that Docker gives to root.
    expect(mayRaise(privileges({ status: status("00000000a80425fb") }))).toBe(false)
    const namespace = "         0       1000          1\n"
    expect(mayRaise(privileges({ status: status("000001ffffffffff"), uidMap: namespace }))).toBe(false)
  })

  it("up to the limit of the process", () => {
    expect(mayRaise(privileges({}))).toBe(false)
    expect(mayRaise(privileges({ limits: line("20") }))).toBe(true)
    expect(mayRaise(privileges({ limits: line("40") }))).toBe(true)
    expect(mayRaise(privileges({ limits: line("unlimited") }))).toBe(true)
    expect(mayRaise(privileges({ limits: line("19") }))).toBe(false)
    expect(mayRaise(privileges({ limits: line("15"), priority: 5 }))).toBe(true)
  })

  it("nowhere without /proc", () => {
    expect(mayRaise({ status: "", limits: "", uidMap: "", priority: 0 })).toBe(false)
  })
})

/** The priority of each of a process's threads, but for those that end meanwhile. */
const prioritiesOf = (pid: number): ReadonlyArray<number> =>
  readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    try {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "latin1")
      // proc(5): the 19th field; the second is a name in parentheses.
      return [Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16])]
    } catch {
      return []
    }
  })

/** Whether a process that has lowered its priority can raise it again here: one tries. */
const canRaise = (): boolean => {
  const tries = `const { getPriority, setPriority } = require("node:os")
    const own = getPriority()
    setPriority(Math.min(19, own + 5))
    setPriority(own)`
  return spawnSync(process.execPath, ["-e", tries], { stdio: "ignore" }).status === 0
}

describe("an engine process", needs("linux"), () => {
  it.live("has the normal priority in all its threads once it has loaded", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const loaded = yield* Deferred.make<void>()
        const engine = yield* EngineProcess.start<"text">({
          isolation: "process",
          environment: {},
          onMessage: ({ type }) => {
            if (type === "loaded") Deferred.doneUnsafe(loaded, Effect.void)
          },
        })
        const own = getPriority()
        const allowed = canRaise()
        const proc = (name: string) => readFileSync(`/proc/self/${name}`, "latin1")
        expect(
          mayRaise({
            status: proc("status"),
            limits: proc("limits"),
            uidMap: proc("uid_map"),
            priority: own,
          }),
        ).toBe(allowed)
        expect(prioritiesOf(engine.pid!)[0]).toBe(allowed ? Math.min(19, own + 5) : own)
        engine.send({
          type: "load",
          spec: { modelId: "fake", adapter: "fake", files: {}, options: { slots: 1 }, threads: 1 },
        })
        yield* Deferred.await(loaded)
        const after = prioritiesOf(engine.pid!)
        expect(after.length).toBeGreaterThan(2)
        expect(new Set(after)).toEqual(new Set([own]))
      }),
    ),
  )
})
