// One turn of a conversation: the user says a clip, the server answers, and the user listens to the end, or speaks again while the
// answer is being played.
import { oneLine, RequestFailed } from "../client/Failures.ts"
import type { Measured } from "../client/Outcome.ts"
import { atRealtimeRate, realtimeHz } from "../client/RealtimeRate.ts"
import type { Clip } from "../data/Clip.ts"
import { type Answer, Heard, type Session, type TurnDetection } from "./Session.ts"
import { type SpeechSpan, speechSpan } from "./SpeechSpan.ts"
import type { TranscriptCheck } from "./TranscriptCheck.ts"
import { keepTranscripts, measuredOf, type Said } from "./TurnFigures.ts"

interface TurnAsk {
  readonly clip: Clip
  readonly turns: TurnDetection
  /** Silence of the user before this turn, unless it interrupts. */
  readonly pauseMs: number
  /** How long the answer is heard before the user speaks again; undefined: to its end. */
  readonly listenMs: number | undefined
  /** For the server to answer, from the end of the speech. */
  readonly limitMs: number
  /** Called when the client ends the turn. */
  readonly onCommit?: (atMs: number) => void
}

/** An answer's length, at most: the harness asks for short ones. */
const mostAnswerMs = 120_000

const spans = new WeakMap<Clip, SpeechSpan>()

const spanOf = (clip: Clip): SpeechSpan => {
  const span = spans.get(clip) ?? speechSpan(atRealtimeRate(clip.samples), realtimeHz)
  if (span === undefined) throw new RequestFailed("wrong reply", `${clip.name} has no speech`)
  spans.set(clip, span)
  return span
}

/** The earliest of the moments that are still to come. */
const soonest = (nowMs: number, ...moments: ReadonlyArray<number | undefined>): number =>
  Math.min(...moments.map((each) => (each === undefined || each <= nowMs ? Number.POSITIVE_INFINITY : each)))

/** Fails with RequestFailed; the session is then of no further use. */
export const runTurn = async (
  session: Session,
  ask: TurnAsk,
  check: TranscriptCheck,
  signal: AbortSignal,
): Promise<Measured> => {
  const { clip, limitMs, listenMs, pauseMs, turns } = ask
  const { microphone, playback } = session
  const span = spanOf(clip)
  const samples = atRealtimeRate(clip.samples)
  const brokenBefore = session.orders.count
  const until = (atMs: number) =>
    session.until(
      (nowMs) => nowMs >= atMs,
      atMs + limitMs,
      "",
      signal,
      () => atMs,
    )

  if (session.answers.every(({ status }) => status !== undefined) && !playback.isPlaying(performance.now()))
    await until(performance.now() + pauseMs)
  const isPlaying = playback.isPlaying(performance.now())
  session.answers = session.answers.filter(({ status }) => status === undefined || isPlaying)
  session.heard = new Heard()

  const at = microphone.say(samples, () => {
    if (turns.type !== "none") return
    said.commitMs = performance.now()
    ask.onCommit?.(said.commitMs)
    session.send({ type: "input_audio_buffer.commit" })
    session.send({ type: "response.create" })
  })
  const said: Said = {
    at,
    samples: samples.length,
    onsetMs: microphone.timeOf(at + span.first),
    lastMs: microphone.timeOf(at + span.last),
    commitMs: undefined,
    old: session.answers,
  }
  if (turns.type === "none" && said.old.length > 0) {
    // Where the client divides the turns, it also ends the answer, when the user begins to speak.
    await until(said.onsetMs)
    if (said.old.some(({ status }) => status === undefined)) session.send({ type: "response.cancel" })
    session.interrupted(performance.now())
  }

  /** The answer to the whole speech, not one that the rest of the speech interrupted; undefined while there is none. */
  const answerOf = (): Answer | undefined =>
    session.heard.answers.findLast(
      ({ interruptedMs, status }) => interruptedMs === undefined && status !== "cancelled",
    )
  const listenedMs = (): number | undefined => {
    const soundAtMs = answerOf()?.audio.soundAtMs
    return soundAtMs === undefined || listenMs === undefined ? undefined : soundAtMs + listenMs
  }
  const isHeard = (nowMs: number): boolean => {
    const answer = answerOf()
    if (answer === undefined || nowMs < said.lastMs) return false
    if (nowMs >= (listenedMs() ?? Number.POSITIVE_INFINITY)) return true
    return answer.status !== undefined && !playback.isPlaying(nowMs)
  }
  const next = (nowMs: number) => soonest(nowMs, said.lastMs, listenedMs(), playback.endsAtMs)
  const limitAtMs = said.lastMs + limitMs
  const hasSound = () => answerOf()?.audio.soundAtMs !== undefined
  try {
    await session.until(
      (nowMs) => isHeard(nowMs) || (hasSound() && nowMs >= said.lastMs),
      limitAtMs,
      "no audible answer to the speech",
      signal,
      next,
    )
    await session.until(isHeard, limitAtMs + mostAnswerMs, "an answer without an end", signal, next)
  } finally {
    // Also those of turns that were not answered: often nothing was understood.
    keepTranscripts(session, turns, said, check)
  }

  const answer = answerOf()!
  if (answer.status === "failed")
    throw new RequestFailed("error event", oneLine(`the answer failed: ${answer.reason}`))
  if (answer.audio.soundAtMs === undefined)
    throw new RequestFailed("wrong reply", oneLine(`an answer without an audible sound (${answer.status})`))
  const broken = session.orders.count - brokenBefore
  return measuredOf(session, ask, said, answer, broken)
}
