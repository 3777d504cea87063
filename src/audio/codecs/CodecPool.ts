// The codec threads and the encoders open on them, which keep the CPU work of encoding off the gateway's event loop.
// The codecs themselves are imported only by the threads.
//
// If a thread dies, the encoders open on it fail with a typed error, and it is replaced.
import { Worker } from "node:worker_threads"
import { Context, Effect, Layer, type Scope } from "effect"
import { msToSamples, speechRateHz } from "#domain/audio/Audio.ts"
import { CodecFailed } from "../AudioErrors.ts"
import type { FromCodec, ToCodec } from "./CodecWire.ts"
import { type Encoder, type EncoderOptions, pcmEncoder, wavEncoder } from "./Encoder.ts"
import { oggOpusHeaders } from "./OggOpus.ts"
import { ThreadEncoder } from "./ThreadEncoder.ts"

export interface CodecPoolOptions {
  /** Number of threads. One serves about 50 Opus streams on a free core (measured: 50 × real time). */
  readonly threads?: number
  /** Open encoders of all threads together. A guess, far above what speech models can produce. */
  readonly maxOpen?: number
  /** Longest audio of one encoder. One reply has at most an hour (protocol 8.3). */
  readonly maxMs?: number
  /** Starts a thread. Tests replace it to end a thread at will. */
  readonly spawn?: () => Worker
}

const spawnCodecWorker = () =>
  new Worker(new URL("./codecWorker.ts", import.meta.url), {
    name: "codec",
    execArgv: ["--disable-warning=ExperimentalWarning"],
    env: {},
    // The encoders' windows already bound a thread's memory; this is a second limit in case of a bug. A guess.
    resourceLimits: { maxOldGenerationSizeMb: 512 },
  })

interface Slot {
  worker: Worker | undefined
  /** True if the present worker has finished starting. One that has not is replaced only by the next `open`. */
  up: boolean
  lastError: string
  readonly open: Map<number, ThreadEncoder>
}

export class CodecPool extends Context.Service<
  CodecPool,
  {
    /**
     * Opens an encoder for 24 kHz mono speech. Opus delivers its stream headers before this returns. Closing the scope
     * before `finish` has succeeded aborts the encoding.
     */
    readonly open: (options: EncoderOptions) => Effect.Effect<Encoder, CodecFailed, Scope.Scope>
  }
>()("edgewise/audio/CodecPool") {
  static readonly layer = (options: CodecPoolOptions = {}) => Layer.effect(CodecPool, makeCodecPool(options))
}

export const makeCodecPool = (
  options: CodecPoolOptions,
): Effect.Effect<CodecPool["Service"], never, Scope.Scope> => {
  const { threads = 2, maxOpen = 256, maxMs = 3_600_000, spawn = spawnCodecWorker } = options
  const maxSamples = msToSamples(maxMs, speechRateHz)
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
      // Not after a failed start, which would loop. The next `open` tries again.
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
              return Effect.sync(() => wavEncoder(encoder, speechRateHz, maxSamples))
            case "mp3":
            case "opus":
              return openOnThread(encoder.format, encoder, slots)
          }
        },
      }),
  )
}
