// Decodes uploads and reference clips to mono samples, and pictures to pixels. Each decode has a process of its own, so a
// file that crashes its decoder harms only its own request.

import { Context, Effect, Layer, Queue, type Scope, Stream } from "effect"
import { listenRateHz } from "#domain/audio/Audio.ts"
import type { DecodedPicture, PictureRequest } from "#domain/pictures/PictureRequest.ts"
import { report } from "#domain/process/OperatorLog.ts"
import type { Place } from "#domain/queues/FairQueue.ts"
import { AudioRejected, DecoderFailed } from "./AudioErrors.ts"
import { makePictureDecoder, picturesWith } from "./DecodePicture.ts"
import { makePool, type PoolOptions } from "./DecoderPool.ts"
import type { DecoderEvent, DecoderProcess } from "./DecoderProcess.ts"
import {
  type DecodedInfo,
  type DecodedTotals,
  type DecodeLimits,
  type DecodeRequest,
  type RingRequest,
  windowChunks,
} from "./decoder/DecoderWire.ts"

export type DecodeError = AudioRejected | DecoderFailed

/**
 * A file's size limits its audio, and its owner pays for every minute: there is no other limit of duration (protocol 9.1). The longest
 * known file of 100 MB, FLAC whose frames are one value each, has 3,000 hours. Processor time is limited below that of the process
 * (DecoderProcess), so that what reaches it is refused as costly and not taken for a crash.
 */
export const defaultLimits: DecodeLimits = { maxSeconds: Number.POSITIVE_INFINITY, maxCpuMs: 6 * 3_600_000 }

interface Decoded {
  readonly info: DecodedInfo
  /**
   * The next samples (f32, mono, at the requested rate), or undefined at the end. The decoder waits for pulls, which
   * bounds the memory.
   */
  readonly pull: Effect.Effect<Float32Array | undefined, DecodeError>
  /** The same as a stream, for one consumer. Not to be mixed with `pull`. */
  readonly stream: Stream.Stream<Float32Array, DecodeError>
  /** What was decoded. Undefined until the end was pulled. */
  readonly totals: () => DecodedTotals | undefined
}

/** A decode whose samples go to a ring and not through this process. */
export interface DecodedRing extends Pick<Decoded, "info" | "totals"> {
  /** How many more samples lie in the ring, or undefined at the end. `allowUntil` bounds memory and disk. */
  readonly pull: Effect.Effect<number | undefined, DecodeError>
  /** Allows the decoder to write the samples before this one. The samples that they overwrite are no longer needed. */
  readonly allowUntil: (until: number) => void
}

export interface DecoderOptions extends PoolOptions {
  /** Limits of decodes that name none. */
  readonly limits?: DecodeLimits
  /** Silence of a decoder that should reply, after which it is killed. A guess, far above one chunk's work. */
  readonly hangMs?: number
}

/** User and urgency of the decode (see FairQueue). Default: interactive, of no particular user. */
interface DecodeOptions extends Partial<Place> {
  readonly limits?: DecodeLimits
}

export class Decoder extends Context.Service<
  Decoder,
  {
    /**
     * Opens a file and waits for its first samples, so that a file that is no audio fails here. Closing the scope ends
     * the decoding.
     * @param path absolute; the name and extension are ignored
     */
    readonly decode: (
      path: string,
      options?: DecodeOptions & { readonly rateHz?: number },
    ) => Effect.Effect<Decoded, DecodeError, Scope.Scope>
    /**
     * Decodes at 16 kHz into a ring. Fails with `DecoderFailed`, reason `Spool`, if the ring cannot be written. The
     * process may be withdrawn for another user's file: `pull` then fails with `Preempted`, and another call continues
     * from there.
     * @param ring created if missing; samples before `from` are skipped, those from `until` on wait for `allowUntil`
     */
    readonly decodeInto: (
      path: string,
      ring: RingRequest,
      options?: DecodeOptions,
    ) => Effect.Effect<DecodedRing, DecodeError, Scope.Scope>
    /** Decodes a picture file to pixels in another file. Only where `readyForPictures` succeeds. */
    readonly decodePicture: (
      request: PictureRequest,
      place?: Partial<Place>,
    ) => Effect.Effect<DecodedPicture, DecodeError>
    /** Fails with `Absent` if this machine has no decoder. Waits until that is known. */
    readonly ready: Effect.Effect<void, DecoderFailed>
    /** The same for pictures, which only the package node-av decodes. */
    readonly readyForPictures: Effect.Effect<void, DecoderFailed>
    /** Starts a process in the background if none is idle, e.g. while an upload is still arriving. */
    readonly warm: Effect.Effect<void>
    /** Ids of the running processes; their memory counts as the node's. */
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
        ? "check the disk of the data directory"
        : "none if only one file is affected: the next one gets a new decoder",
    facts: { kind: reason },
    kind: reason,
  })

export const makeDecoder = Effect.fnUntraced(function* (options: DecoderOptions = {}) {
  const { hangMs = 60_000, limits: usual = defaultLimits } = options
  const { borrow, pids, ready, warm } = yield* makePool(options)

  /** Starts a decode and waits for its first event for which `asDelivered` returns a value. */
  const begin = Effect.fnUntraced(function* <A>(
    request: DecodeRequest,
    delivery: {
      /** The value of an event for the reader, e.g. a chunk. Undefined for other events. Called once for each event. */
      readonly asDelivered: (event: DecoderEvent) => A | undefined
      /** True if the process sends more than it may. Called when an event arrives. */
      readonly exceeds: (event: DecoderEvent) => boolean
      /** Called when the reader has taken a value. */
      readonly onTaken: (process: DecoderProcess) => void
    },
    { continues = false, urgency = "interactive", user = "" }: DecodeOptions,
    resumable: boolean,
  ) {
    // Bounded by what the process may send without acknowledgement: a process that exceeds it is killed.
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
    /** Sends nothing after the scope has closed, because the process may then serve another file. */
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
    const { rateHz = listenRateHz, limits = usual, ...place } = request
    let unacknowledged = 0
    const { info, pull, totals } = yield* begin(
      { path, rateHz, limits },
      {
        asDelivered: (event) => (event.t === "chunk" ? event.samples : undefined),
        exceeds: (event) => event.t === "chunk" && ++unacknowledged > windowChunks,
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
    const { limits = usual, ...place } = request
    let until = ring.until
    let written = ring.from
    const { info, pull, say, totals } = yield* begin(
      { path, rateHz: listenRateHz, limits, ring },
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
    const allowUntil = (next: number) => {
      until = next
      say((process) => process.allowUntil(next))
    }
    return { info, pull, allowUntil, totals }
  })

  const decodePicture = makePictureDecoder(borrow, hangMs)
  const readyForPictures = Effect.flatMap(ready, picturesWith)
  return Decoder.of({
    decode,
    decodeInto,
    decodePicture,
    pids,
    ready: Effect.asVoid(ready),
    readyForPictures,
    warm,
  })
})
