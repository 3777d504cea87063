// Measures a text model at 1, 4 and 16 streams: prompt tokens a second, reply tokens a second, and time to the first
// token. The prompts' length is derived from a short first reply, so that a large model on a small machine finishes in
// time too.

import { Effect } from "effect"
import { median } from "#harness/figures/Statistics.ts"
import { rounded } from "#harness/report/Figure.ts"
import { type TextLevel, timesOf } from "../report/Document.ts"
import { attempt, leftMs, type Measuring, withCores } from "./Measuring.ts"
import { promptOf } from "./Prompts.ts"

const levels = [1, 4, 16] as const

/** Tokens of a prompt: at most this many to measure prompts, so many to measure replies, and at least so many. */
const mostPromptTokens = 512
const replyPromptTokens = 100
const leastPromptTokens = 16

/** A first guess; the tokenizer's count replaces it. */
const assumedCharactersPerToken = 4

interface Pace {
  readonly charactersPerToken: number
  /** The rate measured so far; it determines the length of the next prompts. */
  promptTokensPerSecond: number
}

/** Tokens of each of `streams` prompts that can be processed within `budgetMs`. */
const lengthFor = (pace: Pace, streams: number, budgetMs: number, most: number): number => {
  const affordable = (pace.promptTokensPerSecond * budgetMs) / 1000 / streams
  return Math.max(leastPromptTokens, Math.min(most, Math.floor(affordable)))
}

/** Warms the model up, and measures how long its prompts take. */
const firstReply = Effect.fnUntraced(function* (measuring: Measuring) {
  const { client, model } = measuring
  const prompt = promptOf("warm-up", 64 * assumedCharactersPerToken)
  const deadlineMs = Math.max(1_000, (yield* leftMs(measuring)) / 2)
  const reply = yield* client.run({ kind: "reply", model, prompt, maxTokens: 16, deadlineMs })
  return {
    charactersPerToken: prompt.length / Math.max(1, reply.promptTokens),
    promptTokensPerSecond: (reply.promptTokens * 1000) / Math.max(1, reply.firstTokenMs),
  } satisfies Pace
})

const promptsOf = (pace: Pace, tag: string, streams: number, tokens: number): ReadonlyArray<string> =>
  Array.from({ length: streams }, (_, at) => promptOf(`${tag}-${at}`, tokens * pace.charactersPerToken))

/** Up to three rounds of prompts within the time; the median counts. */
const promptRate = Effect.fnUntraced(function* (
  measuring: Measuring,
  pace: Pace,
  streams: number,
  budgetMs: number,
) {
  const { client, incomplete, model } = measuring
  const rounds: Array<{ readonly rate: number; readonly tokens: number }> = []
  let usedMs = 0
  while (rounds.length < 3 && (rounds.length === 0 || usedMs + usedMs / rounds.length < budgetMs)) {
    const tokens = lengthFor(pace, streams, budgetMs * 0.3, mostPromptTokens)
    const prompts = promptsOf(pace, `p${streams}-${rounds.length}`, streams, tokens)
    const deadlineMs = Math.max(500, budgetMs - usedMs)
    const { answered, tookMs } = yield* client.run({ kind: "prompts", model, prompts, deadlineMs })
    usedMs += Math.max(tookMs, 1)
    if (answered.length < streams) {
      incomplete.push(
        `prompts at ${streams} streams: ${answered.length} of ${streams} had a first token in time`,
      )
    }
    if (answered.length === 0) break
    const sum = answered.reduce((total, { promptTokens }) => total + promptTokens, 0)
    const rate = (sum * 1000) / tookMs
    pace.promptTokensPerSecond = rate
    rounds.push({ rate, tokens: sum / answered.length })
    if (answered.length < streams) break
  }
  if (rounds.length === 0) return undefined
  return { rate: median(rounds.map(({ rate }) => rate)), tokens: median(rounds.map(({ tokens }) => tokens)) }
})

const replyRate = Effect.fnUntraced(function* (
  measuring: Measuring,
  pace: Pace,
  streams: number,
  budgetMs: number,
) {
  const { client, incomplete, model, node } = measuring
  const slots = node.registry.find(model)?.host?.gauges().slots ?? streams
  const tokens = lengthFor(pace, streams, budgetMs * 0.3, replyPromptTokens)
  const prompts = promptsOf(pace, `r${streams}`, streams, tokens)
  // Streams beyond the slots wait until the end.
  const running = Math.min(streams, slots)
  const times = { windowMs: budgetMs * 0.5, deadlineMs: budgetMs }
  const task = { kind: "replies", model, prompts, running, ...times } as const
  const { cores, result } = yield* withCores(measuring, client.run(task))
  const began = result.counted?.began ?? result.firstTokenMs.length
  if (result.counted === undefined || began < running) {
    const what = result.counted === undefined ? "had a first token in time" : "wrote when the counting began"
    incomplete.push(`replies at ${streams} streams: ${began} of ${running} ${what}`)
  }
  return { ...result, cores, tokens }
})

/** Shares of the remaining time: later levels have more work. */
const weights = { 1: [1, 1.2], 4: [1.2, 1.2], 16: [1.6, 1.6] } as const

export const measureText = Effect.fnUntraced(function* (measuring: Measuring) {
  const pace = yield* firstReply(measuring)
  const parts = levels.flatMap((streams) => weights[streams].map((weight) => weight))
  const nextBudget = Effect.map(leftMs(measuring), (left) => {
    const budgetMs = (left * (parts[0] ?? 1)) / parts.reduce((sum, part) => sum + part, 0)
    parts.shift()
    return budgetMs
  })
  const measured: Array<TextLevel> = []
  for (const streams of levels) {
    const what = `${streams} stream${streams === 1 ? "" : "s"}`
    const promptMs = yield* nextBudget
    const prompts = yield* attempt(
      measuring,
      `prompts at ${what}`,
      promptRate(measuring, pace, streams, promptMs),
    )
    const replyMs = yield* nextBudget
    const replies = yield* attempt(
      measuring,
      `replies at ${what}`,
      replyRate(measuring, pace, streams, replyMs),
    )
    const counted = replies?.counted
    measured.push({
      streams,
      prompt_tokens: prompts === undefined ? null : Math.round(prompts.tokens),
      prompt_tokens_per_second: prompts === undefined ? null : rounded(prompts.rate),
      reply_tokens_per_second:
        counted === undefined ? null : rounded((counted.tokens * 1000) / counted.tookMs),
      first_token_ms: replies === undefined ? null : timesOf(replies.firstTokenMs),
      first_token_prompt_tokens: replies?.tokens ?? null,
      cores: replies?.cores ?? null,
    })
  }
  return { levels: measured }
})
