// What is measured of one turn, from what came and when.
import type { Measured } from "../client/Outcome.ts"
import { realtimeHz } from "../client/RealtimeRate.ts"
import type { Clip } from "../data/Clip.ts"
import type { FigureName } from "../figures/Figures.ts"
import { play } from "../figures/VirtualPlayer.ts"
import { wordErrorsOf } from "../figures/WordErrors.ts"
import type { Answer, Session, TurnDetection, UserItem } from "./Session.ts"
import type { TranscriptCheck } from "./TranscriptCheck.ts"

/** The user's part of a turn. Times on the clock of performance.now(). */
export interface Said {
  /** Position of the clip's first sample, and how many it has. */
  readonly at: number
  readonly samples: number
  /** When the first and the last sample of speech were spoken. */
  readonly onsetMs: number
  readonly lastMs: number
  /** When the client ended the turn, where it does. */
  commitMs: number | undefined
  /** Answers that were being given or played when the user began. */
  readonly old: ReadonlyArray<Answer>
}

type Values = { -readonly [name in FigureName]?: number }

/** The comparison of words takes time in proportion to both texts; a runaway transcript is cut. */
const comparable = (transcript: string, reference: string): string =>
  transcript.slice(0, 10 * reference.length + 1_000)

export const measuredOf = (
  session: Session,
  { clip, turns }: { readonly clip: Clip; readonly turns: TurnDetection },
  said: Said,
  answer: Answer,
  broken: number,
  check: TranscriptCheck,
): Measured => {
  const { heard } = session
  const { audio, promptTokens, tokens } = answer
  const { commitMs, lastMs } = said
  const soundMs = audio.soundAtMs ?? Number.NaN
  const items = heard.items.filter(({ transcript }) => transcript !== undefined)
  const transcribedMs = items.at(-1)?.transcribedMs
  const stoppedMs = heard.stopped.findLast((each) => each < soundMs)
  const { starvedMs, underruns } = play(audio.deliveries)
  const figures: Values = {
    ...interruption(session, said),
    order_errors: broken,
    underruns,
    starved: starvedMs,
    audio: audio.audioMs / 1000,
    ...(tokens === undefined ? {} : { tokens }),
    ...(promptTokens === undefined ? {} : { prompt_tokens: promptTokens }),
  }
  // An answer that begins earlier is one to a part of the speech.
  if (soundMs > lastMs) {
    figures.voice_to_voice = soundMs - lastMs
    if (turns.type === "server_vad") figures.beyond_silence = soundMs - lastMs - turns.silence_duration_ms
    if (stoppedMs !== undefined && stoppedMs > lastMs) figures.stop_to_sound = soundMs - stoppedMs
  }
  if (commitMs !== undefined) figures.commit_to_sound = soundMs - commitMs
  if (transcribedMs !== undefined && transcribedMs > lastMs)
    figures.final = transcribedMs - (commitMs ?? lastMs)
  if (turns.type !== "none") figures.early_ends = heard.stopped.filter((each) => each < lastMs).length

  keepTranscripts(session, turns, said, items, check)
  if (items.length === 0) return { figures }
  const transcript = items.map((item) => item.transcript).join(" ")
  const words = wordErrorsOf({ spoken: clip.text, transcribed: comparable(transcript, clip.text) })
  if (words.words === 0) return { figures }
  figures.wer = words.wrong / words.words
  return { figures, words }
}

/** How an old answer ended at this turn's speech; empty if none was being played. */
const interruption = ({ heard }: Session, { old, onsetMs }: Said): Values => {
  const cut = heard.cuts.find(({ answer }) => old.includes(answer))
  if (cut === undefined) return {}
  const { answer, atMs } = cut
  return {
    interrupt_last: Math.max(0, (answer.audio.lastArrivedMs ?? onsetMs) - onsetMs),
    interrupt_stop: Math.max(0, atMs - onsetMs),
    late_audio: answer.lateDeltas,
  }
}

/** Keeps the audio that the server says it transcribed. */
const keepTranscripts = (
  { microphone }: Session,
  turns: TurnDetection,
  { at, samples }: Said,
  items: ReadonlyArray<UserItem>,
  check: TranscriptCheck,
): void => {
  for (const { endMs, startMs, transcript = "" } of items) {
    const from = turns.type === "none" ? at : positionOf(startMs)
    const to = turns.type === "none" ? microphone.endOf(at, samples) : positionOf(endMs)
    if (from !== undefined && to !== undefined) check.add(transcript, () => microphone.sent(from, to))
  }
}

const positionOf = (ms: number | undefined): number | undefined =>
  ms === undefined || !Number.isFinite(ms) ? undefined : Math.max(0, Math.round((ms * realtimeHz) / 1000))
