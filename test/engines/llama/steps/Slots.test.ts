// Which sequence serves a prompt, and how much of it stays.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { chooseSlot, makeSlots, reusable, type Slot } from "#engines/llama/steps/Slots.ts"

const slot = (id: number, tokens: Array<number>, changes: Partial<Slot<null>> = {}): Slot<null> => ({
  id,
  tokens,
  jumps: [],
  checkpoints: [],
  busy: false,
  lastUsed: tokens.length === 0 ? 0 : id + 1,
  ...changes,
})
const checkpoint = (length: number) => ({ length, sizeBytes: 1, saved: null })
const count = (length: number) => Array.from({ length }, (_, at) => at)

it("keeps the common beginning, but always evaluates two tokens", () => {
  expect(reusable(slot(0, [1, 2, 3, 9]), [1, 2, 3, 4, 5, 6], false)).toBe(3)
  expect(reusable(slot(0, [1, 2, 3, 4]), [1, 2, 3, 4], false)).toBe(2)
  expect(reusable(slot(0, [1]), [1], false)).toBe(0)
})

it("a memory that cannot be cut keeps all or goes back to a checkpoint", () => {
  const held = slot(0, [1, 2, 3, 4, 5], { checkpoints: [checkpoint(2), checkpoint(4)] })
  expect(reusable(held, [1, 2, 3, 4, 5, 6, 7], true)).toBe(5)
  expect(reusable(held, [1, 2, 3, 4, 9, 9, 9], true)).toBe(4)
  expect(reusable(held, [1, 2, 3, 9, 9, 9], true)).toBe(2)
  expect(reusable(held, [1, 9, 9, 9], true)).toBe(0)
})

it("a conversation comes back to its sequence", () => {
  const slots = [
    slot(0, [1, 2, ...count(50)]),
    slot(1, [1, 2, ...count(90).map((n) => n + 500)]),
    slot(2, []),
  ]
  const next = [...slots[1]!.tokens, 7, 8, 9]
  expect(chooseSlot(slots, next, false)).toEqual({ slot: slots[1], keep: slots[1]!.tokens.length })
})

it("a newcomer takes the lowest empty sequence, then the one idle longest", () => {
  const used = [slot(0, count(40), { lastUsed: 9 }), slot(1, []), slot(2, [])]
  expect(chooseSlot(used, [900, 901, 902], false)?.slot.id).toBe(1)
  const full = [
    slot(0, count(40), { lastUsed: 9 }),
    slot(1, count(40), { lastUsed: 3 }),
    slot(2, count(40), { lastUsed: 5 }),
  ]
  expect(chooseSlot(full, [900, 901, 902], false)?.slot.id).toBe(1)
})

it("a short shared beginning is no reason to lose a long conversation", () => {
  const slots = [slot(0, count(400), { lastUsed: 9 }), slot(1, [])]
  expect(chooseSlot(slots, [0, 1, 2, 900, 901], false)?.slot.id).toBe(1)
})

it("never a busy one; none when all are busy", () => {
  const slots = makeSlots<null>(2).map((one) => ({ ...one, busy: true }))
  expect(chooseSlot(slots, [1, 2, 3], false)).toBeUndefined()
})

it("what is kept is a common prefix of sequence and prompt, at a length the memory can go back to", () => {
  const token = fc.nat(2)
  const tokens = fc.array(token, { maxLength: 12 })
  const anySlot = fc.record({
    tokens,
    marks: fc.uniqueArray(fc.nat(12), { maxLength: 3 }),
    busy: fc.boolean(),
    lastUsed: fc.nat(9),
  })
  fc.assert(
    fc.property(fc.array(anySlot, { maxLength: 6 }), tokens, fc.boolean(), (drawn, prompt, needs) => {
      const slots = drawn.map(({ marks, ...rest }, id) => {
        const lengths = marks.filter((length) => length <= rest.tokens.length).sort((a, b) => a - b)
        return slot(id, [...rest.tokens], { ...rest, checkpoints: lengths.map(checkpoint) })
      })
      const chosen = chooseSlot(slots, prompt, needs)
      expect(chosen === undefined).toBe(slots.every(({ busy }) => busy))
      if (chosen === undefined) return
      const { slot: picked, keep } = chosen
      expect(picked.busy).toBe(false)
      expect(prompt.slice(0, keep)).toEqual(picked.tokens.slice(0, keep))
      expect(keep).toBeLessThanOrEqual(Math.max(0, prompt.length - 2))
      const reachable = [0, picked.tokens.length, ...picked.checkpoints.map(({ length }) => length)]
      if (needs) expect(reachable).toContain(keep)
    }),
  )
})
