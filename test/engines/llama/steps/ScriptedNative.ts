// A native context in memory whose logits are a function of the sequence's tokens. It checks what the step loop does with
// sequences: positions without gaps, rows only where they were requested, copies only of what was evaluated.
import type { NativeContext, SavedState } from "#engines/llama/native/Native.ts"
import { LogitSampler } from "#engines/llama/sampling/LogitSampler.ts"
import { Rows } from "#engines/llama/sampling/Rows.ts"
import { massesOf, scoreOf } from "#engines/llama/sampling/Scores.ts"

/** Logits of the next token. */
type Predict = (tokens: ReadonlyArray<number>) => Float32Array

interface SavedTokens extends SavedState {
  readonly tokens: ReadonlyArray<number>
}

export interface ScriptedNative {
  readonly native: NativeContext
  /** Tokens of each call's items. */
  readonly calls: Array<ReadonlyArray<{ readonly sequence: number; readonly tokens: ReadonlyArray<number> }>>
  readonly copies: Array<readonly [from: number, to: number]>
}

export const scriptedNative = (options: {
  readonly vocabularySize: number
  readonly predict: Predict
}): ScriptedNative => {
  const { predict, vocabularySize } = options
  const sequences = new Map<number, Array<number>>()
  const rows = new Rows(vocabularySize)
  let rowsOfCall: Array<Float32Array> = []
  const of = (id: number): Array<number> => {
    const tokens = sequences.get(id) ?? []
    sequences.set(id, tokens)
    return tokens
  }
  const rowAt = (row: number): Float32Array => {
    const found = rowsOfCall[row]
    if (found === undefined) throw new Error(`row ${row} was not computed`)
    return found
  }
  const calls: ScriptedNative["calls"] = []
  const copies: ScriptedNative["copies"] = []
  const native: Omit<NativeContext, "direct"> = {
    decode: async (items) => {
      await Promise.resolve()
      rowsOfCall = []
      calls.push(items.map(({ sequenceId, tokens }) => ({ sequence: sequenceId, tokens: [...tokens] })))
      return items.map(({ logits, position, rowsAt = [], sequenceId, tokens }) => {
        const held = of(sequenceId)
        if (position !== held.length) throw new Error(`position ${position} after ${held.length} tokens`)
        held.push(...tokens)
        for (const at of rowsAt) rowsOfCall.push(predict(held.slice(0, position + at + 1)))
        if (!logits) return -1
        return rowsOfCall.push(predict(held)) - 1
      })
    },
    rows: {
      width: 1,
      coordinates: 1,
      evaluate: async ({ positions, rows, sequenceId }) => {
        await Promise.resolve()
        const held = of(sequenceId)
        const values = [...rows]
        calls.push([{ sequence: sequenceId, tokens: values }])
        for (const [at, value] of values.entries()) {
          if (positions[at] !== held.length) throw new Error(`a row at ${positions[at]}, not ${held.length}`)
          held.push(value)
        }
      },
    },
    interrupt: () => {},
    sampler: (sampling, biases) => {
      const sampler = new LogitSampler(sampling, rows, biases)
      return {
        sample: async (row) => sampler.draw(rowAt(row)),
        choose: (row, choice) => sampler.choose(rowAt(row), choice),
        count: (token) => sampler.count(token),
        dispose: () => {},
      }
    },
    cut: (sequenceId, length) => {
      of(sequenceId).length = length
      return true
    },
    clear: (sequenceId) => void sequences.delete(sequenceId),
    save: () => Promise.reject(new Error("this memory can be cut")),
    restore: async () => false,
    setThreads: () => {},
  }
  const direct: NativeContext["direct"] = {
    wholeBytes: (sequenceId) => of(sequenceId).length,
    saveWhole: async (sequenceId) => {
      const tokens = [...of(sequenceId)]
      const saved: SavedTokens = { tokens, sizeBytes: tokens.length, dispose: () => {} }
      return saved
    },
    give: async (saved, sequenceId) => {
      sequences.set(sequenceId, [...(saved as SavedTokens).tokens])
      return true
    },
    score: (row, token, top) => scoreOf(rows, typeof row === "number" ? rowAt(row) : row, token, top),
    masses: (row, groups) => massesOf(rows, rowAt(row), groups),
    copy: (from, to) => {
      copies.push([from, to])
      sequences.set(to, [...of(from)])
    },
  }
  return { native: { ...native, direct }, calls, copies }
}

/** Logits that depend on the last tokens and look random. */
export const hashed =
  (vocabularySize: number): Predict =>
  (tokens) => {
    let state = 17
    for (const token of tokens.slice(-6)) state = (Math.imul(state, 31) + token + 1) >>> 0
    return Float32Array.from({ length: vocabularySize }, (_, token) => {
      let mixed = Math.imul(state ^ Math.imul(token + 1, 0x9e3779b1), 0x85ebca6b) >>> 0
      mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35) >>> 0
      return ((mixed >>> 8) / 2 ** 24) * 6
    })
  }
