// Whether a conversation understands what the transcription of a file with the same audio does. Audio and transcripts of turns are
// kept while the load runs and compared after it, so that the comparison costs the measured server nothing.

import type { Target } from "../client/Exchange.ts"
import { RequestFailed } from "../client/Failures.ts"
import { listenHz } from "../client/RealtimeRate.ts"
import { transcriptOf } from "../client/TranscriptionRequest.ts"
import { wavOf } from "../data/Clip.ts"

export interface TranscriptsResult {
  readonly compared: number
  readonly equal: number
  /** The first that differ. */
  readonly differences: ReadonlyArray<{ readonly conversation: string; readonly file: string }>
  /** Why it ended before all were compared. */
  readonly failure?: string
}

const mostDifferences = 10

export class TranscriptCheck {
  readonly #most: number
  readonly #kept: Array<{ readonly transcript: string; readonly samples: Int16Array }> = []

  /** @param most turns that are kept, 32 KB for each second */
  constructor(most: number) {
    this.#most = most
  }

  /** @param samples s16, 16 kHz */
  add(transcript: string, samples: () => Int16Array): void {
    if (this.#kept.length < this.#most) this.#kept.push({ transcript, samples: samples() })
  }

  /** undefined if there is nothing to compare. */
  async result(
    target: Target,
    { language, model }: { readonly model: string; readonly language: string | undefined },
    signal: AbortSignal,
  ): Promise<TranscriptsResult | undefined> {
    if (this.#kept.length === 0) return undefined
    const differences: Array<{ readonly conversation: string; readonly file: string }> = []
    let compared = 0
    let equal = 0
    const now = () => ({ compared, equal, differences })
    for (const { samples, transcript } of this.#kept) {
      const clip = {
        name: "turn",
        bytes: wavOf(samples, listenHz),
        fileName: "turn.wav",
        type: "audio/wav",
        seconds: samples.length / listenHz,
        text: "",
        samples,
        wordEnds: [],
      }
      try {
        const ask = { model, clip, language, stream: false }
        const { text } = await transcriptOf(target, ask, signal)
        compared++
        if (text.trim() === transcript.trim()) equal++
        else if (differences.length < mostDifferences)
          differences.push({ conversation: transcript, file: text })
      } catch (cause) {
        if (!(cause instanceof RequestFailed)) throw cause
        return { ...now(), failure: `${cause.message} (${cause.key})` }
      }
    }
    return now()
  }
}
