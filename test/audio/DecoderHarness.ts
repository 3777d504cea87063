// Files for the decoder's tests, decoders that count what they send, and programs that misbehave in a decoder's place. Tests
// of `eachDecoder` run with the package node-av and with the machine's `ffmpeg`.
import { type ChildProcess, fork } from "node:child_process"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { beforeAll, describe } from "@effect/vitest"
import { Effect, Exit, Scope, Stream } from "effect"
import type { TestOptions } from "vitest"
import { Decoder, type DecoderOptions, defaultLimits, makeDecoder } from "#audio/Decoder.ts"
import { chooseDecoder } from "#audio/DecoderChoice.ts"
import { binding, type DecoderEvent, DecoderProcess, startDecoder } from "#audio/DecoderProcess.ts"
import type { DecodeRequest, DecoderProgram } from "#audio/decoder/DecoderWire.ts"
import { chirp } from "../support/audio/AudioFiles.ts"
import { has, needs } from "../support/groups/Needs.ts"
import { inLong } from "../support/groups/Runs.ts"

/** Several files of tests share this module; the folder goes with the run (OneTemporaryFolder). */
export const folder = mkdtempSync(join(tmpdir(), "edgewise-decoder-"))
// No extension, and none that could help: the kind of a file is in its bytes.
let files = 0
export const fresh = () => join(folder, `upload-${files++}`)
export const fileOf = (bytes: Uint8Array | string): string => {
  const path = fresh()
  writeFileSync(path, bytes)
  return path
}

/** Counts what arrives, so that a test sees how far a process runs ahead. */
class WatchedProcess extends DecoderProcess {
  received = 0
  override decode(request: DecodeRequest, listener: (event: DecoderEvent) => void): void {
    super.decode(request, (event) => {
      if (event.t === "chunk") this.received++
      listener(event)
    })
  }
}
export const watchedWith = (program: DecoderProgram) => () => {
  const started: Array<WatchedProcess> = []
  const startProcess = (onDeath: () => void) => {
    const process = new WatchedProcess(onDeath, (own) => startDecoder(own, undefined, program))
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

const withDecoderOf =
  (program: DecoderProgram) =>
  <A, E>(
    body: (decoder: Decoder["Service"]) => Effect.Effect<A, E, Decoder>,
    options: DecoderOptions = {},
  ): Effect.Effect<A, E> =>
    Effect.scoped(
      Effect.flatMap(makeDecoder({ program: Effect.succeed(program), ...options }), (decoder) =>
        Effect.provideService(body(decoder), Decoder, decoder),
      ),
    )

/** One decoder for all tests of a group, which leave it as it was. To be called where the group is described. */
const lastingWith = (program: DecoderProgram) => () => {
  let lasting: Decoder["Service"]
  beforeAll(async () => {
    const scope = Scope.makeUnsafe()
    const made = makeDecoder({ program: Effect.succeed(program) })
    lasting = await Effect.runPromise(Scope.provide(made, scope))
    return () => Effect.runPromise(Scope.close(scope, Exit.void))
  })
  return <A, E>(body: (decoder: Decoder["Service"]) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => body(lasting))
}

/** The machine's program; undefined if there is none. */
export const ffmpeg = has("ffmpeg")
  ? (await Effect.runPromise(chooseDecoder("ffmpeg", process.env.PATH ?? ""))).program
  : undefined

export const toolsOf = (program: DecoderProgram) => ({
  program,
  /** Times a program is started, for tests with hundreds of files: a start of `ffmpeg` takes 0.1 s. */
  patience: program.kind === "ffmpeg" ? 0.1 : 1,
  withDecoder: withDecoderOf(program),
  lasting: lastingWith(program),
  watched: watchedWith(program),
  /** Options of a test that `npm test` runs with the package alone: every file is a start of the other one's program. */
  once: program.kind === "ffmpeg" ? inLong : {},
})

/** The same tests for each decoder. `second`: options of those of the second one, e.g. `inLong` where the tests are about code that both share. */
export const eachDecoder = (
  what: string,
  tests: (tools: ReturnType<typeof toolsOf>) => void,
  second: TestOptions = {},
): void => {
  describe(`${what} node-av`, () => tests(toolsOf(binding)))
  describe(`${what} ffmpeg`, { ...needs("ffmpeg"), ...second }, () => tests(toolsOf(ffmpeg ?? binding)))
}

/** Runs the same with both decoders; their results, the package's first. */
export const byBoth = <A, E>(
  use: (program: DecoderProgram) => Effect.Effect<A, E>,
): Effect.Effect<readonly [A, A], E> =>
  Effect.all([use(binding), Effect.suspend(() => use(ffmpeg ?? binding))])

export const decodeAll = (decoder: Decoder["Service"], path: string, limits = defaultLimits) =>
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

export const seconds = 2.5
export const speech = chirp(seconds * 48_000, 48_000)
