// Live sessions of a whole node: the time from `stop` to the final result, the lag of captions behind the audio,
// whether the final result equals a file's transcript, and how many sessions are served before one is refused.
import { Effect } from "effect"
import type { CaptionWindows } from "#domain/audio/Listening.ts"
import { transcriptOf } from "#harness/client/TranscriptionRequest.ts"
import { makeClip } from "#harness/data/Clip.ts"
import { percentile } from "#harness/figures/Statistics.ts"
import {
  atLeast,
  atMost,
  besideFloor,
  type Figure,
  figure,
  figureOf,
  type Goal,
  ofEach,
  type Part,
  type Readings,
  ratioTo,
} from "#harness/report/Figure.ts"
import { neverAborted, serverOf } from "../support/Ask.ts"
import { type Child, ChildFailed } from "../support/Child.ts"
import type { Gateway } from "../support/Gateway.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import type { HearingCommands } from "./hearingMain.ts"
import { NoSession, Speaker } from "./Speaker.ts"
import { madeUp, rateHz, speech } from "./Speech.ts"

export const listenModel = "stt-large-v3-turbo"

/** Turns a session's failure into the failure of the bench, as for a process. */
export const attempt = <A>(work: () => Promise<A>): Effect.Effect<A, ChildFailed> =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => new ChildFailed({ child: "live session", detail: String(cause) }),
  })

/** Seconds of an open tail. The last window was sent, and the client sends a little more audio before it stops. */
const tailSeconds = 6.4
const windowedSeconds = 6
const framesOf = (seconds: number) => (seconds * 1000) / 20

/** Sessions that are not counted: both engines still compile code. */
const manyWarmUps = 10

/** Milliseconds from `stop` to the final result. */
const finalResultMs = async (gateway: Gateway, samples: Int16Array, inFlight: boolean): Promise<number> => {
  const speaker = await Speaker.open(gateway.target, listenModel)
  speaker.send(samples, inFlight ? framesOf(tailSeconds) : framesOf(windowedSeconds))
  // With all audio received and one caption sent, the next window is being transcribed.
  const transcribedMs = inFlight ? 0 : windowedSeconds * 1000
  await speaker.until((captions) => captions.some(({ audioMs }) => audioMs >= transcribedMs))
  speaker.send(samples, framesOf(tailSeconds))
  const { ms } = await speaker.stop()
  speaker.close()
  return ms
}

export interface LastWordPlan extends RoundsPlan {
  /** Sessions that are not counted. */
  readonly warmUps?: number
}

export const lastWordSection = (
  gateway: Gateway,
  hearing: Child<HearingCommands>,
  plan: LastWordPlan,
): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const samples = speech(tailSeconds)
    for (let nth = 0; nth < (plan.warmUps ?? manyWarmUps); nth++)
      yield* attempt(() => finalResultMs(gateway, samples, false))
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const stopMs = yield* attempt(() => finalResultMs(gateway, samples, false))
        const fileMs = yield* hearing.ask("file", { seconds: tailSeconds })
        return { stopMs, fileMs, cutMs: yield* attempt(() => finalResultMs(gateway, samples, true)) }
      }),
    )
    const of = (name: string, part: "stopMs" | "fileMs" | "cutMs") =>
      ofEach(rounds, name, "ms", (round) => round[part])
    const lastWord = of("stop to transcript.text.done", "stopMs")
    const file = of("one transcription of the tail", "fileMs")
    const cut = of("stop while a window is transcribed", "cutMs")
    const evenness = ({ values }: Readings) => [percentile(values, 0.95) / percentile(values, 0.5)]
    return {
      title: "From stop to the final result",
      method:
        `sessions of ${tailSeconds} s, all of it open when stop is sent, through a node, with the caption of second ` +
        `${windowedSeconds} there; alternately with one transcription of the same samples by the engine alone, without a ` +
        "node, and with sessions that are stopped while a window is transcribed",
      figures: [
        ...besideFloor(file, lastWord, atMost(1.2)),
        figure("  p95 against p50", "x", evenness(lastWord), atMost(1.25)),
        figure("  the engine's alone, p95 against p50", "x", evenness(file)),
        figureOf(cut),
        ratioTo(cut, file),
      ],
    }
  })

/** The transcript of the same samples as a file (`sync=true`). */
const fileText = async ({ target }: Gateway, samples: Int16Array): Promise<string> => {
  const clip = makeClip("speech", samples, "")
  const ask = { model: listenModel, clip, language: undefined, stream: false, fields: { sync: true } }
  return (await transcriptOf(serverOf(target), ask, neverAborted)).text
}

/** An admitted session; undefined if the busy node refuses it. */
const admitted = async (gateway: Gateway): Promise<Speaker | undefined> => {
  try {
    return await Speaker.open(gateway.target, listenModel)
  } catch (cause) {
    if (cause instanceof NoSession && cause.message === "refused: 503") return undefined
    throw cause
  }
}

interface Spoken {
  readonly lags: ReadonlyArray<number>
  readonly text: string
}

