// Audio from outside as mono samples: uploads to transcribe, reference clips to clone. Called by the handlers and
// jobs that own such a file. Each decode has a process to itself, so whatever a file does to the decoder happens to
// its own request alone. Idle processes are kept for the next files: all for a moment, one for a while.

import { Context, Effect, FiberMap, Layer, Queue, type Scope, Semaphore, Stream } from "effect"
import { LISTEN_RATE_HZ } from "#domain/Audio.ts"
import { CompiledCode } from "#domain/CompiledCode.ts"
import { AudioRejected, DecoderFailed } from "./AudioErrors.ts"
import { type DecoderEvent, DecoderProcess, startDecoder } from "./DecoderProcess.ts"
import {
  type DecodedInfo,
  type DecodedTotals,
  type DecodeLimits,
  WINDOW_CHUNKS,
} from "./decoder/DecoderWire.ts"

export type DecodeError = AudioRejected | DecoderFailed

/**
 * There is no limit on duration (specification), so these only stop what no honest 100 MB file reaches: 8 kbit/s MP3
 * is 28 hours, and decodes 800 times faster than real time (measured): 2 minutes of CPU.
 */
export const DEFAULT_LIMITS: DecodeLimits = { maxSeconds: 48 * 3600, maxCpuMs: 600_000 }

export interface Decoded {
  readonly info: DecodedInfo
  /** The next samples (f32, mono, at the rate asked for), or undefined at the end. Memory is bounded by pulling. */
  readonly pull: Effect.Effect<Float32Array | undefined, DecodeError>
  /** The same as a stream, for one consumer; do not mix with `pull`. */
  readonly stream: Stream.Stream<Float32Array, DecodeError>
  /** What was decoded; undefined before the end was pulled. */
  readonly totals: () => DecodedTotals | undefined
}

export interface DecoderOptions {
  /** Decodes at a time, about 100 MB each; the rest wait in line. Jobs must not be allowed to take them all. */
  readonly maxProcesses?: number
  /** Length of that line; past it, `Busy`. */
  readonly maxWaiting?: number
  /** How long the last idle process is kept. A guess: starting one costs 0.2 s, keeping one 90 MB. */
  readonly idleMs?: number
  /** How long the others are kept: files that come together come again together. A guess. */
  readonly spareMs?: number
  /** Silence of a decoder that owes an answer, after which it is killed. Far above one chunk's work (a guess). */
  readonly hangMs?: number
  /** Starts a process; tests replace it to be able to end one. */
  readonly startProcess?: (onDeath: () => void) => DecoderProcess
}

export class Decoder extends Context.Service<
  Decoder,
  {
    /**
     * Opens a file and waits for its first samples, so that a file that is no audio fails here. Closing the scope
     * ends the decoding, finished or not.
     * @param path absolute; its name and extension mean nothing
     */
    readonly decode: (
      path: string,
      options?: { readonly rateHz?: number; readonly limits?: DecodeLimits },
    ) => Effect.Effect<Decoded, DecodeError, Scope.Scope>
    /** Starts a process in the background if none is idle, e.g. while an upload is still arriving. */
    readonly warm: Effect.Effect<void>
  }
>()("edgewise/audio/Decoder") {
  static readonly layer = (options: DecoderOptions = {}) => Layer.effect(Decoder, makeDecoder(options))
}

