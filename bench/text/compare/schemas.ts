// A node beside llama.cpp's own server on the same generated weights and threads: tokens a second of chat replies that a JSON
// Schema holds, alternately. Run by hand with a llama.cpp binary, which is not part of this project:
//
//   node bench/text/compare/schemas.ts --server llama-server [--size 0.5b] [--threads 2] [--rounds 2]
//
// Every answer that was not cut by its bound is parsed.
import { Effect } from "effect"
import { median } from "#harness/figures/Statistics.ts"
import { digits } from "#harness/report/Format.ts"
import { describeMachine, machineLine } from "#harness/report/Machine.ts"
import { textWeights } from "../../sizes/text/TextWeights.ts"
import { ask } from "../../support/Ask.ts"
import type { Target } from "../../support/Connection.ts"
import { startGateway } from "../../support/Gateway.ts"
import { sizedEntry, sizedModel } from "../sized/Models.ts"
import { readFlags } from "./Flags.ts"
import { serverFlags, startLlamaServer, versionOf } from "./LlamaServer.ts"

const replyTokens = 128
const streamCounts = [1, 8]

const { rounds, server, size, threads } = readFlags({ size: "0.5b", rounds: "2" })

const objectOf = (properties: Readonly<Record<string, object>>) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})

const text = { type: "string", minLength: 200, maxLength: 400 }
const keys =
  "street_address postal_code city_name country_code telephone_number email_address date_of_birth preferred_language membership_level"
const values = [{ enum: ["yes", "no"] }, { type: "boolean" }, { type: "integer", minimum: 0, maximum: 99 }]

const schemas = {
  "two long texts": objectOf({ title: text, body: text }),
  "nine long keys, short values": objectOf(
    Object.fromEntries(keys.split(" ").map((key, at) => [key, values[at % values.length] ?? {}])),
  ),
}

interface Reply {
  readonly choices: ReadonlyArray<{
    readonly finish_reason: string
    readonly message: { readonly content: string }
  }>
  readonly usage: { readonly completion_tokens: number }
}

/** The tokens of one reply. Only llama-server knows `min_p`, which is set to cut nothing. */
const tokensOf = async (target: Target, schema: object, seed: number): Promise<number> => {
  const { choices, usage } = await ask<Reply>(target, "/v1/chat/completions", {
    model: sizedModel,
    messages: [{ role: "user", content: `Fill in form number ${seed}.` }],
    max_tokens: replyTokens,
    temperature: 0.8,
    top_p: 1,
    top_k: 0,
    seed,
    response_format: { type: "json_schema", json_schema: { name: "form", strict: true, schema } },
    ...(target.key === "" ? { min_p: 0 } : {}),
  })
  const [choice] = choices
  if (choice?.finish_reason === "stop") JSON.parse(choice.message.content)
  return usage.completion_tokens
}

/** Tokens a second of this many replies at once, prompts included. */
const rateOf = async (target: Target, schema: object, streams: number, seed: number): Promise<number> => {
  const startedMs = performance.now()
  const tokens = await Promise.all(
    Array.from({ length: streams }, (_, at) => tokensOf(target, schema, seed + at)),
  )
  return (tokens.reduce((sum, each) => sum + each, 0) / (performance.now() - startedMs)) * 1000
}

const compare = Effect.gen(function* () {
  const weights = yield* Effect.promise(() => textWeights(size))
  const gateway = yield* startGateway({ models: [sizedEntry(weights, threads)] })
  const llama = yield* startLlamaServer({ server, threads, weights })
  const targets: readonly [Target, Target] = [gateway.target, { port: llama.port, key: "" }]
  yield* Effect.promise(async () => {
    console.info(
      `${"tokens/s".padEnd(42)}${["edgewise", "llama", "ratio"].map((name) => name.padStart(9)).join("")}`,
    )
    for (const [name, schema] of Object.entries(schemas)) {
      for (const target of targets) await rateOf(target, schema, 1, 1)
      for (const streams of streamCounts) {
        const node: Array<number> = []
        const other: Array<number> = []
        for (let round = 1; round <= rounds; round++) {
          node.push(await rateOf(targets[0], schema, streams, 100 * round))
          other.push(await rateOf(targets[1], schema, streams, 100 * round))
        }
        const ratio = median(node.map((value, at) => value / (other[at] ?? Number.NaN)))
        const cells = [median(node), median(other), ratio].map((value) => digits(value).padStart(9))
        console.info(`${`${streams} x ${name}`.padEnd(42)}${cells.join("")}`)
      }
    }
  })
})

console.info(machineLine(describeMachine(new Date())))
console.info(`${size}, ${threads} threads, replies of at most ${replyTokens} tokens, ${rounds} rounds`)
console.info(`llama-server ${versionOf(server)}: ${serverFlags(threads).join(" ")}`)
await Effect.runPromise(Effect.scoped(compare))
