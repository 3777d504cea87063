// Tokens a second of replies that have to follow a response format, beside replies that may be anything, alternately in one
// process of the engine.

import { Effect } from "effect"
import type { GenerateRequest } from "#engines/protocol/Engine.ts"
import { atLeast, figureOf, type Goal, ofEach, type Part, ratioTo } from "#harness/report/Figure.ts"
import { type ChildFailed, startChild } from "../../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../../support/Rounds.ts"
import type { ConstrainedCommands } from "./constrainedMain.ts"
import type { SizedStage } from "./Stage.ts"

export interface ConstrainedPlan extends RoundsPlan {
  readonly streams: ReadonlyArray<number>
  readonly windowMs: number
}

const record = {
  type: "object",
  properties: {
    customer_identifier: { type: "integer" },
    shipping_address_country: { enum: ["Italy", "France", "Spain"] },
    payment_method_preference: { enum: ["card", "invoice"] },
    newsletter_subscription_active: { type: "boolean" },
    account_balance_in_cents: { type: "integer" },
    preferred_contact_language: { enum: ["english", "german"] },
  },
  additionalProperties: false,
} as const

const schemaOf = (schema: Extract<GenerateRequest["format"], { kind: "schema" }>["schema"]) =>
  ({ kind: "schema", schema, strict: true }) as const

/** Each reply is longer than the bench allows, so none ends early. */
const formats: ReadonlyArray<
  readonly [name: string, format: Exclude<GenerateRequest["format"], undefined>, goal: Goal | undefined]
> = [
  ["a long text", schemaOf({ type: "string", minLength: 4_000 }), atLeast(0.9)],
  [
    "a list of words and numbers",
    schemaOf({
      type: "array",
      minItems: 400,
      items: {
        type: "array",
        prefixItems: [{ type: "string", minLength: 20 }, { type: "number" }],
        minItems: 2,
        maxItems: 2,
      },
    }),
    atLeast(0.9),
  ],
  [
    "a list of numbers: nearly every draw is refused",
    schemaOf({ type: "array", minItems: 2_000, items: { type: "integer" } }),
    undefined,
  ],
  [
    "records with long keys",
    schemaOf({
      type: "array",
      minItems: 100,
      items: { ...record, required: Object.keys(record.properties) },
    }),
    atLeast(1.3),
  ],
]

export const constrained = (
  { threads, weights }: SizedStage,
  plan: ConstrainedPlan,
): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const engine = yield* startChild<ConstrainedCommands>({
      name: "constrained replies",
      entry: new URL("./constrainedMain.ts", import.meta.url),
    })
    yield* engine.ask("load", { weights, threads })
    const figures = []
    for (const streams of plan.streams) {
      const load = { streams, windowMs: plan.windowMs }
      // Compiles each grammar.
      for (const [, format] of formats) yield* engine.ask("rate", { ...load, windowMs: 1, format })
      const rounds = yield* repeatRounds(plan, () =>
        Effect.gen(function* () {
          const free = yield* engine.ask("rate", { ...load, format: undefined })
          const rates = []
          for (const [, format] of formats) rates.push(yield* engine.ask("rate", { ...load, format }))
          return { free, rates }
        }),
      )
      const named = streams === 1 ? "1 stream" : `${streams} streams`
      const free = ofEach(rounds, `${named}, any text`, "tokens/s", (round) => round.free)
      figures.push(figureOf(free))
      for (const [at, [name, , goal]] of formats.entries()) {
        const held = ofEach(rounds, `${named}, ${name}`, "tokens/s", ({ rates }) => rates[at] ?? 0)
        figures.push(figureOf(held), ratioTo(held, free, goal))
      }
    }
    yield* engine.ask("close")
    return {
      title: `Replies under a response format, ${threads} threads`,
      method: `tokens in ${plan.windowMs} ms, from when every stream has its first token`,
      figures,
    }
  }).pipe(Effect.scoped)
