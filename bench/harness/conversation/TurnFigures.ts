// What is measured of one turn, from what came and when.
import { Resampler } from "#audio/Resampler.ts"
import type { Measured } from "../client/Outcome.ts"
import { listenHz, realtimeHz } from "../client/RealtimeRate.ts"
import type { Clip } from "../data/Clip.ts"
import type { FigureName } from "../figures/Figures.ts"
import { play } from "../figures/VirtualPlayer.ts"
import { wordErrorsOf } from "../figures/WordErrors.ts"
import type { Microphone } from "./Microphone.ts"
import type { Answer, Session, TurnDetection } from "./Session.ts"
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
): Measured => {
  const { heard } = session
  const { audio, promptTokens, tokens } = answer
  const { commitMs, lastMs } = said
  const soundMs = audio.soundAtMs ?? Number.NaN
  const items = heard.items.filter(({ transcript }) => transcript !== undefined)
  const transcribedMs = items.at(-1)?.transcribedMs
  const stoppedMs = heard.stopped.findLast((each) => each < soundMs)
  const { starvedMs, underruns } = play(audio.deliveries, session.bufferMs)
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

/** Keeps the audio that the server says it transcribed, with its transcripts. */
export const keepTranscripts = (
  { heard, microphone }: Session,
  turns: TurnDetection,
  { at, samples }: Said,
  check: TranscriptCheck,
): void => {
  for (const { endMs, startMs, transcript } of heard.items) {
    if (transcript === undefined) continue
    const from = turns.type === "none" ? at : positionOf(startMs)
    const to = turns.type === "none" ? microphone.endOf(at, samples) : positionOf(endMs)
    if (from !== undefined && to !== undefined) check.add(transcript, () => heardAt(microphone, from, to))
  }
}

/** More samples than the filter between the two rates reaches; a multiple of 3, the samples of 24 kHz for 2 of 16. */
const around = 600

/** What a transcription model gets of the microphone's positions `from` to `to`: 16 kHz. */
const heardAt = (microphone: Microphone, from: number, to: number): Int16Array => {
  const begin = Math.max(0, from - (from % 3) - around)
  const at = (position: number) => Math.round(((position - begin) * listenHz) / realtimeHz)
  return new Resampler(realtimeHz, listenHz).push(microphone.sent(begin, to + around)).slice(at(from), at(to))
}

const positionOf = (ms: number | undefined): number | undefined =>
  ms === undefined || !Number.isFinite(ms) ? undefined : Math.max(0, Math.round((ms * realtimeHz) / 1000))
