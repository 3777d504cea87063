// The decoder weights that produce a script; Script.ts explains how. Each part describes a projection except for its name and
// size.
import type { Matrix } from "../onnx/Matrices.ts"
import { clearColumn, type Edit, noBias, type Projection, reading, writing } from "./Blocks.ts"
import { maxSoundTime, soundTimeDimension, zeroDimension } from "./Encoder.ts"
import { endPerSecond, middleSeconds, type Script, type ScriptNode } from "./Script.ts"
import { headWidth, positions, windowSeconds } from "./Shapes.ts"

export type Weights = Pick<Projection, "deviation" | "edit" | "most" | "bias">

/** Approximate logit of a first follower, for most lengths of sound. */
const logit = 60

/** Standard deviation of the weights that write to the residual stream. */
const writingScale = 2e-4

/** Rise of the attention scores from a position to the next, in the head that finds the last sound. */
const soundSlope = 0.05
const soundKey = 0.1
const soundQuery = (soundSlope * positions * Math.sqrt(headWidth)) / (soundKey * maxSoundTime)
/** Factor from that head's value to the end token's strength. */
const soundToEnd = (-endPerSecond * windowSeconds) / maxSoundTime

/** The largest strength in the script: that of the end token after the last timestamp. */
const strongest = 2.5

/** Value after layer norm of each of two dimensions that are 1 while all others are near 0. */
const normedOne = (width: number) => Math.sqrt(width / 2)

/** The layer whose feed-forward block leads from a node to its followers. */
const scriptLayer = 0
/** The layer whose first head of the cross-attention finds the last sound. */
const soundLayer = 1

const random: Weights = { deviation: reading, bias: noBias }
const randomWithoutBias: Weights = { deviation: reading }

/** Reads one dimension of the encoder's output into the head's first value. */
const readSoundTime = (width: number, weight: number): Edit => {
  return (values) => {
    clearColumn(values, width, 0)
    values[soundTimeDimension * width] = weight
    values[zeroDimension * width] = -weight
  }
}

/** The two hidden units of a node: one reads its input dimension, the other the negative of it. */
const units = (node: number): ReadonlyArray<readonly [unit: number, sign: number]> => [
  [2 * node, 1],
  [2 * node + 1, -1],
]

const writeFollowers = (values: Float32Array, width: number, script: Script) => {
  const write = ({ followers }: ScriptNode, node: number) => {
    for (const [unit, sign] of units(node)) {
      values.fill(0, unit * width, (unit + 1) * width)
      const add = (dimension: number, strength: number) => {
        values[unit * width + dimension]! += sign * strength
      }
      add(script.inputDimension(node), -1)
      add(script.outputDimension(node), -1)
      for (const { node: follower, strength } of followers) add(script.outputDimension(follower), strength)
    }
  }
  script.nodes.forEach(write)
}

export interface ScriptWeights {
  /** Input and output embedding. */
  readonly embedding: (vocabularySize: number) => Matrix
  /** Gain of the last layer norm. */
  readonly gain: number
  readonly query: (layer: number) => Weights
  readonly key: (layer: number) => Weights
  readonly value: (layer: number) => Weights
  /** Output projection of the cross-attention. */
  readonly crossOutput: (layer: number) => Weights
  /** Output projection of the self-attention. */
  readonly selfOutput: Weights
  /** First projection of the feed-forward block, to its hidden units. */
  readonly feedForwardInput: (layer: number) => Weights
  /** Second projection of the feed-forward block. */
  readonly feedForwardOutput: (layer: number) => Weights
}

export const scriptWeights = (script: Script, width: number): ScriptWeights => {
  const written: Weights = { ...writing(writingScale, script.reserved, width), bias: noBias }
  const hiddenUnits = 4 * width
  return {
    embedding: (vocabularySize) => ({
      name: "model.decoder.embed_tokens.weight",
      dims: [vocabularySize, width],
      // Random rows get the same length as the rows of the script.
      deviation: Math.SQRT2 / Math.sqrt(width - script.reserved),
      most: 1,
      edit: (values) => {
        for (let row = 0; row < values.length; row += width) values.fill(0, row, row + script.reserved)
        script.nodes.forEach(({ token }, node) => {
          values.fill(0, token * width, (token + 1) * width)
          values[token * width + script.inputDimension(node)] = 1
          values[token * width + script.outputDimension(node)] = 1
        })
      },
    }),
    gain: logit / normedOne(width),
    query: (layer) =>
      layer === soundLayer
        ? {
            ...random,
            edit: (values) => {
              for (let column = 0; column < headWidth; column++) clearColumn(values, width, column)
            },
            bias: (values) => {
              values[0] = soundQuery
            },
          }
        : random,
    key: (layer) =>
      layer === soundLayer
        ? { ...randomWithoutBias, edit: readSoundTime(width, soundKey), most: soundKey }
        : randomWithoutBias,
    value: (layer) => (layer === soundLayer ? { ...random, edit: readSoundTime(width, 1), most: 1 } : random),
    crossOutput: (layer) =>
      layer === soundLayer
        ? {
            ...written,
            edit: (values) => {
              written.edit?.(values)
              values.fill(0, 0, width)
              values[script.outputDimension(script.end)] = soundToEnd
            },
            most: Math.abs(soundToEnd),
            bias: (values) => {
              values[script.outputDimension(script.end)] = endPerSecond * middleSeconds
            },
          }
        : written,
    selfOutput: written,
    feedForwardInput: (layer) =>
      layer === scriptLayer
        ? {
            ...random,
            edit: (values) => {
              script.nodes.forEach((_, node) => {
                for (const [unit, sign] of units(node)) {
                  clearColumn(values, hiddenUnits, unit)
                  values[script.inputDimension(node) * hiddenUnits + unit] = sign / normedOne(width)
                }
              })
            },
            most: 1 / normedOne(width),
            // Adds back the mean that layer norm subtracts. Otherwise its error would add up over the thirty nodes that raise the end token.
            bias: (values) => {
              const mean = 2 / width
              script.nodes.forEach((_, node) => values.set([mean, -mean], 2 * node))
            },
          }
        : random,
    feedForwardOutput: (layer) =>
      layer === scriptLayer
        ? {
            ...written,
            edit: (values) => {
              written.edit?.(values)
              writeFollowers(values, width, script)
            },
            most: strongest,
          }
        : written,
  }
}
