// Measures a transcription model: the real-time factor of a file, captions of one live session, how many live sessions
// the node admits, and captions with all of them active. The audio is that of the built-in recogniser's evaluation
// clips.

import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Fiber } from "effect"
import { wavHeaderBytes } from "#audio/codecs/Wav.ts"
import { bytesToS16, listenRateHz } from "#domain/audio/Audio.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { rounded } from "#harness/report/Figure.ts"
import { type Transcription, timesOf } from "../report/Document.ts"
import { attempt, leftMs, type Measuring, withCores } from "./Measuring.ts"

const clipFolder = fileURLToPath(new URL("../../../../models/whisper-demo-en/eval", import.meta.url))

/** The samples of all clips, one after the other: 54 s. */
const allSpeech = (): Int16Array =>
  bytesToS16(
    Buffer.concat(
      readdirSync(clipFolder)
        .filter((name) => name.endsWith(".wav"))
        .toSorted()
        .map((name) => readFileSync(join(clipFolder, name)).subarray(wavHeaderBytes)),
    ),
  )

const shortSeconds = 4
const longSeconds = 50

/**
 * Audio that a live session sends at once before it continues in real time, so that its windows have their usual cost.
 */
const aheadSeconds = 6

/** Seconds of new audio between two captions: the default of the API. */
const windowSeconds = 1

/** Live sessions opened at most. */
const mostSessions = 128

const firstSeconds = (samples: Int16Array, seconds: number): Int16Array =>
  samples.slice(0, seconds * listenRateHz)

const file = Effect.fnUntraced(function* (measuring: Measuring, samples: Int16Array, shortMs: number) {
  const { client, incomplete, model } = measuring
  const budgetMs = (yield* leftMs(measuring)) * 0.35
  // Published recognisers take as long for a short clip as for 30 s, others do not: the worse of the two is assumed.
  const longMs = shortMs * Math.ceil(longSeconds / shortSeconds)
  const seconds = longMs < budgetMs ? longSeconds : shortMs * 2 < budgetMs ? shortSeconds * 4 : shortSeconds
  if (seconds < longSeconds) {
    incomplete.push(`the file had ${seconds} s instead of ${longSeconds} s: there was no time for more`)
  }
  const deadlineMs = Math.max(1_000, yield* leftMs(measuring))
  const { cores, result } = yield* withCores(
    measuring,
    client.run({ kind: "transcribe", model, samples: firstSeconds(samples, seconds), deadlineMs }),
  )
  return { cores, seconds, factor: result.tookMs / 1000 / seconds }
})

const liveOf = (
  { client, model }: Measuring,
  asked: { readonly samples: Int16Array; readonly speakers: number; readonly seconds: number },
) =>
  client.run({
    kind: "live",
    model,
    aheadSeconds,
    ...asked,
    // A final result may take long on a large model; the sessions end at this deadline.
    deadlineMs: asked.seconds * 1000 + 6_000,
  })

/**
 * Opens sessions until one is refused. Sessions that have just begun count as active, so the node's decision depends on
 * the window cost of the session before; that cost is read from its gauges meanwhile.
 */
const admissionOf = Effect.fnUntraced(function* ({ client, model, node }: Measuring) {
  let windowMs: number | null = null
  const look = Effect.map(monotonicMs, (nowMs) => {
    const { sessions = 0, share = 0 } = node.live.gauges(nowMs).get(model) ?? {}
    if (sessions > 0 && share > 0) windowMs = rounded((share / sessions) * 1000 * windowSeconds)
  })
  const looking = yield* Effect.forkChild(Effect.forever(Effect.andThen(look, Effect.sleep(10))))
  const task = { kind: "admission", model, most: mostSessions, deadlineMs: 1_500 } as const
  const result = yield* Effect.ensuring(client.run(task), Fiber.interrupt(looking))
  return { ...result, windowMs: windowMs as number | null }
})

const live = Effect.fnUntraced(function* (measuring: Measuring, samples: Int16Array) {
  const secondsFor = (left: number): number => Math.max(2, Math.min(6, (left * 0.3) / 1000))
  const one = yield* attempt(
    measuring,
    "one live speaker",
    Effect.flatMap(leftMs(measuring), (left) =>
      liveOf(measuring, { samples, speakers: 1, seconds: secondsFor(left) }),
    ),
  )
  const admission = yield* attempt(measuring, "admission of live sessions", admissionOf(measuring))
  const speakers = admission?.admitted ?? 0
  const left = yield* leftMs(measuring)
  const many =
    speakers > 1 && left > 3_000
      ? yield* attempt(
          measuring,
          "all live speakers",
          liveOf(measuring, { samples, speakers, seconds: Math.max(2, Math.min(6, left / 1000 - 2)) }),
        )
      : undefined
  if (speakers > 1 && left <= 3_000) measuring.incomplete.push("all live speakers: there was no time left")
  return {
    admitted: admission?.admitted ?? null,
    refused: admission?.refused ?? null,
    window_ms: admission?.windowMs ?? null,
    window_seconds: windowSeconds,
    one_speaker:
      one === undefined
        ? null
        : { caption_lag_ms: timesOf(one.captionLagMs), final_ms: timesOf(one.finalMs) },
    many_speakers:
      many === undefined
        ? null
        : {
            asked: speakers,
            admitted: speakers - many.refused,
            caption_lag_ms: timesOf(many.captionLagMs),
            final_ms: timesOf(many.finalMs),
            failed: many.failed,
          },
  }
})

export const measureTranscription = Effect.fnUntraced(function* (measuring: Measuring) {
  const { client, model } = measuring
  const samples = allSpeech()
  const clip = firstSeconds(samples, shortSeconds)
  const short = Effect.flatMap(leftMs(measuring), (left) =>
    client.run({ kind: "transcribe", model, samples: clip, deadlineMs: Math.max(1_000, left) }),
  )
  const cold = yield* short
  const warm = yield* attempt(measuring, "a short clip", short)
  const shortMs = warm?.tookMs ?? cold.tookMs
  const long = yield* attempt(measuring, "real-time factor", file(measuring, samples, shortMs))
  const sessions = yield* live(measuring, samples)
  return {
    audio_seconds: long?.seconds ?? null,
    real_time_factor: long === undefined ? null : rounded(long.factor),
    short_clip_ms: rounded(shortMs),
    cores: long?.cores ?? null,
    live: sessions,
  } satisfies Transcription
})
