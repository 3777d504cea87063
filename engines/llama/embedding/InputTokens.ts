// The inputs of a request as tokens. llama.cpp's own tokenizer adds the special tokens that the file names, e.g. CLS and SEP.
import * as Effect from "effect/Effect"
import { maxRequestTokens } from "../../protocol/Embedding.ts"
import { type EmbedInput, type EngineError, invalidInput } from "../../protocol/Engine.ts"
import { tooLong, tooManyTokens } from "../../shared/text/EmbedBounds.ts"
import { type Libllama, onThread, type Pointer } from "../native/Libllama.ts"
import { piecesOf } from "../prompt/PromptPieces.ts"
import { estimateOfTooLong, type TextLimits } from "../prompt/TextLength.ts"

interface TokenizerOptions {
  readonly library: Libllama
  readonly vocabulary: Pointer
  /** Only byte-pair vocabularies have a pre-tokenizer whose stack long texts would overflow. */
  readonly isBytePair: boolean
  /** Of one input. */
  readonly limits: TextLimits
}

export type TokensOf = (
  inputs: ReadonlyArray<EmbedInput>,
) => Effect.Effect<ReadonlyArray<ReadonlyArray<number>>, EngineError>

const invalid = (index: number, detail: string) => Effect.fail(invalidInput(`input[${index}]`, detail))

/** UTF-8 bytes of a text that is tokenized on the event loop: less than 1 ms. A longer one is passed to a thread. */
const largestInPlace = 2_048
/** Bytes that are tokenized on the event loop before other requests get it. */
const bytesInOneTick = 8_192

export const inputTokens = ({ isBytePair, library, limits, vocabulary }: TokenizerOptions): TokensOf => {
  const size = library.vocabularySize(vocabulary)
  const { contextTokens } = limits

  const tokenized = async (text: string, addSpecial: boolean): Promise<ReadonlyArray<number>> => {
    const bytes = Buffer.from(text)
    // A token has at least one byte, and a few special tokens are added.
    let into = new Int32Array(bytes.length + 8)
    const run = (most: number) =>
      bytes.length > largestInPlace
        ? onThread(library.tokenize, vocabulary, bytes, bytes.length, into, most, addSpecial, false)
        : library.tokenize(vocabulary, bytes, bytes.length, into, most, addSpecial, false)
    let count = await run(into.length)
    if (count < 0) {
      // Vocabularies that put text in another form may make more tokens than there were bytes.
      into = new Int32Array(-count)
      count = await run(into.length)
    }
    return Array.from(into.subarray(0, Math.max(0, count)))
  }

  /** What is put before and after each text. */
  const around = async () => {
    const [plain, special] = await Promise.all([tokenized("a", false), tokenized("a", true)])
    const at = special.findIndex((_, from) => plain.every((token, n) => special[from + n] === token))
    return at < 0
      ? { before: [], after: [] }
      : { before: special.slice(0, at), after: special.slice(at + plain.length) }
  }
  let ends: ReturnType<typeof around> | undefined

  const textTokens = async (text: string): Promise<ReadonlyArray<number>> => {
    const pieces = isBytePair ? piecesOf(text) : [text]
    if (pieces.length === 1) return tokenized(text, true)
    ends ??= around()
    const { after, before } = await ends
    const tokens = [...before]
    for (const piece of pieces) for (const token of await tokenized(piece, false)) tokens.push(token)
    return [...tokens, ...after]
  }

  /** An estimate of the tokens of a text that certainly has too many. */
  const tooManyOf = async (text: string): Promise<number | undefined> => {
    const counting = estimateOfTooLong([text], limits)
    let step = counting.next()
    while (step.done !== true) step = counting.next((await textTokens(step.value)).length)
    return step.value
  }

  const ofText = (text: string, index: number) =>
    Effect.flatMap(
      Effect.promise(() => tooManyOf(text)),
      (tooMany) =>
        tooMany === undefined
          ? Effect.flatMap(
              Effect.promise(() => textTokens(text)),
              (tokens) => checked(tokens, index),
            )
          : Effect.fail(tooLong(index, Math.max(tooMany, contextTokens + 1), contextTokens)),
    )

  const checked = (tokens: ReadonlyArray<number>, index: number) => {
    if (tokens.length === 0) return invalid(index, "has no tokens")
    return tokens.length <= contextTokens
      ? Effect.succeed(tokens)
      : Effect.fail(tooLong(index, tokens.length, contextTokens))
  }

  const ofIds = (ids: ReadonlyArray<number>, index: number) => {
    const unknown = ids.find((id) => !(id >= 0 && id < size))
    return unknown === undefined
      ? checked(ids, index)
      : invalid(index, `has the token ${unknown}; this model has the tokens 0 to ${size - 1}`)
  }

  return Effect.fnUntraced(function* (inputs) {
    const all: Array<ReadonlyArray<number>> = []
    let bytes = 0
    let total = 0
    for (const [index, input] of inputs.entries()) {
      bytes += input.length
      if (bytes > bytesInOneTick) {
        bytes = 0
        yield* Effect.sleep(0)
      }
      const tokens = typeof input === "string" ? yield* ofText(input, index) : yield* ofIds(input, index)
      total += tokens.length
      if (total > maxRequestTokens) return yield* tooManyTokens()
      all.push(tokens)
    }
    return all
  })
}
