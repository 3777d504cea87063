// A conversation of `edgewise talk`: files that are said one after the other, or a pipe; answers that are played and printed.
import type { Readable } from "node:stream"
import type { Target } from "#harness/client/Exchange.ts"
import { RequestFailed } from "#harness/client/Failures.ts"
import { type ConversationAsk, Session } from "#harness/conversation/Session.ts"
import { TranscriptCheck } from "#harness/conversation/TranscriptCheck.ts"
import { runTurn } from "#harness/conversation/Turn.ts"
import type { Clip } from "#harness/data/Clip.ts"
import { Loudspeaker } from "./Loudspeaker.ts"
import { PipeSound } from "./PipeSound.ts"
import type { SoundFile } from "./SoundFile.ts"
import type { TalkLines } from "./TalkLines.ts"

export type Sound =
  | { readonly from: "files"; readonly clips: ReadonlyArray<Clip>; readonly interruptMs: number | undefined }
  | { readonly from: "pipe"; readonly input: Readable; readonly rateHz: number }

interface Talk {
  readonly target: Target
  readonly ask: ConversationAsk
  readonly sound: Sound
  readonly lines: TalkLines
  /** undefined: answers are not written anywhere. */
  readonly out: ((onFailure: (why: string) => void) => SoundFile) | undefined
}

/** Silence of the user between two files. */
const pauseMs = 300
/** After a pipe has ended, while no one speaks, an answer may still begin for this long. A guess: engines begin sooner. */
const lastAnswerMs = 2_000
/** A conversation ends after an hour (protocol 19.1). */
const mostMs = 3_600_000

/** Fails with RequestFailed. */
export const converse = async (talk: Talk, signal: AbortSignal): Promise<void> => {
  const { ask, lines, out, sound, target } = talk
  let session: Session | undefined
  const fail = (failure: RequestFailed) => session?.end(failure)
  const file = out?.((why) => fail(new RequestFailed("unreachable", why)))
  const loudspeaker = file === undefined ? undefined : new Loudspeaker(file.write)
  const source = sound.from === "pipe" ? new PipeSound(sound.input, sound.rateHz, fail) : undefined
  let lastEventMs = 0
  session = new Session(
    { ...ask, ...(source === undefined ? {} : { source }) },
    (event, atMs) => {
      lastEventMs = atMs
      lines.see(event, atMs)
      if (event.type === "input_audio_buffer.speech_started") loudspeaker?.silence()
    },
    (samples) => loudspeaker?.play(samples),
  )
  try {
    await session.open(target, signal)
    loudspeaker?.start()
    if (sound.from === "files") return await sayFiles(session, talk, sound, signal)
    await listenToPipe(session, talk, source!, () => lastEventMs, signal)
  } finally {
    loudspeaker?.stop()
    file?.close()
    session.end(new RequestFailed("unfinished", "the conversation is over"))
  }
}

const sayFiles = async (
  session: Session,
  { ask, lines, target }: Talk,
  { clips, interruptMs }: Sound & { readonly from: "files" },
  signal: AbortSignal,
): Promise<void> => {
  for (const [at, clip] of clips.entries()) {
    const isLast = at === clips.length - 1
    const turn = {
      clip,
      turns: ask.turns,
      pauseMs,
      listenMs: isLast ? undefined : interruptMs,
      limitMs: target.timeoutMs,
      onCommit: (atMs: number) => lines.committed(atMs),
    }
    const { figures } = await runTurn(session, turn, new TranscriptCheck(0), signal)
    lines.heard(figures.voice_to_voice)
  }
}

const listenToPipe = async (
  session: Session,
  { ask, lines, target }: Talk,
  source: PipeSound,
  lastEventMs: () => number,
  signal: AbortSignal,
): Promise<void> => {
  const soon = (nowMs: number) => nowMs + 100
  const longest = performance.now() + mostMs
  await session.until(() => source.isOver(), longest, "an hour is over", signal, soon)
  const endedMs = performance.now()
  if (ask.turns.type === "none") {
    lines.committed(endedMs)
    session.send({ type: "input_audio_buffer.commit" })
    session.send({ type: "response.create" })
  }
  const isOver = (): boolean => {
    const { answers, started, stopped } = session.heard
    const nowMs = performance.now()
    const isAnswering = answers.some(({ status }) => status === undefined)
    if (isAnswering || session.playback.isPlaying(nowMs) || started.length > stopped.length) return false
    if (ask.turns.type === "none" && answers.length === 0) return false
    return nowMs - Math.max(endedMs, lastEventMs(), session.playback.endsAtMs) > lastAnswerMs
  }
  const limitMs = endedMs + target.timeoutMs + mostMs
  const isStuck = () => session.heard.answers.length === 0 && performance.now() > endedMs + target.timeoutMs
  await session.until(() => isOver() || isStuck(), limitMs, "no end", signal, soon)
  if (session.heard.items.length === 0)
    throw new RequestFailed("timeout", "no speech was heard in the sound of the pipe")
  if (!isOver()) throw new RequestFailed("timeout", "no answer to the sound of the pipe")
}
