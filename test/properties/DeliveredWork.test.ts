// The ledger is the delivered work: thousands of generations with random ends (whole, failed before or after the
// first token, crashed, refused, the client gone, the key revoked), and in the end every micro-dollar that was charged
// belongs to a token that was generated and delivered.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Drain } from "#actors/Drain.ts"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { costOf } from "#domain/models/Money.ts"
import { textUsage } from "#domain/models/Usage.ts"
import { AtCapacity, EngineFailed } from "#domain/wire/Errors.ts"
import type { GenerateRequest } from "#engines/protocol/Text.ts"
import { begin, type Delivery } from "#services/Generation.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { sqliteStoreLayer } from "#store/Store.ts"
import { stubModel } from "../support/engines/StubModel.ts"
import { runs } from "../support/groups/Runs.ts"
import { fakeDeployment } from "../support/nodes/FakeNode.ts"

const { entry } = fakeDeployment()
const outcomes = runs(10_000, 100_000)
/** At a time, as many as a busy node has. */
const together = 200

type Ending = "ends" | "fails" | "full" | "client leaves" | "never starts"

interface Plan {
  readonly ending: Ending
  readonly delivery: Delivery
  readonly promptTokens: number
  /** Tokens generated before it ends in its way. */
  readonly tokens: number
  readonly pauses: boolean
}

/** A generator of plain numbers, the same in every run. */
const random = (() => {
  let state = 20_261_121
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
})()

const endings: ReadonlyArray<Ending> = ["ends", "ends", "fails", "full", "client leaves", "never starts"]
const planOf = (): Plan => ({
  ending: endings[random(endings.length)]!,
  delivery: random(2) === 0 ? "stream" : "whole",
  promptTokens: 1 + random(200),
  tokens: random(60),
  pauses: random(8) === 0,
})

/** What its client received, of which it has read `read` tokens; undefined for nothing that costs. */
const deliveredBy = ({ delivery, ending, promptTokens, tokens }: Plan, read: number) => {
  switch (ending) {
    case "ends":
      return textUsage(promptTokens, tokens)
    case "client leaves":
      return textUsage(promptTokens, read)
    case "fails":
      return delivery === "stream" && tokens > 0 ? textUsage(promptTokens, tokens) : undefined
    case "full":
    case "never starts":
      return undefined
  }
}

const request: GenerateRequest = {
  prompt: { text: "x" },
  maxTokens: 64,
  sampling: { temperature: 0, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 1 },
  stop: [],
}

const flow = { pause: () => {}, resume: () => {} }

/** A model whose engine does what the plan says. */
const scripted = (plan: Plan) => {
  const run: ModelHandle<"text">["run"] = (_, listener) =>
    Effect.gen(function* () {
      if (plan.pauses) yield* Effect.yieldNow
      if (plan.ending === "full") return yield* new AtCapacity({ model: "fake", retryAfterMs: 1 })
      const failed = new EngineFailed({ model: "fake", reason: "crashed", detail: "" })
      if (plan.ending === "never starts") return yield* failed
      listener.started?.({ promptTokens: plan.promptTokens, cachedTokens: 0 }, flow)
      for (let i = 1; i <= plan.tokens; i++) {
        if (plan.pauses && i % 16 === 0) yield* Effect.yieldNow
        listener.take({ text: "x", completionTokens: i })
      }
      if (plan.ending === "fails") return yield* failed
      if (plan.ending === "client leaves") return yield* Effect.never
      return { finishReason: "stop", completionTokens: plan.tokens, promptTokens: plan.promptTokens }
    })
  return stubModel("text", run, { entry })
}

describe("random outcomes", () => {
  it("are charged as they were delivered, to the micro-dollar", async () => {
    const expected = { receipts: 0, microDollars: 0, inputTokens: 0, outputTokens: 0 }
    const result = await Effect.gen(function* () {
      const accounts = yield* Accounts
      const ledger = yield* UsageLedger
      const sql = yield* SqlClient.SqlClient
      const credits = 900_000_000
      yield* accounts.createOrg({ name: "acme", creditsMicroDollars: credits })
      const caller = yield* accounts.authenticate((yield* accounts.createKey({ org: "acme" })).apiKey)

      const one = Effect.gen(function* () {
        const plan = planOf()
        let read = 0
        const exit = yield* Effect.scoped(
          Effect.gen(function* () {
            const generation = yield* begin(caller, scripted(plan), request, plan.delivery)
            generation.read({
              take: ({ completionTokens }) => {
                read = completionTokens
              },
            })
            // Closing the scope is how a client disconnects.
            if (plan.ending === "client leaves") return
            yield* generation.end
          }),
        ).pipe(Effect.exit)
        expect(Exit.isSuccess(exit)).toBe(plan.ending === "ends" || plan.ending === "client leaves")
        const usage = deliveredBy(plan, read)
        if (usage === undefined) return
        expected.receipts++
        expected.microDollars += costOf(entry.price, usage)
        expected.inputTokens += usage.inputTokens
        expected.outputTokens += usage.outputTokens
      })
      yield* Effect.forEach(Array.from({ length: outcomes }), () => one, {
        concurrency: together,
        discard: true,
      })
      yield* ledger.flush
      const [sums] = yield* sql`
        SELECT COUNT(*) AS receipts, SUM(micro_dollars) AS "microDollars", SUM(input_tokens) AS "inputTokens",
               SUM(output_tokens) AS "outputTokens" FROM usage_ledger`
      const left = (yield* accounts.showOrg("acme")).creditsMicroDollars
      expect(left).toBe(credits - expected.microDollars)
      // Nothing is reserved for finished work: all that is left can be reserved.
      yield* Effect.scoped(ledger.reserve(caller, left))
      return sums
    }).pipe(
      Effect.provide(Layer.mergeAll(Drain.layer, sqliteStoreLayer(":memory:"))),
      Effect.scoped,
      Effect.runPromise,
    )
    expect(result).toEqual(expected)
    expect(expected.receipts).toBeGreaterThan(outcomes / 3)
  })
})
