// When each token was said, by where the decoder looked in the audio when it wrote it. Some attention heads of Whisper follow the speech; a
// monotonic path through their weights (dynamic time warping) gives each token a first frame. Pure.
//
// Source: the reference transcriber's word timing.

/** Weights of one attention head: for each row, which writes one token, its weights over the frames of audio. */
export interface HeadWeights {
  /** [rows, width] */
  readonly values: Float32Array
  readonly width: number
}

/** Frames over which the weights are smoothed. The reference's. */
const medianWidth = 7

/** Median of the frames around each frame; beyond the ends the frames are mirrored. In place. */
const smooth = (row: Float32Array): void => {
  const reach = (medianWidth - 1) / 2
  const { length } = row
  if (length <= reach) return
  const from = row.slice()
  const around = new Float32Array(medianWidth)
  const mirrored = (at: number) => (at < 0 ? -at : at >= length ? 2 * length - 2 - at : at)
  for (let at = 0; at < length; at++) {
    for (let i = 0; i < medianWidth; i++) around[i] = from[mirrored(at - reach + i)]!
    around.sort()
    row[at] = around[reach]!
  }
}

/**
 * Mean over the heads of their weights in the first `frames` frames, each brought to a sum of 1 in a row, then to mean 0 and deviation 1 in
 * a frame, then smoothed.
 */
const combined = (
  heads: ReadonlyArray<HeadWeights>,
  first: number,
  rows: number,
  all: number,
  frames: number,
): ReadonlyArray<Float32Array> => {
  const mean = Array.from({ length: rows }, () => new Float32Array(frames))
  for (const { values, width } of heads) {
    const weights = Array.from({ length: all }, (_, row) => {
      const own = values.slice(row * width, row * width + frames)
      const sum = own.reduce((a, b) => a + b, 0)
      return sum > 0 ? own.map((weight) => weight / sum) : own
    })
    for (let frame = 0; frame < frames; frame++) {
      let sum = 0
      let squares = 0
      for (const row of weights) sum += row[frame]!
      const average = sum / all
      for (const row of weights) squares += (row[frame]! - average) ** 2
      const deviation = Math.sqrt(squares / all)
      for (const row of weights) row[frame] = deviation > 0 ? (row[frame]! - average) / deviation : 0
    }
    for (let row = 0; row < rows; row++) {
      const own = weights[first + row]!
      smooth(own)
      for (let frame = 0; frame < frames; frame++) mean[row]![frame]! += own[frame]! / heads.length
    }
  }
  return mean
}

/** Steps of the path: a row and a frame on, a row on, a frame on. */
const [both, down, right] = [0, 1, 2]

/** The first frame of each row on the path from the first row and frame to the last ones whose weights have the largest sum. */
export const firstFrames = (weights: ReadonlyArray<Float32Array>): ReadonlyArray<number> => {
  const rows = weights.length
  const frames = weights[0]?.length ?? 0
  if (frames === 0) return new Array<number>(rows).fill(0)
  const steps = new Uint8Array(rows * frames)
  let above = new Float64Array(frames + 1).fill(Number.POSITIVE_INFINITY)
  above[0] = 0
  for (let row = 0; row < rows; row++) {
    const cost = new Float64Array(frames + 1).fill(Number.POSITIVE_INFINITY)
    for (let frame = 0; frame < frames; frame++) {
      const [diagonal, over, before] = [above[frame]!, above[frame + 1]!, cost[frame]!]
      const step = diagonal <= over && diagonal <= before ? both : over <= before ? down : right
      steps[row * frames + frame] = step
      cost[frame + 1] = Math.min(diagonal, over, before) - weights[row]![frame]!
    }
    above = cost
  }
  const starts = new Array<number>(rows).fill(0)
  let [row, frame] = [rows - 1, frames - 1]
  while (row >= 0 && frame >= 0) {
    starts[row] = frame
    const step = row === 0 ? right : frame === 0 ? down : steps[row * frames + frame]!
    if (step !== right) row--
    if (step !== down) frame--
  }
  return starts
}

/**
 * The first frame of each token. `heads`: weights while the decoder read `before` tokens of the prompt, the tokens, and the end of the
 * text. The row of the token before writes a token. `frames`: those of the audio, without padding. One more value than tokens:
 * where the last one ends.
 */
export const tokenFrames = (
  heads: ReadonlyArray<HeadWeights>,
  before: number,
  tokens: number,
  frames: number,
): ReadonlyArray<number> => firstFrames(combined(heads, before - 1, tokens + 1, before + tokens + 1, frames))
