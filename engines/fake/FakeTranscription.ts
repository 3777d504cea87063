// A transcription engine without weights: made-up words (FakeWords), scripted timings and failures, behind the
// interface of the real ones. A product, not a test double: tests make it fail at any place of the audio, benches measure
// the gateway with it. One call computes at a time, as in the real engines.
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import {
  callFailed,
  type EngineDescriptor,
  type EngineError,
  type Outlet,
  type TranscribeEnd,
  type TranscribeRequest,
  type TranscriptionEngine,
} from "../protocol/Engine.ts"
import { decodeOptions } from "../shared/files/EngineSpecFiles.ts"
import { unknownLanguage } from "../shared/listening/UnknownLanguage.ts"
import { closedSeconds, fakeTranscript, marks } from "./FakeWords.ts"
import { FakeTranscriptionOptions } from "./Options.ts"

/** The window of the first transcription family, seconds. */
const windowSeconds = 30

/** Blocks the event loop for ever, like a native call that never returns. */
const hang = (): never => {
  const cell = new Int32Array(new SharedArrayBuffer(4))
  for (;;) Atomics.wait(cell, 0, 0)
}

/** Runs the failure that sample values schedule. */
const mishap = (samples: Float32Array): Effect.Effect<void, EngineError> =>
  Effect.suspend(() => {
    if (samples.includes(marks.crash)) process.kill(process.pid, "SIGSEGV")
    if (samples.includes(marks.hang)) hang()
    return samples.includes(marks.fail) ? Effect.fail(callFailed("scripted failure")) : Effect.void
  })

export const fakeTranscription: EngineDescriptor<"transcription"> = {
  adapter: "fake-transcription",
  kind: "transcription",
  acquire: Effect.fnUntraced(function* (spec) {
    const { callMs, captions, languages, pieceSeconds, scripted, slots, translates, words } =
      yield* decodeOptions(FakeTranscriptionOptions, spec)
    const gate = Semaphore.makeUnsafe(1)
    const transcribe = Effect.fnUntraced(function* (
      request: TranscribeRequest,
      out: Outlet<"transcription">,
    ): Effect.fn.Return<TranscribeEnd, EngineError> {
      const language = request.language ?? languages[0] ?? "en"
      if (!languages.includes(language)) return yield* unknownLanguage(language)
      out.started({ language })
      const tookMs = request.caption === true ? (captions?.callMs ?? callMs) : callMs
      if (tookMs > 0) yield* gate.withPermit(Effect.sleep(tookMs))
      if (scripted) yield* mishap(request.samples)
      const transcript = fakeTranscript({ ...request, language }, pieceSeconds, words)
      for (const segment of transcript.segments) {
        if (out.paused()) yield* out.resumed
        out.push(request.translate === true ? { ...segment, text: segment.text.toUpperCase() } : segment)
      }
      return transcript.end
    })
    const engine: TranscriptionEngine = {
      kind: "transcription",
      facts: {
        slots,
        windowSeconds: windowSeconds,
        closedSeconds: closedSeconds(pieceSeconds),
        languages,
        ...(translates ? { translates } : {}),
        ...(captions === undefined
          ? {}
          : { captions: { seconds: captions.seconds, captionMs: captions.callMs, windowMs: callMs } }),
        summary: "made-up words, no weights",
      },
      transcribe,
    }
    return engine
  }),
}
