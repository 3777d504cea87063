// Live sessions of a whole node: how long after `stop` the last word comes, how far captions lag behind the speaker,
// and how many speakers are served before one is refused.
import { Effect } from "effect"
import { type Child, ChildFailed } from "../support/Child.ts"
import { type Finding, finding, type Section } from "../support/Findings.ts"
import type { Gateway } from "../support/Gateway.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { pairedRatios, percentile } from "../support/Statistics.ts"
import type { HearingDesk } from "./hearingMain.ts"
import { NoSession, Speaker } from "./Speaker.ts"
import { speech } from "./Speech.ts"

export const listenModel = "stt-large-v3-turbo"

/** What failed here was a session, and the bench says so as it does of any process. */
export const attempt = <A>(work: () => Promise<A>): Effect.Effect<A, ChildFailed> =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => new ChildFailed({ child: "live session", detail: String(cause) }),
  })

/** Never closed: all of it is the tail. */
const tailSeconds = 6

export const lastWordSection = (
  gateway: Gateway,
  hearing: Child<HearingDesk>,
  plan: RoundsPlan,
): Effect.Effect<Section, ChildFailed> =>
  Effect.gen(function* () {
    const samples = speech(tailSeconds)
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const { ms } = yield* attempt(async () => {
          const speaker = await Speaker.open(gateway.target, listenModel)
          speaker.send(samples, (tailSeconds * 1000) / 20)
          await speaker.until((captions) => captions.length > 0)
          const last = await speaker.stop()
          speaker.close()
          return last
        })
        return { ms, fileMs: yield* hearing.ask("file", { seconds: tailSeconds }) }
      }),
    )
    const lastWord = rounds.map(({ ms }) => ms)
    const file = rounds.map(({ fileMs }) => fileMs)
    return {
      title: "From stop to the last word",
      method:
        `sessions of ${tailSeconds} s, all of it open when stop is sent, through a node; by turns with one ` +
        "transcription of the same samples by the engine alone, without a node",
      findings: [
        finding("stop to transcript.text.done", "ms", lastWord),
        finding("one transcription of the tail", "ms", file),
        finding("  ratio", "ratio", pairedRatios(lastWord, file), { is: "at most", value: 1.2 }),
        finding("  p95 against p50", "ratio", [percentile(lastWord, 0.95) / percentile(lastWord, 0.5)], {
          is: "at most",
          value: 1.25,
        }),
      ],
    }
  })

/** A speaker, or nobody where the node has no room on a machine as busy as this. */
const admitted = async (gateway: Gateway): Promise<Speaker | undefined> => {
  try {
    return await Speaker.open(gateway.target, listenModel)
  } catch (cause) {
    if (cause instanceof NoSession && cause.message === "refused: 503") return undefined
    throw cause
  }
}

/** The lags of each speaker who was admitted. */
const lagsOf = (
  gateway: Gateway,
  speakers: number,
  seconds: number,
): Promise<ReadonlyArray<ReadonlyArray<number>>> => {
  const samples = speech(seconds)
  const one = async (nth: number): Promise<ReadonlyArray<ReadonlyArray<number>>> => {
    // Speakers do not begin in the same millisecond.
    await new Promise((resolve) => setTimeout(resolve, (nth * 1000) / speakers))
    const speaker = await admitted(gateway)
    if (speaker === undefined) return []
    await speaker.speak(samples)
    await speaker.stop()
    speaker.close()
    return [speaker.lags]
  }
  return Promise.all(Array.from({ length: speakers }, (_, nth) => one(nth))).then((lags) => lags.flat())
}

export interface LagPlan {
  readonly speakers: ReadonlyArray<number>
  readonly seconds: number
}

export const lagSection = (gateway: Gateway, plan: LagPlan): Effect.Effect<Section, ChildFailed> =>
  Effect.gen(function* () {
    const findings: Array<Finding> = []
    for (const speakers of plan.speakers) {
      const lags = yield* attempt(() => lagsOf(gateway, speakers, plan.seconds))
      const all = lags.flat()
      findings.push(finding(`of ${speakers}, speakers admitted`, "sessions", [lags.length]))
      findings.push(finding("  caption behind the speaker, p50", "ms", [percentile(all, 0.5)]))
      findings.push(finding("  p95", "ms", [percentile(all, 0.95)]))
      findings.push(
        finding("  windows that had a caption", "share", [all.length / (lags.length * plan.seconds)]),
      )
    }
    return {
      title: "Captions behind the speaker, windows of one second",
      method: `speech in real time, frames of 20 ms, ${plan.seconds} s each; from the frame that completes a window to its caption`,
      findings,
    }
  })

export interface RoomPlan {
  readonly most: number
  /** Time between two newcomers: a window and a half, so that each is measured before the next. */
  readonly everyMs: number
}

export const roomSection = (gateway: Gateway, plan: RoomPlan): Effect.Effect<Section, ChildFailed> =>
  Effect.gen(function* () {
    const { lags, served } = yield* attempt(async () => {
      const samples = speech(110)
      const speakers: Array<Speaker> = []
      const speaking: Array<Promise<void>> = []
      try {
        while (speakers.length < plan.most) {
          const speaker = await Speaker.open(gateway.target, listenModel)
          speakers.push(speaker)
          speaking.push(speaker.speak(samples))
          await new Promise((resolve) => setTimeout(resolve, plan.everyMs))
        }
      } catch (cause) {
        if (!(cause instanceof NoSession) || cause.message !== "refused: 503") throw cause
      }
      const served = speakers.length
      const seen = speakers.map(({ lags }) => lags.length)
      await new Promise((resolve) => setTimeout(resolve, 5_000))
      const lags = speakers.flatMap((speaker, nth) => speaker.lags.slice(seen[nth]))
      for (const speaker of speakers) speaker.close()
      await Promise.all(speaking)
      return { served, lags }
    })
    return {
      title: "Speakers in real time before one is refused",
      method: `a newcomer every ${plan.everyMs} ms until one gets 503, ${plan.most} at most; lags of the 5 s after that`,
      findings: [
        finding("speakers served", "sessions", [served]),
        finding("  caption behind the speaker then, p50", "ms", [percentile(lags, 0.5)]),
        finding("  p95", "ms", [percentile(lags, 0.95)]),
      ],
    }
  })
