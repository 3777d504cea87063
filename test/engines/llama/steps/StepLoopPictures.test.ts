// Rows of pictures in the step loop: other replies go on while they are computed, calls hold rows or tokens but never both, and
// a job that leaves or fails ends no other.
import { expect, it } from "vitest"
import type { PictureSpan, TileRows } from "#engines/llama/vision/Spans.ts"
import { textOf, textOutlet } from "../../../support/engines/EngineHarness.ts"
import { native, open, outcomeOf, say, termsOf, tokensOf } from "./ScriptedLoop.ts"

/** A picture of some rows, which are there when the test says so. Row i is the number -1 - i. */
const heldPicture = (count: number) => {
  let answer: ((rows: TileRows | Error) => void) | undefined
  const counts = { opened: 0, closed: 0 }
  const numbers = Array.from({ length: count }, (_, row) => -1 - row)
  return {
    counts,
    numbers,
    asked: () => answer !== undefined,
    give: (rows: TileRows | Error = Float32Array.from(numbers)) => answer?.(rows),
    span: (at: number): PictureSpan => ({
      at,
      count,
      columns: count,
      tile: 0,
      source: {
        open: () => {
          counts.opened++
          return {
            tile: (_tile, done) => {
              answer = done
            },
            close: () => {
              counts.closed++
            },
          }
        },
      },
    }),
  }
}

const started = (picture: ReturnType<typeof heldPicture>, before: string, after: string) => {
  const out = textOutlet()
  const terms = termsOf({ maxTokens: 8 }, out)
  const prompt = [...tokensOf(before), ...picture.numbers, ...tokensOf(after)]
  return { out, terms: { ...terms, prompt, spans: [picture.span(before.length)] } }
}

it("replies go on while a picture is computed, and the prompt goes on with its rows", async () => {
  const scripted = native()
  const loop = open(scripted, 2)
  const picture = heldPicture(5)
  const { out, terms } = started(picture, "see", "this")
  const job = loop.open(terms)
  const outcome = outcomeOf(loop, job)
  const other = await say(loop, { maxTokens: 30 })
  expect(other.end).toMatchObject({ completionTokens: expect.any(Number) })
  expect(picture.asked()).toBe(true)
  expect(scripted.calls.flat().some(({ tokens }) => tokens.some((token) => token < 0))).toBe(false)
  picture.give()
  await outcome
  expect(out.startedWith).toEqual([{ promptTokens: 12, cachedTokens: 0, imageTokens: 5 }])
  expect(textOf(out).length).toBeGreaterThan(0)
  const rows = scripted.calls.flat().filter(({ tokens }) => tokens.some((token) => token < 0))
  expect(rows.flatMap(({ tokens }) => tokens)).toEqual(picture.numbers)
  expect(picture.counts).toEqual({ opened: 1, closed: 1 })
  await loop.release(job)
  await loop.close()
})

it("a second prompt with the same picture asks for no rows", async () => {
  const scripted = native()
  const loop = open(scripted, 1)
  const picture = heldPicture(4)
  for (const [after, cachedTokens] of [
    ["this", 0],
    ["also", 7],
  ] as const) {
    const { out, terms } = started(picture, "see", after)
    const job = loop.open(terms)
    const outcome = outcomeOf(loop, job)
    if (cachedTokens === 0) {
      while (!picture.asked()) await new Promise((resolve) => setImmediate(resolve))
      picture.give()
    }
    await outcome
    await loop.release(job)
    expect(out.startedWith[0]?.cachedTokens).toBe(cachedTokens)
  }
  expect(picture.counts.opened).toBe(1)
  await loop.close()
})

it("a job that leaves before its rows are there closes its picture and frees its sequence", async () => {
  const loop = open(native(), 1)
  const picture = heldPicture(4)
  const { terms } = started(picture, "see", "this")
  const job = loop.open(terms)
  loop.run(job, () => {})
  while (!picture.asked()) await new Promise((resolve) => setImmediate(resolve))
  await loop.release(job)
  expect(picture.counts).toEqual({ opened: 1, closed: 1 })
  const after = await say(loop, { prompt: "see", maxTokens: 4 })
  expect(after.text.length).toBeGreaterThan(0)
  await loop.close()
})

it("rows that cannot be computed fail their job only", async () => {
  const loop = open(native(), 2)
  const picture = heldPicture(4)
  const { terms } = started(picture, "see", "this")
  const job = loop.open(terms)
  const outcome = outcomeOf(loop, job)
  while (!picture.asked()) await new Promise((resolve) => setImmediate(resolve))
  picture.give(new Error("no memory"))
  await expect(outcome).rejects.toMatchObject({ reason: "Failed", detail: "no memory" })
  await loop.release(job)
  expect((await say(loop, { maxTokens: 4 })).text.length).toBeGreaterThan(0)
  await loop.close()
})
