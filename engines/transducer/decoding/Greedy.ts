// Greedy decoding of a transducer: from the encoder's frames and the joint network's scores to tokens with times. One loop for the three
// layouts, which differ by their rules only. Knows no ONNX, no audio and no text.
//
// At each frame the joint network scores every token and "blank" (nothing is said here). A token is emitted and the same frame is
// scored again; blank goes on to the next frame. A TDT model also scores how many frames to advance (its durations).
import * as Effect from "effect/Effect"
import { choose } from "../../shared/listening/Sampling.ts"

export interface Rules {
  /** Scores of tokens in a row, blank included. The scores of durations follow them. */
  readonly tokens: number
  readonly blank: number
  /** Frames to advance, by the index of their score; empty for models without durations. */
  readonly durations: ReadonlyArray<number>
  /** Most tokens of one frame: a bound on loops. */
  readonly mostPerFrame: number
  /** True: tokens that count as blank, such as `<unk>` of Zipformer models. */
  readonly isSilent: (token: number) => boolean
}

export interface TimedToken {
  readonly token: number
  /** Frame at which it was emitted, counted from the beginning of the piece. */
  readonly frame: number
  /** Frames that it lasts, by the model. Absent for models without durations. */
  readonly frames?: number
  /** Natural log-probability among the tokens and blank. */
  readonly logprob: number
}

/** Scores of one frame, and what is known of the prediction network behind them. */
interface Scored<S, A> {
  /** The caller may not change it. */
  readonly row: Float32Array
  readonly after: A
  readonly state: S
}

/** The prediction and the joint network. `S`: the tokens so far, as the network keeps them. Immutable. */
export interface Scorer<S, A, E> {
  readonly start: S
  readonly score: (frame: Float32Array, state: S) => Effect.Effect<Scored<S, A>, E>
  /** The state after `token` was emitted. */
  readonly extended: (scored: Scored<S, A>, token: number) => S
}

/** Where the decoding stands. Immutable: a decoding can go on from it more than once. */
export interface Decoded<S> {
  readonly state: S
  /** The next frame to score, counted from the beginning of the piece. A duration may lie beyond the frames so far. */
  readonly frame: number
  /** Tokens of that frame so far. */
  readonly emitted: number
  readonly tokens: ReadonlyArray<TimedToken>
}

export const nothingDecoded = <S>(start: S): Decoded<S> => ({
  state: start,
  frame: 0,
  emitted: 0,
  tokens: [],
})

/** What the scores of one frame say. */
interface Decision {
  /** Undefined: blank. */
  readonly token: number | undefined
  readonly logprob: number
  /** Frames to advance. */
  readonly advance: number
  /** Frames that the token lasts; undefined without durations. */
  readonly frames: number | undefined
}

const indexOfLargest = (row: Float32Array, from: number, count: number): number => {
  let best = 0
  for (let i = 1; i < count; i++) if (row[from + i]! > row[from + best]!) best = i
  return best
}

const never = () => 0

/** `emitted`: tokens of this frame so far. */
const decide = (row: Float32Array, rules: Rules, emitted: number): Decision => {
  const { token, logprob } = choose(row.subarray(0, rules.tokens), 0, never)
  const isBlank = token === rules.blank || rules.isSilent(token)
  const { durations } = rules
  const frames =
    durations.length === 0 ? undefined : durations[indexOfLargest(row, rules.tokens, durations.length)]!
  const stays = !isBlank && emitted + 1 < rules.mostPerFrame
  // A blank, or the last token that a frame may have, advances by at least one frame.
  const advance = frames !== undefined && frames > 0 ? frames : stays ? 0 : 1
  return { token: isBlank ? undefined : token, logprob, advance, frames }
}

/**
 * Decodes on, over `frames` frames that begin at frame `first` of the piece. `columnOf` gives the encoder's output of a frame, counted
 * from `first`.
 */
export const decode = <S, A, E>(
  from: Decoded<S>,
  first: number,
  frames: number,
  columnOf: (frame: number) => Float32Array,
  rules: Rules,
  { extended, score }: Scorer<S, A, E>,
): Effect.Effect<Decoded<S>, E> =>
  Effect.gen(function* () {
    let { emitted, frame, state } = from
    const tokens = [...from.tokens]
    while (frame < first + frames) {
      const scored = yield* score(columnOf(frame - first), state)
      // Kept, with what the network has computed of it.
      state = scored.state
      const { advance, frames: lasts, logprob, token } = decide(scored.row, rules, emitted)
      if (token !== undefined) {
        tokens.push({ token, frame, logprob, ...(lasts === undefined ? {} : { frames: lasts }) })
        state = extended(scored, token)
        emitted++
      }
      if (advance > 0) {
        frame += advance
        emitted = 0
      }
    }
    return { state, frame, emitted, tokens }
  })
