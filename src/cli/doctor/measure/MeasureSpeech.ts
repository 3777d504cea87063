// Measures a speech model: first audio, real-time factor, and how many streams ("play-outs") the node admits at once
// and serves without a gap.

import { Effect } from "effect"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { maxStreamLoad } from "#domain/models/StreamLoad.ts"
import { rounded } from "#harness/report/Figure.ts"
import { digits } from "#harness/report/Format.ts"
import type { Voice } from "../load/Tasks.ts"
import { type Speech, timesOf } from "../report/Document.ts"
import { attempt, leftMs, type Measuring, withCores } from "./Measuring.ts"
import { sentence, speechOf } from "./Prompts.ts"

/** Streams tried at most. A guess: more than a machine without many cores can serve. */
const mostPlayOuts = 96

/** Half a minute of speech: long enough for all streams to be open at once. */
const playedCharacters = 450

/** Streams beyond those that the node's admission rule allows, so that it has to refuse some. */
const beyond = 6

const voiceOf = ({ id, speech }: ModelEntry): Voice => ({
  model: id,
  voice: speech?.voices[0] ?? "default",
})

/** First audio of single requests, one after the other, three at most. */
const firstAudio = Effect.fnUntraced(function* (measuring: Measuring, voice: Voice) {
  const times: Array<number> = []
  const budgetMs = (yield* leftMs(measuring)) / 4
  let usedMs = 0
  while (times.length < 3 && (times.length === 0 || usedMs + usedMs / times.length < budgetMs)) {
    const deadlineMs = Math.max(1_000, yield* leftMs(measuring))
    const task = { kind: "speak", voice, text: sentence, stream: true, deadlineMs } as const
    const spoken = yield* measuring.client.run(task)
    usedMs += spoken.tookMs
    times.push(spoken.firstAudioMs)
  }
  return times
})

/** One batch reply, as long as a third of the time allows. */
const realTime = Effect.fnUntraced(function* (
  measuring: Measuring,
  voice: Voice,
  most: number,
  msPerCharacter: number,
) {
  const deadlineMs = (yield* leftMs(measuring)) * 0.6
  const characters = Math.min(most, 600, Math.max(sentence.length, (deadlineMs * 0.5) / msPerCharacter))
  const task = { kind: "speak", voice, text: speechOf(characters), stream: false, deadlineMs } as const
  return yield* withCores(measuring, measuring.client.run(task))
})

const playOuts = Effect.fnUntraced(function* (measuring: Measuring, voice: Voice, most: number) {
  const { client, model, node } = measuring
  const factor = node.speech.factor(model)
  const expected = factor === undefined || factor <= 0 ? mostPlayOuts : maxStreamLoad / factor
  const streams = Math.min(mostPlayOuts, Math.max(2, Math.floor(expected) + beyond))
  const deadlineMs = Math.max(1_000, (yield* leftMs(measuring)) * 0.9)
  const text = speechOf(Math.min(most, playedCharacters))
  const { firstAudioMs, ranDry, refused } = yield* client.run({
    kind: "play",
    voice,
    text,
    streams,
    deadlineMs,
  })
  const admitted = streams - refused
  if (firstAudioMs.length < admitted) {
    measuring.incomplete.push(
      `play-outs: ${firstAudioMs.length} of ${admitted} had their first audio in the ${digits(deadlineMs / 1000)} s that were left`,
    )
  }
  return {
    asked: streams,
    admitted,
    admission_factor: factor === undefined ? null : rounded(factor),
    refused: refused > 0,
    first_audio_ms: timesOf(firstAudioMs),
    ran_dry: ranDry,
  }
})

export const measureSpeech = Effect.fnUntraced(function* (measuring: Measuring, entry: ModelEntry) {
  const voice = voiceOf(entry)
  const most = entry.speech?.maxCharacters ?? 600
  // The first reply after loading is slower and not representative.
  const deadlineMs = Math.max(1_000, yield* leftMs(measuring))
  const warm = yield* measuring.client.run({ kind: "speak", voice, text: sentence, stream: true, deadlineMs })
  const first = yield* attempt(measuring, "first audio", firstAudio(measuring, voice))
  const batch = yield* attempt(
    measuring,
    "real-time factor",
    realTime(measuring, voice, most, warm.tookMs / sentence.length),
  )
  const play = yield* attempt(measuring, "play-outs", playOuts(measuring, voice, most))
  const factor = batch === undefined ? undefined : batch.result.tookMs / Math.max(1, batch.result.audioMs)
  return {
    real_time_factor: factor === undefined ? null : rounded(factor),
    first_audio_ms: timesOf(first ?? []),
    play_outs: play ?? null,
    cores: batch?.cores ?? null,
  } satisfies Speech
})