export const makeDecoder = Effect.fnUntraced(function* (options: DecoderOptions = {}) {
  const { hangMs = 60_000, idleMs = 300_000, maxProcesses = 4, maxWaiting = 64, spareMs = 15_000 } = options
  const compiled = yield* CompiledCode
  const startProcess =
    options.startProcess ?? ((onDeath) => new DecoderProcess(onDeath, () => startDecoder(compiled())))
  const scope = yield* Effect.scope
  const permits = yield* Semaphore.make(maxProcesses)
  /** By number: FiberMap takes two objects without visible fields for the same key. */
  const living = new Map<DecoderProcess, number>()
  let launched = 0
  /** The clocks of the idle processes, by the same numbers. */
  const expiries = yield* FiberMap.make<number>()
  /** The one that was busy last is taken first, so that the others can be done without. */
  let idle: ReadonlyArray<DecoderProcess> = []
  let waiting = 0

  const isIdle = (process: DecoderProcess): boolean => idle.includes(process)
  const leaveIdle = (process: DecoderProcess) => {
    idle = idle.filter((each) => each !== process)
  }

  const launch = (): DecoderProcess => {
    const started = startProcess(() => {
      living.delete(started)
      leaveIdle(started)
    })
    living.set(started, launched++)
    return started
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const each of living.keys()) each.kill()
    }),
  )

  /** Keeps a process for the next file, and ends it when none comes. */
  const keep = (kept: DecoderProcess) => {
    const patienceMs = idle.length === 0 ? idleMs : spareMs
    idle = [...idle, kept]
    const expire = Effect.sync(() => {
      if (!isIdle(kept)) return
      leaveIdle(kept)
      kept.kill()
    })
    return FiberMap.run(expiries, living.get(kept) ?? -1, Effect.andThen(Effect.sleep(patienceMs), expire))
  }
  const borrow = Effect.gen(function* () {
    if (waiting >= maxWaiting) {
      return yield* new DecoderFailed({ reason: "Busy", detail: `${waiting} files wait to be decoded` })
    }
    waiting++
    yield* Semaphore.takeScoped(permits, 1).pipe(Effect.ensuring(Effect.sync(() => waiting--)))
    return yield* Effect.acquireRelease(
      Effect.suspend(() => {
        const taken = idle.at(-1) ?? launch()
        leaveIdle(taken)
        return Effect.as(FiberMap.remove(expiries, living.get(taken) ?? -1), taken)
      }),
      (taken) => {
        taken.detach()
        if (taken.reusable && scope.state._tag !== "Closed") return keep(taken)
        return Effect.sync(() => taken.kill())
      },
    )
  })

  const decode: Decoder["Service"]["decode"] = Effect.fnUntraced(function* (path, request = {}) {
    const { rateHz = LISTEN_RATE_HZ, limits = DEFAULT_LIMITS } = request
    const borrowed = yield* borrow
    // Bounded by the window of acknowledgements: a process that exceeds it is killed.
    const events = yield* Queue.unbounded<DecoderEvent>()
    let unacknowledged = 0
    let open = true
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        open = false
      }),
    )
    borrowed.decode({ path, rateHz, limits }, (event) => {
      if (event.t === "chunk" && ++unacknowledged > WINDOW_CHUNKS) borrowed.kill()
      else Queue.offerUnsafe(events, event)
    })
    const next = Queue.take(events).pipe(
      Effect.timeoutOrElse({
        duration: hangMs,
        orElse: () => {
          borrowed.kill()
          return Effect.fail(
            new DecoderFailed({ reason: "Hung", detail: `the decoder was silent for ${hangMs} ms` }),
          )
        },
      }),
    )
    let info: DecodedInfo | undefined
    let totals: DecodedTotals | undefined
    /** The next chunk or the end; facts on the way are noted. */
    const advance: Effect.Effect<Float32Array | undefined, DecodeError> = Effect.gen(function* () {
      for (;;) {
        if (totals !== undefined) return undefined
        const event = yield* next
        switch (event.t) {
          case "up":
            break
          case "info":
            info = event.info
            break
          case "chunk":
            unacknowledged--
            // Whoever pulls after the scope has closed must not speak to a process that serves another.
            if (open) borrowed.acknowledge()
            return event.samples
          case "end":
            totals = event.totals
            break
          case "rejected":
            return yield* new AudioRejected({ reason: event.reason, detail: event.detail })
          case "died":
            return yield* new DecoderFailed({ reason: "Died", detail: `the decoder failed: ${event.detail}` })
        }
      }
    })

    let first = yield* advance
    if (info === undefined) {
      return yield* new DecoderFailed({
        reason: "Protocol",
        detail: "the decoder sent samples without a header",
      })
    }
    const pull = Effect.suspend(() => {
      if (first === undefined) return advance
      const samples = first
      first = undefined
      return Effect.succeed(samples)
    })
    const stream = Stream.unfold(undefined, () =>
      Effect.map(pull, (samples) => (samples === undefined ? undefined : ([samples, undefined] as const))),
    )
    return { info, pull, stream, totals: () => totals }
  })

  const warm = Effect.suspend(() =>
    idle.length === 0 && living.size < maxProcesses ? keep(launch()) : Effect.void,
  )
  return Decoder.of({ decode, warm })
})
