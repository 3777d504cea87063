// The output of real processes and threads that the node keeps, and that printing never blocks them.
import { describe, expect, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import { EngineOutput } from "#actors/engine/EngineOutput.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { fakeWorld } from "../../support/nodes/FakeNode.ts"
import { collectLines } from "../../support/process/LogLines.ts"

const texts = (output: EngineOutput) => output.lines().map(({ stream, text }) => `${stream} ${text}`)

describe("EngineOutput", () => {
  it("keeps 200 lines, numbered", () => {
    const output = new EngineOutput()
    for (let n = 1; n <= 1_000; n++) output.note("info", `line ${n}`)
    expect(output.lines()).toHaveLength(200)
    expect(output.lines()[0]).toMatchObject({ seq: 801, text: "line 801", stream: "node", level: "info" })
    expect(output.lines(998).map(({ seq }) => seq)).toEqual([999, 1_000])
  })

  it("keeps 100 lines a second of a flood and forwards no others", () => {
    let handed = 0
    const output = new EngineOutput(() => void handed++)
    const { take } = output.open()
    const chunk = Buffer.from("error: again\n".repeat(150))
    let nowMs = 10_000
    const clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs)
    try {
      for (let n = 0; n < 1_000; n++) {
        take("stderr", chunk)
        nowMs += 5
      }
    } finally {
      clock.mockRestore()
    }
    // Five seconds.
    expect(handed).toBe(500)
  })

  it("removes control characters from lines and gives the last error", () => {
    const output = new EngineOutput()
    const { end, take } = output.open()
    take("stdout", Buffer.from("\u001b[1mchatter\u001b[0m\r\nhalf"))
    take("stderr", Buffer.from("error: bro"))
    take("stderr", Buffer.from("ken\n"))
    expect(texts(output)).toEqual(["stdout chatter", "stderr error: broken"])
    end()
    expect(texts(output).at(-1)).toBe("stdout half")
    expect(output.lastError(3_600_000)).toBe("error: broken")
  })
})

const printing = (id: string, isolation: string, print: object) => ({
  id,
  options: { print },
  runtime: { isolation },
})

const untilTrue = (check: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (check() ? Effect.void : Effect.andThen(Effect.sleep(10), untilTrue(check))))

for (const isolation of ["process", "thread"])
  it.live(`lines of an engine ${isolation} are in its ring and in the log, and a reload keeps them`, () => {
    const { lines, layer } = collectLines()
    const print = { stdout: "hello from the engine\n", stderr: "warning: something is odd\n" }
    return Effect.gen(function* () {
      const registry = yield* ModelRegistry
      const model = registry.model("a")!
      for (let load = 0; load < 2; load++) {
        yield* model.load(false)
        yield* untilTrue(
          () => texts(model.view().output).filter((text) => text.startsWith("std")).length === 2 * (load + 1),
        )
        yield* model.unload
      }
      const told = texts(model.view().output)
      expect(told).toContain("stdout hello from the engine")
      expect(told).toContain("stderr warning: something is odd")
      const logged = lines.filter(({ message }) => message === "engine output")
      expect(logged.map(({ annotations, level }) => [level, annotations.model, annotations.reason])).toEqual(
        expect.arrayContaining([
          ["DEBUG", "a", "hello from the engine"],
          ["WARN", "a", "warning: something is odd"],
        ]),
      )
    }).pipe(Effect.provide(fakeWorld({ models: [printing("a", isolation, print)], log: layer })))
  })

it.live(
  "an engine that prints 64 MB while it loads is not delayed, and a bounded number of its lines is logged",
  () => {
    const { lines, layer } = collectLines()
    const print = { stderr: `error: ${"x".repeat(1_000)}\n`, times: 64_000 }
    return Effect.gen(function* () {
      const model = (yield* ModelRegistry).model("a")!
      const beganMs = performance.now()
      const facts = yield* model.load(false)
      const seconds = (performance.now() - beganMs) / 1_000
      expect(facts.slots).toBeGreaterThan(0)
      expect(model.view().output.lines().length).toBeLessThanOrEqual(200)
      // 10 a second, for as long as it prints; of 64,000.
      expect(lines.length).toBeLessThan(400 + 20 * seconds)
    }).pipe(Effect.provide(fakeWorld({ models: [printing("a", "process", print)], log: layer })))
  },
)
