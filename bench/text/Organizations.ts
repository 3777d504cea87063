// How much of the prompts is found evaluated when organizations that share one system prompt ask in turn, each in a new chat, by
// the number of organizations: as each reuses only what it sent itself, and with the prompt declared as shared.

import { Effect, type Scope } from "effect"
import { type Figure, figure, type Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { startGateway } from "../support/Gateway.ts"
import { createKey } from "../support/Keys.ts"
import { chatPath, demoWeights, entry } from "./Models.ts"
import { answered, type Stage } from "./Stage.ts"

const system = `You tell stories. ${"The fox walked along the river and looked for a friend. ".repeat(24)}`

const model = (id: string, slots: number, sharedPrompts: ReadonlyArray<string>) =>
  entry(id, "llama-gguf", {
    files: { weights: { source: demoWeights } },
    options: { contextTokens: 2048, slots, ...(sharedPrompts.length === 0 ? {} : { sharedPrompts }) },
    runtime: { load: "start" },
  })

/** 16 sequences are the default; with 4, eight organizations do not fit. */
const cases = [
  { slots: 16, declared: false },
  { slots: 4, declared: false },
  { slots: 4, declared: true },
]
const organizations = [1, 2, 4, 8]
/** Of each case, in turn. */
const requests = 48

const idOf = (at: number, count: number): string => `demo-${at}-${count}`

const cachedShare = (body: string): number =>
  Number(/"cached_tokens":(\d+)/.exec(body)?.[1]) / Number(/"prompt_tokens":(\d+)/.exec(body)?.[1])

export const organizationsApart = ({ client }: Stage): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const models = cases.flatMap(({ declared, slots }, at) =>
      organizations.map((count) => model(idOf(at, count), slots, declared ? [system] : [])),
    )
    const { dataDir, target } = yield* startGateway({ models })
    const keys = yield* Effect.forEach(Array.from({ length: Math.max(...organizations) }).keys(), (at) =>
      createKey(dataDir, `bench-${at}`, "read-write"),
    )
    let serial = 0
    const ask = (id: string, key: string) => {
      const messages = [
        { role: "system", content: system },
        { role: "user", content: `${serial++}. Tell me another story, please.` },
      ]
      const body = {
        model: id,
        stream: true,
        max_tokens: 1,
        messages,
        stream_options: { include_usage: true },
      }
      return answered(client.ask("once", { target: { ...target, key }, path: chatPath, body }))
    }
    const figures: Array<Figure> = []
    for (const [at, { declared, slots }] of cases.entries())
      for (const count of organizations) {
        const shares: Array<number> = []
        const firstMs: Array<number> = []
        for (let request = 0; request < requests; request++) {
          const reply = yield* ask(idOf(at, count), keys[request % count]!)
          shares.push(cachedShare(reply.body))
          firstMs.push(reply.firstEventMs)
        }
        const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length
        const what = `${count} organizations, ${slots} sequences${declared ? ", prompt declared as shared" : ""}`
        figures.push(
          figure(`${what}: prompt tokens found`, "%", [100 * mean]),
          figure("  first token", "ms", firstMs),
        )
      }
    return {
      title: "One system prompt of several organizations, demonstration weights",
      method:
        `${requests} chats for each row, one after the other, the organizations in turn; each has the same system message ` +
        "and a question of its own; share of prompt tokens that were not evaluated again, the first chats included",
      figures,
    }
  })
