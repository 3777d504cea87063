// The decoder weights in which a script is arranged; Script.ts tells how. Each part is what a projection has besides its
// name and size.
import type { Matrix } from "../onnx/Matrices.ts"
import { clearColumn, type Edit, noBias, type Projection, READING, writing } from "./Blocks.ts"
import { heardDimension, heardLatest, zeroDimension } from "./Encoder.ts"
import { END_PER_SECOND, MIDDLE_SECONDS, type Script, type ScriptNode } from "./Script.ts"
import { headWidth, positions, windowSeconds } from "./Shapes.ts"

export type Weights = Pick<Projection, "deviation" | "edit" | "most" | "bias">

/** Logit of a first choice, about, at most lengths of sound. */
const LOGIT = 60

/** Standard deviation of the weights that write to the residual stream. */
const WRITING = 2e-4

/** Query of the head that looks for the last sound: its scores rise by a twentieth a position. */
const HEARD_SLOPE = 0.05
const HEARD_KEY = 0.1
const HEARD_QUERY = (HEARD_SLOPE * positions * Math.sqrt(headWidth)) / (HEARD_KEY * heardLatest)
/** From that head's value to the end token's strength. */
const HEARD_TO_END = (-END_PER_SECOND * windowSeconds) / heardLatest

/** The largest strength in the script: that of the last end. */
const STRONGEST = 2.5

/** What layer norm makes of one of two dimensions that are 1 where the others are near 0. */
const normedOne = (width: number) => Math.sqrt(width / 2)

/** The layer whose feed-forward block goes from a node to what follows. */
const NODES = 0
/** The layer whose first head of the cross-attention looks for the last sound. */
const LISTENING = 1

const random: Weights = { deviation: READING, bias: noBias }
const randomWithoutBias: Weights = { deviation: READING }

/** Reads one dimension of the encoder's output into the head's first value. */
const readHeard = (width: number, weight: number): Edit => {
  return (values) => {
    clearColumn(values, width, 0)
    values[heardDimension * width] = weight
    values[zeroDimension * width] = -weight
  }
}

/** The two hidden units of a node: one reads it, the other its opposite. */
const units = (node: number): ReadonlyArray<readonly [unit: number, sign: number]> => [
  [2 * node, 1],
  [2 * node + 1, -1],
]

const followersOf = (values: Float32Array, width: number, script: Script) => {
  const write = ({ followers }: ScriptNode, node: number) => {
    for (const [unit, sign] of units(node)) {
      values.fill(0, unit * width, (unit + 1) * width)
      const add = (dimension: number, strength: number) => {
        values[unit * width + dimension]! += sign * strength
      }
      add(script.here(node), -1)
      add(script.next(node), -1)
      for (const { node: follower, strength } of followers) add(script.next(follower), strength)
    }
  }
  script.nodes.forEach(write)
}

export interface ScriptWeights {
  /** Input and output embedding. */
  readonly embedding: (vocabularySize: number) => Matrix
  /** Of the last layer norm. */
  readonly gain: number
  readonly query: (layer: number) => Weights
  readonly key: (layer: number) => Weights
  readonly value: (layer: number) => Weights
  /** Behind the cross-attention. */
  readonly listened: (layer: number) => Weights
  /** Behind the self-attention. */
  readonly attended: Weights
  readonly hidden: (layer: number) => Weights
  readonly fed: (layer: number) => Weights
}

export const scriptWeights = (script: Script, width: number): ScriptWeights => {
  const written: Weights = { ...writing(WRITING, script.reserved, width), bias: noBias }
  const hiddenUnits = 4 * width
  return {
    embedding: (vocabularySize) => ({
      name: "model.decoder.embed_tokens.weight",
      dims: [vocabularySize, width],
      // As long as the rows of the script.
      deviation: Math.SQRT2 / Math.sqrt(width - script.reserved),
      most: 1,
      edit: (values) => {
        for (let row = 0; row < values.length; row += width) values.fill(0, row, row + script.reserved)
        script.nodes.forEach(({ token }, node) => {
          values.fill(0, token * width, (token + 1) * width)
          values[token * width + script.here(node)] = 1
          values[token * width + script.next(node)] = 1
        })
      },
    }),
    gain: LOGIT / normedOne(width),
    query: (layer) =>
      layer === LISTENING
        ? {
            ...random,
            edit: (values) => {
              for (let column = 0; column < headWidth; column++) clearColumn(values, width, column)
            },
            bias: (values) => {
              values[0] = HEARD_QUERY
            },
          }
        : random,
    key: (layer) =>
      layer === LISTENING
        ? { ...randomWithoutBias, edit: readHeard(width, HEARD_KEY), most: HEARD_KEY }
        : randomWithoutBias,
    value: (layer) => (layer === LISTENING ? { ...random, edit: readHeard(width, 1), most: 1 } : random),
    listened: (layer) =>
      layer === LISTENING
        ? {
            ...written,
            edit: (values) => {
              written.edit?.(values)
              values.fill(0, 0, width)
              values[script.next(script.end)] = HEARD_TO_END
            },
            most: Math.abs(HEARD_TO_END),
            bias: (values) => {
              values[script.next(script.end)] = END_PER_SECOND * MIDDLE_SECONDS
            },
          }
        : written,
    attended: written,
    hidden: (layer) =>
      layer === NODES
        ? {
            ...random,
            edit: (values) => {
              script.nodes.forEach((_, node) => {
                for (const [unit, sign] of units(node)) {
                  clearColumn(values, hiddenUnits, unit)
                  values[script.here(node) * hiddenUnits + unit] = sign / normedOne(width)
                }
              })
            },
            most: 1 / normedOne(width),
            // What layer norm subtracts, which thirty nodes that raise the end token would add up.
            bias: (values) => {
              const mean = 2 / width
              script.nodes.forEach((_, node) => values.set([mean, -mean], 2 * node))
            },
          }
        : random,
    fed: (layer) =>
      layer === NODES
        ? {
            ...written,
            edit: (values) => {
              written.edit?.(values)
              followersOf(values, width, script)
            },
            most: STRONGEST,
          }
        : written,
  }
}
