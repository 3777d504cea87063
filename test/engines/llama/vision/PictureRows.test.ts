// Rows of pictures: what is computed once, what is kept, and what a closed picture ends.
import { expect, it } from "vitest"
import { type Planes, TowerInterrupted } from "#engines/llama/tower/Tower.ts"
import type { TowerFile } from "#engines/llama/tower/TowerFile.ts"
import type { PicturePlan } from "#engines/llama/vision/Families.ts"
import { PictureReader } from "#engines/llama/vision/PictureReader.ts"
import { PictureRows } from "#engines/llama/vision/PictureRows.ts"
import type { OpenPicture, TileRows } from "#engines/llama/vision/Spans.ts"
import { pictureOf } from "../../../../bench/pictures/Cases.ts"

const file = { mean: [0, 0, 0], deviation: [1, 1, 1] } as unknown as TowerFile

/** A tower whose pictures are done when the test says so. Each tile is as many pixels wide as its number. */
const heldTower = () => {
  const begun: Array<number> = []
  let end: ((cause?: Error) => void) | undefined
  let wait = Promise.withResolvers<void>()
  return {
    begun,
    /** Resolves when a computation runs. */
    running: async () => {
      while (end === undefined) await wait.promise
    },
    finish: (cause?: Error) => {
      const done = end
      end = undefined
      wait = Promise.withResolvers()
      done?.(cause)
    },
    tower: {
      file,
      encode: ({ width }: Planes) =>
        new Promise<TileRows>((resolve, reject) => {
          begun.push(width)
          end = (cause) => (cause === undefined ? resolve(Float32Array.of(width)) : reject(cause))
          wait.resolve()
        }),
      interrupt: () => {
        const done = end
        end = undefined
        wait = Promise.withResolvers()
        done?.(new TowerInterrupted("interrupted"))
      },
    },
  }
}

const planOf = (tiles: number): PicturePlan => ({
  parts: [],
  tiles: async () =>
    Array.from({ length: tiles }, (_, at) => ({
      width: at + 1,
      height: 1,
      rgb: new Uint8Array(3 * (at + 1)),
    })),
})

const rowsOf = (open: OpenPicture, tile: number): Promise<TileRows | Error> =>
  new Promise((resolve) => open.tile(tile, resolve))

const options = { cacheBytes: 1_000, threads: () => 1 }

it("computes a picture once for all that show it, and never again while it is kept", async () => {
  const held = heldTower()
  const rows = new PictureRows({ ...options, tower: held.tower })
  const source = rows.source("a", pictureOf(0), planOf(1))
  const [first, second] = [source.open(), rows.source("a", pictureOf(0), planOf(1)).open()]
  const both = Promise.all([rowsOf(first, 0), rowsOf(second, 0)])
  await held.running()
  held.finish()
  expect(await both).toEqual([Float32Array.of(1), Float32Array.of(1)])
  first.close()
  second.close()
  expect(await rowsOf(source.open(), 0)).toEqual(Float32Array.of(1))
  expect(held.begun).toEqual([1])
})

it("computes the next tiles before they are asked for, one after the other", async () => {
  const held = heldTower()
  const rows = new PictureRows({ ...options, tower: held.tower })
  const open = rows.source("a", pictureOf(0), planOf(3)).open()
  const first = rowsOf(open, 0)
  for (let tile = 0; tile < 3; tile++) {
    await held.running()
    expect(held.begun.length).toBe(tile + 1)
    held.finish()
    await first
  }
  expect(await rowsOf(open, 2)).toEqual(Float32Array.of(3))
  expect(held.begun).toEqual([1, 2, 3])
})

it("ends the computation that no request wants any more, and goes on with the next picture", async () => {
  const held = heldTower()
  const rows = new PictureRows({ ...options, tower: held.tower })
  const left = rows.source("left", pictureOf(0), planOf(5)).open()
  void rowsOf(left, 0)
  await held.running()
  const other = rowsOf(rows.source("other", pictureOf(1), planOf(1)).open(), 0)
  left.close()
  await held.running()
  held.finish()
  expect(await other).toEqual(Float32Array.of(1))
  expect(held.begun).toEqual([1, 1])
})

it("a failure reaches all that wait, and the next request tries again", async () => {
  const held = heldTower()
  const rows = new PictureRows({ ...options, tower: held.tower })
  const source = rows.source("a", pictureOf(0), planOf(1))
  const failed = rowsOf(source.open(), 0)
  await held.running()
  held.finish(new Error("no memory"))
  expect(await failed).toEqual(new Error("no memory"))
  const again = rowsOf(source.open(), 0)
  await held.running()
  held.finish()
  expect(await again).toEqual(Float32Array.of(1))
})

it("keeps as many bytes as it may, and none while memory is short", async () => {
  const held = heldTower()
  const rows = new PictureRows({ ...options, cacheBytes: 8, tower: held.tower })
  const ask = async (key: string) => {
    const before = held.begun.length
    const open = rows.source(key, pictureOf(0), planOf(1)).open()
    const answer = rowsOf(open, 0)
    await Promise.race([answer, held.running()])
    held.finish()
    await answer
    open.close()
    return held.begun.length > before
  }
  expect([await ask("a"), await ask("b"), await ask("a"), await ask("b")]).toEqual([true, true, false, false])
  expect([await ask("c"), await ask("b"), await ask("a")]).toEqual([true, false, true])
  rows.lean(true)
  expect([await ask("a"), await ask("a")]).toEqual([true, true])
})

it("closing ends what is computed", async () => {
  const held = heldTower()
  const rows = new PictureRows({ ...options, tower: held.tower })
  void rowsOf(rows.source("a", pictureOf(0), planOf(2)).open(), 0)
  await held.running()
  await rows.close()
  expect(held.begun).toEqual([1])
})

it("the rows of a picture serve the owner that showed it, and no other", async () => {
  const held = heldTower()
  const mlp = { ...file, projector: "mlp", size: 28, patch: 14, merge: 1 } as unknown as TowerFile
  const tower = { ...held.tower, file: mlp }
  const reader = new PictureReader(mlp, new PictureRows({ ...options, tower }))
  const show = async (owner: number) => {
    const spans = reader.read(pictureOf(3), owner).flatMap((piece) => ("span" in piece ? [piece] : []))
    const before = held.begun.length
    const open = spans[0]!.span.source.open()
    const answer = rowsOf(open, 0)
    await Promise.race([answer, held.running()])
    held.finish()
    await answer
    open.close()
    return { computed: held.begun.length > before, numbers: spans[0]!.numbers }
  }
  const first = await show(1)
  const again = await show(1)
  const other = await show(2)
  expect([first.computed, again.computed, other.computed]).toEqual([true, false, true])
  expect(again.numbers).toEqual(first.numbers)
  expect(other.numbers).not.toContain(first.numbers[0])
})
