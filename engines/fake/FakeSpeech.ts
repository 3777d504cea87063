// A speech engine without weights: scripted pieces, timings and failures behind the interface of the real ones. A
// product, not a test double: tests make it fail at any piece, benches measure the gateway with it.
import * as Effect from "effect/Effect"
import { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import {
  callFailed,
  type EngineDescriptor,
  type EngineError,
  invalidInput,
  type Outlet,
  type SpeechEngine,
  type SynthesizeEnd,
  type SynthesizeRequest,
} from "../protocol/Engine.ts"
import { decodeOptions } from "../shared/files/EngineSpecFiles.ts"
import { Playout } from "../shared/speech/Playout.ts"
import { FakeSpeechOptions } from "./Options.ts"
import { pieceSamples, type SpeechScript, speechScriptOf } from "./SpeechScript.ts"

const sampleRateHz = 24_000

/** Blocks the event loop for ever, like a native call that never returns. */
const hang = (): never => {
  const cell = new Int32Array(new SharedArrayBuffer(4))
  for (;;) Atomics.wait(cell, 0, 0)
}

/** Runs the failure that a script schedules before a piece. */
const mishap = (script: SpeechScript, index: number): Effect.Effect<void, EngineError> =>
  Effect.suspend(() => {
    if (script.crashAt === index) process.kill(process.pid, "SIGSEGV")
    if (script.hangAt === index) hang()
    return script.failAt === index ? Effect.fail(callFailed("scripted failure")) : Effect.void
  })

const synthesize =
  (
    calls: DeadlineQueue,
    voices: ReadonlyArray<string>,
    { cloning, realTimeFactor }: typeof FakeSpeechOptions.Type,
  ) =>
  (request: SynthesizeRequest, out: Outlet<"speech">): Effect.Effect<SynthesizeEnd, EngineError> =>
    Effect.gen(function* () {
      const { voice } = request
      if ("preset" in voice ? !voices.includes(voice.preset) : !cloning) {
        return yield* invalidInput("voice", "unknown voice")
      }
      const script = speechScriptOf(request.text)
      if (script.refuse !== undefined) return yield* invalidInput(script.refuse, "scripted refusal")
      out.started({ pieces: 1 })
      const priority = request.priority ?? "stream"
      const playout = yield* Playout.make({ calls, rateHz: sampleRateHz, priority }, out)
      for (let index = 0; ; index++) {
        yield* playout.wanted
        yield* mishap(script, index)
        if (index >= script.pieces) break
        yield* playout.whenDue(script.pieceMs === 0 ? Effect.yieldNow : Effect.sleep(script.pieceMs))
        playout.push(pieceSamples(script, index, request.speed))
      }
      const { samples } = playout.end
      const pieceMs = script.claimedMs ?? script.pieceMs
      const told = script.claimedMs !== undefined || script.pieceMs > 0 || realTimeFactor === undefined
      return {
        samples,
        computeMs: told ? script.pieces * pieceMs : (samples * realTimeFactor * 1000) / sampleRateHz,
      }
    })

export const fakeSpeech: EngineDescriptor<"speech"> = {
  adapter: "fake-speech",
  kind: "speech",
  acquire: Effect.fnUntraced(function* (spec) {
    const options = yield* decodeOptions(FakeSpeechOptions, spec)
    const { languages, realTimeFactor, slots } = options
    const voices = options.cloning ? ["default"] : options.voices
    const engine: SpeechEngine = {
      kind: "speech",
      facts: {
        slots,
        voices,
        languages,
        ...(realTimeFactor === undefined ? {} : { realTimeFactor }),
        summary: "scripted noise, no weights",
      },
      synthesize: synthesize(new DeadlineQueue(), voices, options),
    }
    return engine
  }),
}
