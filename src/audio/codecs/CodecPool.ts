// The codec threads and the encoders open on them: encoding costs CPU that the gateway's event loop does not
// have. Called by the speech handler. It knows samples and bytes, not requests, and imports no codec itself.
//
// A thread that dies fails the encoders open on it, each with its own typed error, and is replaced.
import { Worker } from "node:worker_threads"
import { Context, Effect, Layer, type Scope } from "effect"
import { msToSamples, SPEECH_RATE_HZ } from "#domain/audio/Audio.ts"
import { CodecFailed } from "../AudioErrors.ts"
import type { FromCodec, ToCodec } from "./CodecWire.ts"
import { type Encoder, type EncoderOptions, pcmEncoder, wavEncoder } from "./Encoder.ts"
import { oggOpusHeaders } from "./OggOpus.ts"
import { ThreadEncoder } from "./ThreadEncoder.ts"

export interface CodecPoolOptions {
  /** Threads. One keeps up with about 50 streams of Opus on a free core (measured 50 × real time). */
  readonly threads?: number
  /** Encoders open at a time, all threads together; a guess far above what speech models can feed. */
  readonly maxOpen?: number
  /** Longest audio of one encoder. The specification's longest input at its slowest speed is below 30 minutes. */
  readonly maxMs?: number
  /** Starts a thread; tests replace it to be able to end one. */
  readonly spawn?: () => Worker
}

const spawnCodecWorker = () =>
  new Worker(new URL("./codecWorker.ts", import.meta.url), {
    name: "codec",
    execArgv: ["--disable-warning=ExperimentalWarning"],
    env: {},
    // What one thread holds is bounded by the encoders' windows; this is for the day that is wrong. A guess.
    resourceLimits: { maxOldGenerationSizeMb: 512 },
  })

interface Slot {
  worker: Worker | undefined
  /** Whether the present worker ever finished starting: one that did not is replaced on demand only. */
  up: boolean
  lastError: string
  readonly open: Map<number, ThreadEncoder>
}

export class CodecPool extends Context.Service<
  CodecPool,
  {
    /**
     * Opens an encoder for 24 kHz mono speech. Opus hands out its stream headers before this returns. Closing
     * the scope before `finish` succeeded aborts.
     */
    readonly open: (options: EncoderOptions) => Effect.Effect<Encoder, CodecFailed, Scope.Scope>
  }
>()("edgewise/audio/CodecPool") {
  static readonly layer = (options: CodecPoolOptions = {}) => Layer.effect(CodecPool, makeCodecPool(options))
}

export const makeCodecPool = (
  options: CodecPoolOptions = {},
): Effect.Effect<CodecPool["Service"], never, Scope.Scope> => {
  const { threads = 2, maxOpen = 256, maxMs = 3_600_000, spawn = spawnCodecWorker } = options
  const maxSamples = msToSamples(maxMs, SPEECH_RATE_HZ)
  let nextId = 0
  let closed = false

  const start = (slot: Slot): Worker => {
    const worker = spawn()
    slot.worker = worker
    slot.up = false
    worker.on("message", (message: FromCodec) => {
      if (message.t === "up") slot.up = true
      else slot.open.get(message.id)?.receive(message)
    })
    worker.on("error", (cause) => {
      slot.lastError = cause instanceof Error ? cause.name : "unknown"
    })
    worker.on("exit", (code) => {
      if (slot.worker !== worker) return
      slot.worker = undefined
      const orphans = [...slot.open.values()]
      slot.open.clear()
      const detail = `a codec thread ended (exit ${code}${slot.lastError === "" ? "" : `, ${slot.lastError}`})`
      slot.lastError = ""
      for (const encoder of orphans) encoder.fail(new CodecFailed({ reason: "WorkerDied", detail }))
      // Not after a failed start: that would spin. The next `open` tries again.
      if (slot.up && !closed) start(slot)
    })
    return worker
  }

  const openOnThread = (format: "mp3" | "opus", encoder: EncoderOptions, slots: ReadonlyArray<Slot>) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        if (closed)
          return Effect.fail(new CodecFailed({ reason: "Closed", detail: "the codecs are stopped" }))
        const openNow = slots.reduce((sum, slot) => sum + slot.open.size, 0)
        if (openNow >= maxOpen) {
          return Effect.fail(new CodecFailed({ reason: "Busy", detail: `${maxOpen} encoders are open` }))
        }
        const slot = slots.reduce((least, each) => (each.open.size < least.open.size ? each : least))
        const worker = slot.worker ?? start(slot)
        const id = nextId++
        const post = (message: ToCodec, transfer: ReadonlyArray<ArrayBuffer>) =>
          worker.postMessage(message, transfer)
        const thread = new ThreadEncoder(id, encoder.onBytes, post, maxSamples, () => slot.open.delete(id))
        slot.open.set(id, thread)
        post({ t: "open", id, format }, [])
        if (format === "opus") thread.emit(oggOpusHeaders())
        return Effect.succeed(thread)
      }),
      (thread) => Effect.sync(() => thread.close()),
    )

  return Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const slots = Array.from(
          { length: threads },
          (): Slot => ({ worker: undefined, up: false, lastError: "", open: new Map() }),
        )
        for (const slot of slots) start(slot)
        return slots
      }),
      (slots) =>
        Effect.promise(async () => {
          closed = true
          for (const slot of slots) {
            for (const encoder of [...slot.open.values()]) {
              encoder.fail(new CodecFailed({ reason: "Closed", detail: "the codecs were stopped" }))
            }
          }
          await Promise.all(slots.map((slot) => slot.worker?.terminate()))
        }),
    ),
    (slots) =>
      CodecPool.of({
        open: (encoder): Effect.Effect<Encoder, CodecFailed, Scope.Scope> => {
          switch (encoder.format) {
            case "pcm":
              return Effect.sync(() => pcmEncoder(encoder))
            case "wav":
              return Effect.sync(() => wavEncoder(encoder, SPEECH_RATE_HZ, maxSamples))
            case "mp3":
            case "opus":
              return openOnThread(encoder.format, encoder, slots)
          }
        },
      }),
  )
}
