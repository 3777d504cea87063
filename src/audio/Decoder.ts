// Audio from outside as mono samples: uploads to transcribe, reference clips to clone. Called by the handlers and jobs that
// own such a file. Each decode has a process to itself, so a file that crashes its decoder harms its own request alone.

import { Context, Effect, Layer, Queue, type Scope, Stream } from "effect"
import { LISTEN_RATE_HZ } from "#domain/audio/Audio.ts"
import { report } from "#domain/process/OperatorLog.ts"
import type { Place } from "#domain/queues/WaitingLine.ts"
import { AudioRejected, DecoderFailed } from "./AudioErrors.ts"
import { makePool, type PoolOptions } from "./DecoderPool.ts"
import type { DecoderEvent, DecoderProcess } from "./DecoderProcess.ts"
import {
  type DecodedInfo,
  type DecodedTotals,
  type DecodeLimits,
  type DecodeRequest,
  type RingRequest,
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

/** A decode whose samples the gateway does not see. */
export interface DecodedRing extends Pick<Decoded, "info" | "totals"> {
  /** How many more samples lie in the ring, or undefined at the end. Memory and disk are bounded by `room`. */
  readonly pull: Effect.Effect<number | undefined, DecodeError>
  /** Samples before this one may be written: those that lie where they will are no longer needed. */
  readonly room: (until: number) => void
}

export interface DecoderOptions extends PoolOptions {
  /** Silence of a decoder that owes an answer, after which it is killed. Far above one chunk's work (a guess). */
  readonly hangMs?: number
}

/** Whose decode it is, see WaitingLine; interactive and of no particular user where absent. */
export interface DecodeOptions extends Partial<Place> {
  readonly limits?: DecodeLimits
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
      options?: DecodeOptions & { readonly rateHz?: number },
    ) => Effect.Effect<Decoded, DecodeError, Scope.Scope>
    /**
     * The same at 16 kHz into a ring. Failing to write it is `DecoderFailed`, reason `Spool`. Its process may be taken
     * away for another user's file: then `pull` fails with `Preempted`, and another call goes on from there.
     * @param ring made where it is missing; `from` samples are passed over, those from `until` on wait for `room`
     */
    readonly decodeInto: (
      path: string,
      ring: RingRequest,
      options?: DecodeOptions,
    ) => Effect.Effect<DecodedRing, DecodeError, Scope.Scope>
    /** Starts a process in the background if none is idle, e.g. while an upload is still arriving. */
    readonly warm: Effect.Effect<void>
    /** Of the processes that run: their memory is the node's. */
    readonly pids: () => ReadonlyArray<number>
  }
>()("edgewise/audio/Decoder") {
  static readonly layer = (options: DecoderOptions = {}) => Layer.effect(Decoder, makeDecoder(options))
}

const reportDecoder = ({ detail, reason }: DecoderFailed): Effect.Effect<void> =>
  report({
    event: "decoder failed",
    reason: detail,
    action:
      reason === "Spool"
        ? "look at the disk of the data directory"
        : "nothing if it stays with one file: the next one gets a new decoder",
    facts: { kind: reason },
    kind: reason,
  })