/** The results of each admitted session. */
const speakAll = (
  gateway: Gateway,
  speakers: number,
  samples: Int16Array,
): Promise<ReadonlyArray<Spoken>> => {
  const one = async (nth: number): Promise<ReadonlyArray<Spoken>> => {
    // The sessions do not begin in the same millisecond.
    await new Promise((resolve) => setTimeout(resolve, (nth * 1000) / speakers))
    const speaker = await admitted(gateway)
    if (speaker === undefined) return []
    await speaker.speak(samples)
    const { text } = await speaker.stop()
    speaker.close()
    return [{ lags: speaker.lags, text }]
  }
  return Promise.all(Array.from({ length: speakers }, (_, nth) => one(nth))).then((all) => all.flat())
}

export interface LagPlan {
  readonly speakers: ReadonlyArray<number>
  readonly seconds: number
}

export const lagSection = (gateway: Gateway, plan: LagPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const figures: Array<Figure> = []
    // Stopped in the middle of a window; the windows before it are transcribed.
    const samples = speech(plan.seconds).subarray(0, (plan.seconds - 0.5) * rateHz)
    const expected = yield* attempt(() => fileText(gateway, samples))
    for (const speakers of plan.speakers) {
      const spoken = yield* attempt(() => speakAll(gateway, speakers, samples))
      const lags = spoken.flatMap((each) => each.lags)
      const windows = spoken.length * (plan.seconds - 1)
      const equal = spoken.filter(({ text }) => text === expected).length
      figures.push(figure(`of ${speakers}, speakers admitted`, "sessions", [spoken.length]))
      figures.push(figure("  caption behind the speaker, p50", "ms", [percentile(lags, 0.5)]))
      figures.push(figure("  p95", "ms", [percentile(lags, 0.95)]))
      figures.push(figure("  windows that had a caption", "share", [lags.length / windows]))
      figures.push(figure("  final results equal to sync=true", "share", [equal / spoken.length], atLeast(1)))
    }
    return {
      title: "Captions behind the speaker, windows of one second",
      method: `speech in real time, frames of 20 ms, ${plan.seconds} s each; from the frame that completes a window to its caption`,
      figures,
    }
  })

export interface ClipsPlan {
  readonly clips: number
  readonly atOnce: number
  readonly speed: number
}

export const clipsSection = (gateway: Gateway, plan: ClipsPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    let equal = 0
    let captions = 0
    let windows = 0
    const hear = async (seed: number): Promise<void> => {
      const samples = madeUp(seed)
      const windowSeconds = [0.5, 1, 2][seed % 3] ?? 1
      const speaker = await Speaker.open(gateway.target, listenModel, windowSeconds)
      await speaker.speak(samples, plan.speed)
      const { text } = await speaker.stop()
      speaker.close()
      if (text === (await fileText(gateway, samples))) equal++
      captions += speaker.captions.length
      windows += Math.floor(samples.length / rateHz / windowSeconds)
    }
    let next = 0
    const worker = async (): Promise<void> => {
      while (next < plan.clips) await hear(next++)
    }
    yield* attempt(() => Promise.all(Array.from({ length: plan.atOnce }, worker)))
    return {
      title: `Made-up clips at ${plan.speed} times real time`,
      method:
        `${plan.clips} clips of 0.5 to 12 s in windows of 0.5 to 2 s, ${plan.atOnce} at a time, against sync=true for ` +
        "the same samples; a window is without a caption when the next one is complete before its turn comes",
      figures: [
        figure("final results equal to sync=true", "share", [equal / plan.clips], atLeast(1)),
        figure("windows that had a caption", "share", [captions / windows]),
      ],
    }
  })

export interface CapacityPlan {
  readonly most: number
  /** Milliseconds between two new sessions: a window and a half, so that each is measured before the next. */
  readonly everyMs: number
  /** Milliseconds for which captions are watched once no further session is admitted; default 5 s. */
  readonly watchedMs?: number
}

export const capacitySection = (
  gateway: Gateway,
  plan: CapacityPlan,
  goals?: { readonly speakers: Goal; readonly lagP95: Goal },
  windows?: CaptionWindows,
): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const { watchedMs = 5_000 } = plan
    const { lags, served } = yield* attempt(async () => {
      const samples = speech(110)
      const speakers: Array<Speaker> = []
      const speaking: Array<Promise<void>> = []
      try {
        while (speakers.length < plan.most) {
          const speaker = await Speaker.open(gateway.target, listenModel, windows)
          speakers.push(speaker)
          speaking.push(speaker.speak(samples))
          await new Promise((resolve) => setTimeout(resolve, plan.everyMs))
        }
      } catch (cause) {
        if (!(cause instanceof NoSession) || cause.message !== "refused: 503") throw cause
      }
      const served = speakers.length
      const seen = speakers.map(({ lags }) => lags.length)
      await new Promise((resolve) => setTimeout(resolve, watchedMs))
      const lags = speakers.flatMap((speaker, nth) => speaker.lags.slice(seen[nth]))
      for (const speaker of speakers) speaker.close()
      await Promise.all(speaking)
      return { served, lags }
    })
    return {
      title: "Speakers in real time before one is refused",
      method: `a new session every ${plan.everyMs} ms until one gets 503, ${plan.most} at most; lags of the ${watchedMs / 1000} s after that`,
      figures: [
        figure("speakers served", "sessions", [served], goals?.speakers),
        figure("  caption behind the speaker then, p50", "ms", [percentile(lags, 0.5)]),
        figure("  p95", "ms", [percentile(lags, 0.95)], goals?.lagP95),
      ],
    }
  })
