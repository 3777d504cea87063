// Hostile schemas without a pause, from several connections: streams of others go on, on the same model and on another one, and
// the gateway's event loop is not held for long. A run without them, in the same test, is the measure.
import { Agent, request } from "node:http"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Target } from "../../bench/support/Connection.ts"
import { startGateway } from "../../bench/support/Gateway.ts"
import { hostileSchemas, schemaForms } from "../support/clients/HostileSchemas.ts"
import { type StreamReader, startStreamReader } from "../support/clients/StreamReader.ts"
import { llamaModel } from "../support/nodes/TestCatalog.ts"
import { eventually } from "../support/nodes/TestNode.ts"
import { stepMs } from "../support/process/StepTime.ts"

const attackers = 4
const seconds = 8
/** How many times slower than in the quiet run. A guess: 2.7 times was measured on two busy cores. */
const mostSlower = 8

const entry = { kind: "text", adapter: "fake", ownedBy: "test", created: 1, files: {}, price: {} }

const bodies = hostileSchemas.flatMap(({ json }) =>
  schemaForms.map(({ body, path }) => ({ path, body: Buffer.from(body("llama", json)) })),
)

/** Sends all bodies again and again until `isOver`; counts the answers by their status. */
const attack = async (
  { key, port }: Target,
  from: number,
  isOver: () => boolean,
  answers: Map<number, number>,
) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let at = from; !isOver(); at++) {
    const { body, path } = bodies[at % bodies.length]!
    const headers = { authorization: `Bearer ${key}`, "content-length": body.length }
    const status = await new Promise<number>((resolve) => {
      const outgoing = request(
        { agent, host: "127.0.0.1", port, path, method: "POST", headers },
        (incoming) => {
          incoming.resume().on("end", () => resolve(incoming.statusCode ?? 0))
        },
      )
      outgoing.on("error", () => resolve(0))
      outgoing.end(body)
    })
    answers.set(status, (answers.get(status) ?? 0) + 1)
  }
  agent.destroy()
}

it.live("streams of others go on, and the event loop is not held", () =>
  Effect.gen(function* () {
    const models = [
      { ...entry, ...llamaModel, runtime: { load: "start" } },
      { ...entry, id: "other", runtime: { load: "start" } },
    ]
    const { child, target } = yield* startGateway({ models })
    const messages = (content: string) => ({ messages: [{ role: "user", content }], stream: true })
    const open = (body: object): Effect.Effect<StreamReader, never, never> =>
      Effect.sync(() => startStreamReader(target.port, target.key, body))
    const reader = (body: object) =>
      Effect.acquireRelease(open(body), (opened) => Effect.promise(() => opened.stop()))
    const same = yield* reader({
      model: "llama",
      ...messages("Tell me."),
      max_tokens: 400,
      min_tokens: 400,
    })
    const script = `fake:${JSON.stringify({ tokens: 1_000, tokenMs: 5 })}`
    const other = yield* reader({ model: "other", ...messages(script), max_tokens: 1_000 })
    const take = Effect.promise(async () => ({ same: await same.take(), other: await other.take() }))
    const watched = Effect.gen(function* () {
      yield* take
      yield* child.ask("watchLoop")
      yield* Effect.sleep(`${seconds} seconds`)
      return { ...(yield* take), loop: yield* child.ask("loopDelay") }
    })
    const answers = new Map<number, number>()
    let isOver = false
    const crowd = () =>
      Promise.all(
        Array.from({ length: attackers }, (_, at) => attack(target, at * 25, () => isOver, answers)),
      )

    // Engines load, and code is compiled.
    for (const each of [same, other])
      yield* Effect.promise(() =>
        eventually(async () => (await each.take()).events > 0, "the engine has loaded"),
      )
    const warm = crowd()
    yield* Effect.sleep(`${seconds / 2} seconds`)
    isOver = true
    yield* Effect.promise(() => warm)

    const quiet = yield* watched
    isOver = false
    const running = crowd()
    const attacked = yield* watched
    isOver = true
    yield* Effect.promise(() => running)

    const step = stepMs()
    console.info(JSON.stringify({ quiet, attacked, step, answers: [...answers] }))
    expect([...answers.keys()]).toEqual([400])
    for (const [before, during] of [
      [quiet.same, attacked.same],
      [quiet.other, attacked.other],
    ] as const) {
      expect(during.failures).toBe(0)
      expect(during.events).toBeGreaterThan(before.events / mostSlower)
      expect(during.median).toBeLessThan(before.median * mostSlower)
      expect(during.p95).toBeLessThan(before.p95 * mostSlower)
    }
    expect(attacked.loop?.longestWork).toBeLessThan(mostSlower * step)
  }).pipe(Effect.scoped),
)
