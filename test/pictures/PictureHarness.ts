// Pictures through a real decoder process, as the node decodes them.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import { makeDecoder } from "#audio/Decoder.ts"

export const fixture = (name: string): Buffer => readFileSync(new URL(`fixtures/${name}`, import.meta.url))

export interface Seen {
  readonly width: number
  readonly height: number
  readonly hash: string
  readonly rgb: Uint8Array
}

/** The colour in the middle of each quarter, row by row. */
export const middles = ({ height, rgb, width }: Seen): ReadonlyArray<ReadonlyArray<number>> =>
  [
    [1, 1],
    [3, 1],
    [1, 3],
    [3, 3],
  ].map(([x = 0, y = 0]) => {
    const at = 3 * (Math.floor((y * height) / 4) * width + Math.floor((x * width) / 4))
    return [...rgb.subarray(at, at + 3)]
  })

/** A decoder for the length of a file of tests. */
export const startPictures = async () => {
  const folder = mkdtempSync(join(tmpdir(), "pictures-"))
  const scope = Scope.makeUnsafe()
  const decoder = await Effect.runPromise(Scope.provide(makeDecoder({ maxProcesses: 1 }), scope))
  let count = 0
  /** The picture, or the tag, reason and text of its refusal. */
  const decode = async (bytes: Uint8Array, maxPixels = 1_000_000): Promise<Seen | string> => {
    const path = join(folder, `in-${count}`)
    const into = join(folder, `out-${count++}`)
    writeFileSync(path, bytes)
    const outcome = await Effect.runPromise(
      decoder.decodePicture({ path, into, maxPixels }).pipe(
        Effect.map((picture) => ({ ...picture, rgb: new Uint8Array(readFileSync(into)) })),
        Effect.catch(({ detail, reason }) => Effect.succeed(`${reason}: ${detail}`)),
      ),
    )
    rmSync(path, { force: true })
    rmSync(into, { force: true })
    return outcome
  }
  const seen = async (bytes: Uint8Array, maxPixels?: number): Promise<Seen> => {
    const outcome = await decode(bytes, maxPixels)
    if (typeof outcome === "string") throw new Error(outcome)
    return outcome
  }
  const stop = async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    rmSync(folder, { recursive: true, force: true })
  }
  return { decode, seen, stop, pids: () => decoder.pids() }
}
