// Which sequence serves a prompt, and how much of it stays.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { SequenceMemory } from "#engines/llama/steps/SequenceMemory.ts"
import { chooseSlot, makeSlots, reusable, type Slot } from "#engines/llama/steps/Slots.ts"
import { runs } from "../../../support/groups/Runs.ts"
import { native } from "./ScriptedLoop.ts"

const slot = (id: number, tokens: Array<number>, changes: Partial<Slot<null>> = {}): Slot<null> => ({
  id,
  owner: 1,
  tokens,
  jumps: [],
  checkpoints: [],
  busy: false,
  lastUsed: tokens.length === 0 ? 0 : id + 1,
  ...changes,
})
const checkpoint = (length: number) => ({ length, sizeBytes: 1, saved: null })
const own = (prompt: ReadonlyArray<number>) => ({ prompt, owner: 1, ready: 0 })
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
  expect(chooseSlot(slots, own(next), false)).toEqual({
    slot: slots[1],
    keep: slots[1]!.tokens.length,
    given: false,
  })
})

it("a newcomer takes the lowest empty sequence, then the one idle longest", () => {
  const used = [slot(0, count(40), { lastUsed: 9 }), slot(1, []), slot(2, [])]
  expect(chooseSlot(used, own([900, 901, 902]), false)?.slot.id).toBe(1)
  const two = [slot(0, count(40), { lastUsed: 3 }), slot(1, count(40), { lastUsed: 9 }), slot(2, [])]
  expect(chooseSlot(two, own([900, 901, 902]), false)?.slot.id).toBe(2)
  const full = [
    slot(0, count(40), { lastUsed: 9 }),
    slot(1, count(40), { lastUsed: 3 }),
    slot(2, count(40), { lastUsed: 5 }),
  ]
  expect(chooseSlot(full, own([900, 901, 902]), false)?.slot.id).toBe(1)
})

it("a newcomer's sequence is beside those that run, if it is one of the older half", () => {
  const ages = (...lastUsed: ReadonlyArray<number>) =>
    lastUsed.map((used, id) =>
      slot(id, count(40), used === 0 ? { busy: true, lastUsed: 9 } : { lastUsed: used }),
    )
  const chosen = (...lastUsed: ReadonlyArray<number>) =>
    chooseSlot(ages(...lastUsed), own([900, 901, 902]), false)?.slot.id
  expect(chosen(1, 2, 3, 0, 5, 6)).toBe(2)
  expect(chosen(1, 2, 6, 0, 5, 3)).toBe(0)
  expect(chosen(4, 0, 3, 0, 1, 2)).toBe(4)
  expect(chosen(4, 0, 2, 0, 1, 3)).toBe(2)
})

it("replies that come and go run side by side: half of the sequences are one or two rows of neighbours most of the time", () => {
  const slots = makeSlots<null>(16)
  let now = 0
  let random = 1
  let rows = 0
  const rounds = 4_000
  for (let round = 0; round < rounds; round++) {
    const busy = slots.filter((one) => one.busy)
    random = (random * 48_271) % 2_147_483_647
    if (busy.length === 8) busy[random % 8]!.busy = false
    const { slot: taken } = chooseSlot(slots, own([round, 1, 2]), false)!
    taken.tokens = [round]
    taken.lastUsed = ++now
    taken.busy = true
    rows += slots.filter((one, id) => one.busy && slots[id - 1]?.busy !== true).length
  }
  // The oldest sequence each time gives 4.5, and only ones of the older half 3.3.
  expect(rows / rounds).toBeLessThan(2.6)
})

it("a short shared beginning is no reason to lose a long conversation", () => {
  const slots = [slot(0, count(400), { lastUsed: 9 }), slot(1, [])]
  expect(chooseSlot(slots, own([0, 1, 2, 900, 901]), false)?.slot.id).toBe(1)
})

