// Files for the decoder's tests, decoders that count what they send, and programs that misbehave in a decoder's place.
import { type ChildProcess, fork } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { DEFAULT_LIMITS, Decoder, type DecoderOptions, makeDecoder } from "#audio/Decoder.ts"
import { type DecoderEvent, DecoderProcess } from "#audio/DecoderProcess.ts"
import type { DecodeRequest } from "#audio/decoder/DecoderWire.ts"
import { chirp } from "../support/audio/AudioFiles.ts"

export const folder = mkdtempSync(join(tmpdir(), "edgewise-decoder-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
// No extension, and none that could help: the kind of a file is in its bytes.
let files = 0
export const fresh = () => join(folder, `upload-${files++}`)
export const fileOf = (bytes: Uint8Array | string): string => {
  const path = fresh()
  writeFileSync(path, bytes)
  return path
}

/** Counts what arrives, so that a test sees how far a process runs ahead. */
export class WatchedProcess extends DecoderProcess {
  received = 0
  override decode(request: DecodeRequest, listener: (event: DecoderEvent) => void): void {
    super.decode(request, (event) => {
      if (event.t === "chunk") this.received++
      listener(event)
    })
  }
}
export const watched = () => {
  const started: Array<WatchedProcess> = []
  const startProcess = (onDeath: () => void) => {
    const process = new WatchedProcess(onDeath)
    started.push(process)
    return process
  }
  return { started, startProcess }
}
/** Replaces the decoder program by one that misbehaves in the given way. */
export const impostor = (program: string) => {
  const path = join(folder, `impostor-${files++}.cjs`)
  writeFileSync(path, program)
  const spawn = (): ChildProcess => fork(path, [], { execArgv: [], env: {}, serialization: "advanced" })
  return (onDeath: () => void) => new DecoderProcess(onDeath, spawn)
}

export const withDecoder = <A, E>(
  body: (decoder: Decoder["Service"]) => Effect.Effect<A, E, Decoder>,
  options: DecoderOptions = {},
): Effect.Effect<A, E> =>
  Effect.scoped(
    Effect.flatMap(makeDecoder(options), (decoder) => Effect.provideService(body(decoder), Decoder, decoder)),
  )

export const decodeAll = (decoder: Decoder["Service"], path: string, limits = DEFAULT_LIMITS) =>
  Effect.scoped(
    Effect.gen(function* () {
      const decoded = yield* decoder.decode(path, { limits })
      const chunks = yield* Stream.runCollect(decoded.stream)
      const samples = new Float32Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
      let at = 0
      for (const chunk of chunks) {
        samples.set(chunk, at)
        at += chunk.length
      }
      return { info: decoded.info, samples, totals: decoded.totals() }
    }),
  )

export const SECONDS = 2.5
export const speech = chirp(SECONDS * 48_000, 48_000)