export const makeDecoder = Effect.fnUntraced(function* (options: DecoderOptions = {}) {
  const { hangMs = 60_000 } = options
  const { borrow, pids, warm } = yield* makePool(options)

  /** Begins a decode and waits for the first of what `asDelivered` knows. */
  const begin = Effect.fnUntraced(function* <A>(
    request: DecodeRequest,
    delivery: {
      /** A chunk or the like, as it is handed on; undefined for facts on the way. Asked once for each event. */
      readonly asDelivered: (event: DecoderEvent) => A | undefined
      /** Sends more than it was allowed to. Asked as events arrive. */
      readonly exceeds: (event: DecoderEvent) => boolean
      /** One was taken by its reader. */
      readonly onTaken: (process: DecoderProcess) => void
    },
    { continues = false, urgency = "interactive", user = "" }: DecodeOptions,
    resumable: boolean,
  ) {
    // Bounded by what the process may send without being answered: one that exceeds it is killed.
    const events = yield* Queue.unbounded<DecoderEvent | { readonly t: "preempted" }>()
    const { delivers, process: borrowed } = yield* borrow({
      user,
      urgency,
      continues,
      ...(resumable ? { onPreempted: () => void Queue.offerUnsafe(events, { t: "preempted" }) } : {}),
    })
    let open = true
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        open = false
      }),
    )
    borrowed.decode(request, (event) => {
      if (event.t === "chunk" || event.t === "written") delivers()
      if (delivery.exceeds(event)) borrowed.kill()
      else Queue.offerUnsafe(events, event)
    })
    /** Whoever speaks after the scope has closed must not speak to a process that serves another. */
    const say = (what: (process: DecoderProcess) => void) => {
      if (open) what(borrowed)
    }
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
    const advance: Effect.Effect<A | undefined, DecodeError> = Effect.gen(function* () {
      for (;;) {
        if (totals !== undefined) return undefined
        const event = yield* next
        if (event.t === "preempted") {
          open = false
          return yield* new DecoderFailed({ reason: "Preempted", detail: "another file has the decoder" })
        }
        const delivered = delivery.asDelivered(event)
        if (delivered !== undefined) {
          say(delivery.onTaken)
          return delivered
        }
        switch (event.t) {
          case "info":
            info = event.info
            break
          case "end":
            totals = event.totals
            break
          case "rejected":
            return yield* new AudioRejected({ reason: event.reason, detail: event.detail })
          case "unwritable":
            return yield* new DecoderFailed({
              reason: "Spool",
              detail: `decoded audio could not be stored: ${event.code}`,
            })
          case "died":
            return yield* new DecoderFailed({ reason: "Died", detail: `the decoder failed: ${event.detail}` })
        }
      }
    })

    const reported = Effect.tapError(advance, (error) =>
      error._tag === "DecoderFailed" ? reportDecoder(error) : Effect.void,
    )
    let first = yield* reported
    if (info === undefined) {
      return yield* new DecoderFailed({
        reason: "Protocol",
        detail: "the decoder sent samples without a header",
      })
    }
    const pull = Effect.suspend(() => {
      if (first === undefined) return reported
      const delivered = first
      first = undefined
      return Effect.succeed(delivered)
    })
    return { info, pull, say, totals: () => totals }
  })

  const decode: Decoder["Service"]["decode"] = Effect.fnUntraced(function* (path, request = {}) {
    const { rateHz = LISTEN_RATE_HZ, limits = DEFAULT_LIMITS, ...place } = request
    let unacknowledged = 0
    const { info, pull, totals } = yield* begin(
      { path, rateHz, limits },
      {
        asDelivered: (event) => (event.t === "chunk" ? event.samples : undefined),
        exceeds: (event) => event.t === "chunk" && ++unacknowledged > WINDOW_CHUNKS,
        onTaken: (process) => {
          unacknowledged--
          process.acknowledge()
        },
      },
      place,
      false,
    )
    const stream = Stream.unfold(undefined, () =>
      Effect.map(pull, (samples) => (samples === undefined ? undefined : ([samples, undefined] as const))),
    )
    return { info, pull, stream, totals }
  })

  const decodeInto: Decoder["Service"]["decodeInto"] = Effect.fnUntraced(function* (
    path,
    ring,
    request = {},
  ) {
    const { limits = DEFAULT_LIMITS, ...place } = request
    let until = ring.until
    let written = ring.from
    const { info, pull, say, totals } = yield* begin(
      { path, rateHz: LISTEN_RATE_HZ, limits, ring },
      {
        asDelivered: (event) => (event.t === "written" ? event.samples : undefined),
        exceeds: (event) => {
          if (event.t !== "written") return false
          written += event.samples
          return !(event.samples > 0 && written <= until)
        },
        onTaken: () => {},
      },
      place,
      true,
    )
    const room = (next: number) => {
      until = next
      say((process) => process.room(next))
    }
    return { info, pull, room, totals }
  })

  return Decoder.of({ decode, decodeInto, pids, warm })
})
