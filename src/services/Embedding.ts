// One request for embeddings of a caller: admission, payment, run, end.
import { Effect, Exit, Option } from "effect"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { embeddingUsage } from "#domain/models/Usage.ts"
import { isNodeFault } from "#domain/wire/Failures.ts"
import {
  type EmbedEnd,
  type EmbedInput,
  type EmbedRequest,
  maxRequestTokens,
  type Vectors,
} from "#engines/protocol/Embedding.ts"
import type { Reader } from "#engines/protocol/Reader.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import { beginRun } from "./ModelRun.ts"

/** Special tokens around an input. A generous guess. */
const specialTokens = 16

/** For the money reservation before the engine has loaded and the model's own number is known. */
const assumedContextTokens = 8_192

/** No tokenizer makes more tokens of a text than it has UTF-8 bytes; the context bounds each input as well. */
const tokensAtMost = (inputs: ReadonlyArray<EmbedInput>, contextTokens: number): number => {
  const sizeOf = (input: EmbedInput) =>
    typeof input === "string" ? Buffer.byteLength(input) + specialTokens : input.length
  const sum = inputs.reduce((total, input) => total + Math.min(sizeOf(input), contextTokens), 0)
  return Math.min(sum, maxRequestTokens)
}

/** Keeps the vectors as the bytes of their JSON texts, and counts their tokens. */
class Progress implements Reader<Vectors, unknown, EmbedEnd> {
  readonly vectors: Array<Uint8Array> = []
  tokens = 0

  take({ promptTokens, texts }: Vectors): void {
    this.tokens += promptTokens
    // The characters of numbers and of base64 have one byte each.
    for (const text of texts) this.vectors.push(Buffer.from(text, "latin1"))
  }

  ended({ promptTokens }: EmbedEnd): void {
    this.tokens = promptTokens
  }
}

export interface Embedded {
  /** JSON text of the vector of each input. */
  readonly vectors: ReadonlyArray<Uint8Array>
  readonly promptTokens: number
}

/** Charged for the inputs that were computed, also if the caller leaves before all are; not if the node fails. */
export const embed = Effect.fnUntraced(function* (
  principal: Principal,
  model: ModelHandle<"embedding">,
  request: EmbedRequest,
) {
  const progress = new Progress()
  const run = yield* beginRun<"embedding">({
    principal,
    model,
    request,
    atMost: embeddingUsage(
      tokensAtMost(request.inputs, model.facts()?.contextTokens ?? assumedContextTokens),
    ),
    used: (exit) => {
      const failed = exit !== undefined && Option.exists(Exit.findErrorOption(exit), isNodeFault)
      return failed || progress.tokens === 0 ? undefined : embeddingUsage(progress.tokens)
    },
    reader: progress,
  })
  const { promptTokens } = yield* run.end
  const embedded: Embedded = { vectors: progress.vectors, promptTokens }
  return embedded
})
