// One turn of a new conversation through a node, by the harness's client: real time in, what came and when.

import { Clauses } from "#domain/conversation/Clauses.ts"
import { RequestFailed } from "#harness/client/Failures.ts"
import { Session, type TurnDetection } from "#harness/conversation/Session.ts"
import { TranscriptCheck } from "#harness/conversation/TranscriptCheck.ts"
import type { TransportName } from "#harness/conversation/Transport.ts"
import { runTurn } from "#harness/conversation/Turn.ts"
import type { Clip } from "#harness/data/Clip.ts"
import type { Target } from "../support/Connection.ts"
import { instructions, textModel, transcriptionModel } from "./Models.ts"

/** Times in milliseconds from the commit, or where silence ends turns from `speech_stopped`. */
export interface NodeTurn {
  readonly transcript: string
  /** Text of the first piece that was spoken. */
  readonly piece: string
  readonly transcriptMs: number
  readonly createdMs: number
  readonly audioMs: number
  /** How often the node ended the turn before the speech was over. */
  readonly earlyEnds: number
  /** Voice to voice. */
  readonly voiceMs: number
}

interface Turn {
  readonly clip: Clip
  /** undefined: the client commits. */
  readonly silenceMs: number | undefined
  readonly maxTokens: number
  /** Absent: websocket. */
  readonly transport?: TransportName
}

const limitMs = 60_000

/** What the voice was given first. The client sees words, not pieces; the text alone says where the first one ends. */
const firstPieceOf = (text: string): string => {
  const { clauses, pieces } = new Clauses().push(text)
  return pieces[0] ?? clauses.rest
}

export const turnAt = async (
  { key, port }: Target,
  { clip, maxTokens, silenceMs, transport = "websocket" }: Turn,
  signal: AbortSignal,
): Promise<NodeTurn> => {
  const turns: TurnDetection =
    silenceMs === undefined ? { type: "none" } : { type: "server_vad", silence_duration_ms: silenceMs }
  const words: Array<string> = []
  const session = new Session(
    {
      model: textModel,
      transport,
      turns,
      voice: undefined,
      instructions,
      transcriptionModel,
      language: undefined,
      maxTokens,
      pieceMs: 20,
    },
    (event) => {
      if (event.type === "response.output_audio_transcript.delta") words.push(String(event.delta))
    },
  )
  try {
    const headers = { authorization: `Bearer ${key}` }
    await session.open({ base: `http://127.0.0.1:${port}`, headers, timeoutMs: limitMs }, signal)
    const ask = { clip, turns, pauseMs: 100, listenMs: 0, limitMs }
    const { figures } = await runTurn(session, ask, new TranscriptCheck(0), signal)
    const { answers, items } = session.heard
    const answer = answers.at(-1)!
    const item = items.at(-1)!
    const [first] = answer.audio.deliveries
    const { commit_to_sound, stop_to_sound, voice_to_voice } = figures
    const toSound = commit_to_sound ?? stop_to_sound ?? Number.NaN
    const endMs = answer.audio.soundAtMs! - toSound
    return {
      transcript: items.map(({ transcript }) => transcript ?? "").join(" "),
      piece: firstPieceOf(words.join("")),
      transcriptMs: item.transcribedMs! - endMs,
      createdMs: answer.createdMs - endMs,
      audioMs: first!.atMs - endMs,
      earlyEnds: figures.early_ends ?? 0,
      voiceMs: voice_to_voice ?? Number.NaN,
    }
  } finally {
    session.end(new RequestFailed("unfinished", "the turn is over"))
  }
}
