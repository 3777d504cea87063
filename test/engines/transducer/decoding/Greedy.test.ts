// The decoding loop against a direct implementation: one table of choices a frame, no states that are passed on, no row of scores sliced.
import { Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { decode, nothingDecoded, type Rules, type Scorer } from "#engines/transducer/decoding/Greedy.ts"
import { runs } from "../../../support/groups/Runs.ts"

/** Scores of every token and duration at a frame, by all tokens so far: what a network could say. */
type Network = (frame: number, said: ReadonlyArray<number>) => Float32Array

const mixed = (...values: ReadonlyArray<number>): number => {
  let state = 17
  for (const value of values) state = Math.imul(state ^ (value + 0x9e37), 0x85ebca6b) ^ (state >>> 13)
  return (state >>> 0) / 2 ** 32
}

interface Case {
  readonly seed: number
  readonly frames: number
  readonly tokens: number
  readonly blankBias: number
  readonly durations: ReadonlyArray<number>
  readonly mostPerFrame: number
  readonly silent: number
}

const networkOf =
  ({ blankBias, durations, seed, tokens }: Case): Network =>
  (frame, said) =>
    Float32Array.from({ length: tokens + durations.length }, (_, token) => {
      const history = said.reduce((sum, each, at) => sum + (at + 1) * (each + 1), 0)
      return mixed(seed, frame, history, token) + (token === tokens - 1 ? blankBias : 0)
    })

/** Frame by frame: a while loop over the published rules, with the whole history given to the network each time. */
const reference = (it: Case, network: Network) => {
  const said: Array<number> = []
  const out: Array<readonly [token: number, frame: number, frames: number | undefined]> = []
  const blank = it.tokens - 1
  let t = 0
  let here = 0
  while (t < it.frames) {
    const scores = [...network(t, said)]
    let token = 0
    for (let i = 0; i < it.tokens; i++) if (scores[i]! > scores[token]!) token = i
    let duration: number | undefined
    if (it.durations.length > 0) {
      let best = 0
      it.durations.forEach((_, i) => {
        if (scores[it.tokens + i]! > scores[it.tokens + best]!) best = i
      })
      duration = it.durations[best]!
    }
    const isSaid = token !== blank && token !== it.silent
    if (isSaid) {
      out.push([token, t, duration])
      said.push(token)
      here++
    }
    if (duration !== undefined && duration > 0) {
      t += duration
      here = 0
    } else if (!isSaid || here >= it.mostPerFrame) {
      t++
      here = 0
    }
  }
  return out
}

/** A state is the number of the history; a wrong one is noticed because a state after blank is marked. */
const scorerOf = (network: Network): Scorer<ReadonlyArray<number>, "after", never> => ({
  start: [],
  score: (frame, state) => Effect.succeed({ row: network(frame[0]!, state), after: "after", state }),
  extended: ({ state }, token) => [...state, token],
})

const rulesOf = ({ durations, mostPerFrame, silent, tokens }: Case): Rules => ({
  tokens,
  blank: tokens - 1,
  durations,
  mostPerFrame,
  isSilent: (token) => token === silent,
})

const cases = fc.record({
  seed: fc.nat(),
  frames: fc.integer({ min: 0, max: 60 }),
  tokens: fc.integer({ min: 2, max: 12 }),
  blankBias: fc.double({ min: -1, max: 1, noNaN: true }),
  durations: fc.constantFrom([], [0, 1], [0, 1, 2, 3, 4]),
  mostPerFrame: fc.constantFrom(1, 2, 5, 10),
  silent: fc.constantFrom(-1, 0),
})

const triples = (tokens: ReadonlyArray<{ token: number; frame: number; frames?: number }>) =>
  tokens.map(({ frame, frames, token }) => [token, frame, frames])

describe("greedy decoding", () => {
  it("gives the tokens, frames and durations of the direct implementation, in chunks of any size", () => {
    let tokens = 0
    fc.assert(
      fc.property(cases, fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 20 }), (given, sizes) => {
        const network = networkOf(given)
        const expected = reference(given, network)
        const scorer = scorerOf(network)
        let decoded = nothingDecoded(scorer.start)
        let first = 0
        for (const size of [...sizes, given.frames]) {
          const count = Math.min(size, given.frames - first)
          const from = first
          decoded = Effect.runSync(
            decode(decoded, from, count, (frame) => Float32Array.of(from + frame), {
              rules: rulesOf(given),
              scorer,
            }),
          )
          first += count
        }
        expect(triples(decoded.tokens)).toEqual(expected)
        tokens += expected.length
      }),
      { numRuns: runs(500, 5_000) },
    )
    expect(tokens).toBeGreaterThan(1_000)
  })

  it("follows the published example of TDT: blank discards, durations skip, zero stays", () => {
    // Token 1 lasts no frame, token 2 follows at the same frame and lasts 3, then blank goes on by one although its duration is 0.
    const rows: Record<string, ReadonlyArray<number>> = {
      "0:": [9, 0, 0, /**/ 9, 0, 0, 0, 0],
      "0:0": [0, 9, 0, 0, 0, 0, 9, 0],
      "3:01": [0, 0, 9, 9, 0, 0, 0, 0],
      "4:01": [9, 0, 0, 0, 0, 9, 0, 0],
    }
    const network: Network = (frame, said) =>
      Float32Array.from(rows[`${frame}:${said.join("")}`] ?? [0, 0, 9, 0, 9, 0, 0, 0])
    const scorer = scorerOf(network)
    const rules: Rules = {
      tokens: 3,
      blank: 2,
      durations: [0, 1, 2, 3, 4],
      mostPerFrame: 10,
      isSilent: () => false,
    }
    const decoded = Effect.runSync(
      decode(nothingDecoded(scorer.start), 0, 6, (frame) => Float32Array.of(frame), { rules, scorer }),
    )
    expect(triples(decoded.tokens)).toEqual([
      [0, 0, 0],
      [1, 0, 3],
      [0, 4, 2],
    ])
    expect(decoded.frame).toBe(6)
  })

  it("a network that never says blank is stopped at each frame", () => {
    const scorer = scorerOf(() => Float32Array.of(1, 0))
    const rules: Rules = { tokens: 2, blank: 1, durations: [], mostPerFrame: 10, isSilent: () => false }
    const decoded = Effect.runSync(
      decode(nothingDecoded(scorer.start), 0, 7, (frame) => Float32Array.of(frame), { rules, scorer }),
    )
    expect(decoded.tokens).toHaveLength(70)
  })
})
