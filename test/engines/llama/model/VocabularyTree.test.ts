// The tree of a vocabulary is made in slices: while nothing is wanted, or for a request that needs it.
import { afterEach, expect, it, vi } from "vitest"
import { VocabularyTree } from "#engines/llama/model/VocabularyTree.ts"
import { Vocabulary } from "#engines/llama/output/Vocabulary.ts"

const size = 20_000

afterEach(() => {
  vi.restoreAllMocks()
})

/** Words of letters; the last token ends a reply. `reads`: tokens that were read, `fails`: whether the next one cannot be. */
const counted = () => {
  const seen = { reads: 0, fails: false }
  const vocabulary = new Vocabulary({
    size,
    spelling: "plain",
    spelled: (token) => {
      if (seen.fails) throw new Error("the model was closed")
      seen.reads++
      return token.toString(26)
    },
    attributes: (token) => (token === size - 1 ? 8 : 4),
    isEnd: (token) => token === size - 1,
    shown: new Set(),
  })
  return { seen, tree: new VocabularyTree(vocabulary) }
}

it("is made between two requests as far as there is time, and the rest of it for the request that needs it", async () => {
  const { seen, tree } = counted()
  // Each look at the clock is half a millisecond later than the one before, so that a slice is some parts of the work however busy the machine is.
  let looks = 0
  vi.spyOn(performance, "now").mockImplementation(() => ++looks / 2)
  let asked = 0
  await tree.prepare(() => asked++ >= 1)
  expect(tree.isMade).toBe(false)
  expect(seen.reads).toBeGreaterThan(0)
  const [one, other] = await Promise.all([tree.get(), tree.get(), tree.prepare(() => false)])
  expect(other).toBe(one)
  expect(tree.isMade).toBe(true)
  // Each token was read once, whatever made the slices.
  expect(seen.reads).toBe(size - 1)
  expect(one.size).toBe(size)
  expect(one.bytesOf(27)).toEqual(new TextEncoder().encode("11"))
  expect(await tree.get()).toBe(one)
})

it("begins again after a failure", async () => {
  const { seen, tree } = counted()
  seen.fails = true
  await expect(tree.get()).rejects.toThrow("the model was closed")
  seen.fails = false
  expect((await tree.get()).size).toBe(size)
})