it("never a busy one; none when all are busy", () => {
  const slots = makeSlots<null>(2).map((one) => ({ ...one, busy: true }))
  expect(chooseSlot(slots, own([1, 2, 3]), false)).toBeUndefined()
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
      const chosen = chooseSlot(slots, own(prompt), needs)
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

it("the sequence of another owner is never continued, and not cut while another is older or empty", () => {
  const theirs = slot(0, count(40), { owner: 2, lastUsed: 9 })
  const chosen = chooseSlot([theirs, slot(1, [])], own([...count(40), 7, 8]), false)
  expect(chosen).toEqual({ slot: expect.objectContaining({ id: 1 }), keep: 0, given: false })
  const older = slot(1, count(20), { owner: 3, lastUsed: 4 })
  expect(chooseSlot([theirs, older], own([...count(40), 7, 8]), false)).toEqual({
    slot: older,
    keep: 0,
    given: false,
  })
})

interface Sent {
  readonly owner: number
  readonly prompt: ReadonlyArray<number>
  /** Tokens of the beginning that are declared as shared. */
  readonly shared: number
  /** Requests of the history that still run when this one arrives. */
  readonly lasts: number
}

/** What each request of the history was told: how many of its tokens were kept. */
const keptOf = async (slots: number, history: ReadonlyArray<Sent>): Promise<ReadonlyArray<number>> => {
  const scripted = native()
  const memory = new SequenceMemory({
    native: scripted.native,
    slots,
    needsCheckpoints: false,
    checkpointBytes: 1_000,
  })
  const running: Array<{ readonly slot: Slot<never>; readonly until: number }> = []
  const kept: Array<number> = []
  for (const [at, { lasts, owner, prompt, shared }] of history.entries()) {
    for (const [index, { slot, until }] of [...running.entries()].reverse())
      if (until <= at || running.length >= slots) {
        slot.busy = false
        running.splice(index, 1)
      }
    const wanted = memory.wanted(prompt, owner, shared)
    const chosen = memory.take(wanted)!
    const length = await memory.begin(chosen, wanted)
    const { slot } = chosen
    expect(slot.tokens).toEqual(prompt.slice(0, length))
    const evaluate = async (to: number) => {
      const tokens = prompt.slice(slot.tokens.length, to)
      const position = slot.tokens.length
      if (tokens.length === 0) return
      await scripted.native.decode([{ sequenceId: slot.id, position, tokens, logits: false }])
      slot.tokens.push(...tokens)
    }
    if (length < shared) {
      await evaluate(shared)
      await memory.share(slot)
    }
    await evaluate(prompt.length)
    kept.push(length)
    running.push({ slot: slot as Slot<never>, until: at + 1 + lasts })
  }
  return kept
}

const declared = [5, 5, 5, 5]
const someTokens = fc.array(fc.nat(2), { minLength: 3, maxLength: 14 })
const drawnRequest = fc.record({
  owner: fc.integer({ min: 1, max: 3 }),
  prompt: someTokens,
  /** What owners 2 and 3 send instead in another run. */
  other: someTokens,
  isShared: fc.boolean(),
  lasts: fc.nat(2),
})
type Drawn = typeof drawnRequest extends fc.Arbitrary<infer T> ? T : never
const histories = fc.array(drawnRequest, { minLength: 2, maxLength: 16 })
const sentOf = (drawn: ReadonlyArray<Drawn>, own: (one: Drawn) => ReadonlyArray<number>) =>
  drawn.map((one) => ({
    owner: one.owner,
    lasts: one.lasts,
    prompt: [...(one.isShared ? declared : []), ...own(one)],
    shared: one.isShared ? declared.length : 0,
  }))
const ofFirst = (drawn: ReadonlyArray<Drawn>, kept: ReadonlyArray<number>) =>
  kept.filter((_, at) => drawn[at]!.owner === 1)

it("in random histories nothing is kept of the prompts of others, and their texts change nothing", () =>
  fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 4 }), histories, async (slots, drawn) => {
      const sent = sentOf(drawn, ({ prompt }) => prompt)
      const kept = await keptOf(slots, sent)
      for (const [at, { owner, prompt, shared }] of sent.entries()) {
        const beginning = prompt.slice(0, kept[at])
        const mayBegin = (earlier: Sent) =>
          earlier.owner === owner && beginning.every((token, index) => token === earlier.prompt[index])
        if (kept[at]! > shared) expect(sent.slice(0, at).some(mayBegin)).toBe(true)
      }
      // The same history with other tokens, of which as many are equal to each other.
      const others = sentOf(drawn, ({ owner, prompt }) => prompt.map((token) => token + 10 * owner))
      expect(await keptOf(slots, others)).toEqual(kept)
    }),
    { numRuns: runs(100, 3_000) },
  ))

it("while no sequence is replaced, an owner is told the same whatever others send", () =>
  fc.assert(
    fc.asyncProperty(histories, async (drawn) => {
      const one = await keptOf(
        drawn.length,
        sentOf(drawn, ({ prompt }) => prompt),
      )
      const another = await keptOf(
        drawn.length,
        sentOf(drawn, ({ other, owner, prompt }) => (owner === 1 ? prompt : other)),
      )
      expect(ofFirst(drawn, another)).toEqual(ofFirst(drawn, one))
    }),
    { numRuns: runs(100, 3_000) },
  ))

it("prompts that arrive together are soon side by side nearly every time, however many come", () => {
  const first = fc.array(fc.integer({ min: 1, max: 16 }), { maxLength: 6 })
  fc.assert(
    fc.property(first, fc.integer({ min: 2, max: 16 }), (before, together) => {
      const slots = makeSlots<null>(16)
      let used = 0
      const take = (prompts: number): ReadonlyArray<number> => {
        const taken = Array.from({ length: prompts }, () => {
          const { slot: chosen } = chooseSlot(slots, own([1_000 + used]), false)!
          Object.assign(chosen, { busy: true, tokens: [1_000 + used], lastUsed: ++used })
          return chosen
        })
        for (const each of taken) each.busy = false
        return taken.map(({ id }) => id).sort((a, b) => a - b)
      }
      for (const prompts of before) take(prompts)
      while (slots.some(({ tokens }) => tokens.length === 0)) take(together)
      for (let time = 0; time < 4; time++) take(together)
      let apart = 0
      for (let time = 0; time < 16; time++) {
        const ids = take(together)
        if (ids.at(-1)! - ids[0]! >= together) apart++
      }
      // 8 at a time were apart every other time before a row's beginning was looked for.
      expect(apart).toBeLessThanOrEqual(3)
    }),
    { numRuns: 500 },
  )
})
