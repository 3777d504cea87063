// Greedy decoding of a transducer: from the encoder's frames and the joint network's scores to tokens with times. One loop for the three
// layouts, which differ by their rules only. Knows no ONNX, no audio and no text.
//
// At each frame the joint network scores every token and "blank" (nothing is said here). A token is emitted and the same frame is
// scored again; blank goes on to the next frame. A TDT model also scores how many frames to advance (its durations).
import * as Effect from "effect/Effect"
import type { Following, KeywordSearch } from "../../shared/listening/KeywordSearch.ts"
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

/** A phrase of the request that is written although other tokens have higher scores. If it fails, the decoding goes back to `from`. */
interface Trial<S> {
  readonly from: Decoded<S>
  /** Tokens with which trials began there. */
  readonly tried: ReadonlyArray<number>
  /** The encoder's frames from there on. */
  readonly columns: ReadonlyArray<Float32Array>
}

/** Where the decoding stands. Immutable: a decoding can go on from it more than once. */
export interface Decoded<S> {
  readonly state: S
  /** The next frame to score, counted from the beginning of the piece. A duration may lie beyond the frames so far. */
  readonly frame: number
  /** Tokens of that frame so far. */
  readonly emitted: number
  readonly tokens: ReadonlyArray<TimedToken>
  /** Where the text stands in the phrases of the request. Absent: at their beginning. */
  readonly following?: Following
  readonly trial?: Trial<S>
  /** Trials that have failed. */
  readonly failures?: number
}

/** Trials of one piece that may fail, each of which costs the scores of its frames. Behind them no more begin. A guess. */
const mostFailures = 24
/** Frames of the longest trial, about five seconds: a phrase is shorter. */
const mostTrialFrames = 64
/** Frames without a token behind which a complete phrase is one: about half a second. A guess. */
const quietFrames = 6

/** The tokens that nothing takes back: those before a trial. */
export const lastingTokens = <S>({ tokens, trial }: Decoded<S>): ReadonlyArray<TimedToken> =>
  trial === undefined ? tokens : trial.from.tokens

export const nothingDecoded = <S>(start: S): Decoded<S> => ({
  state: start,
  frame: 0,
  emitted: 0,
  tokens: [],
})

const indexOfLargest = (row: Float32Array, from: number, count: number): number => {
  let best = 0
  for (let i = 1; i < count; i++) if (row[from + i]! > row[from + best]!) best = i
  return best
}

const never = () => 0

/** What the scores of one frame say of time. `isBlank`: no token is emitted. `emitted`: tokens of this frame so far. */
const advanceOf = (row: Float32Array, rules: Rules, isBlank: boolean, emitted: number) => {
  const { durations } = rules
  const frames =
    durations.length === 0 ? undefined : durations[indexOfLargest(row, rules.tokens, durations.length)]!
  const stays = !isBlank && emitted + 1 < rules.mostPerFrame
  // A blank, or the last token that a frame may have, advances by at least one frame.
  const advance = frames !== undefined && frames > 0 ? frames : stays ? 0 : 1
  return { advance, frames }
}

interface Decoding<S, A, E> {
  readonly rules: Rules
  readonly scorer: Scorer<S, A, E>
  /** Looks for the phrases of the request. */
  readonly search?: KeywordSearch | undefined
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
  { rules, scorer: { extended, score }, search }: Decoding<S, A, E>,
): Effect.Effect<Decoded<S>, E> =>
  Effect.gen(function* () {
    let { emitted, frame, state, trial } = from
    let following = from.following ?? search?.begin
    let failures = from.failures ?? 0
    let tokens = [...from.tokens]
    const kept = trial?.columns ?? []
    const keptFirst = first - kept.length
    const columnAt = (at: number) => (at < first ? kept[at - keptFirst]! : columnOf(at - first))
    /** Tokens with which trials failed here. */
    let tried: ReadonlyArray<number> = []
    while (frame < first + frames) {
      const scored = yield* score(columnAt(frame), state)
      // Kept, with what the network has computed of it.
      state = scored.state
      const row = scored.row.subarray(0, rules.tokens)
      const best = choose(row, 0, never)
      let { logprob, token } = best
      if (search !== undefined && following !== undefined && failures < mostFailures) {
        if (
          trial !== undefined &&
          search.isComplete(following) &&
          frame - tokens.at(-1)!.frame > quietFrames
        ) {
          following = { nodes: [], trial: undefined }
          trial = undefined
        }
        const isTooLong = trial !== undefined && frame - trial.from.frame > mostTrialFrames
        const chosen = isTooLong ? undefined : search.choose(following, row, best.token, tried)
        if (chosen === undefined) {
          const { from: before, tried: triedBefore } = trial!
          tried = [...triedBefore, tokens[before.tokens.length]!.token]
          ;({ emitted, frame, state } = before)
          following = before.following ?? search.begin
          tokens = [...before.tokens]
          trial = undefined
          failures++
          continue
        }
        if (chosen.opens)
          trial = { from: { state, frame, emitted, tokens: [...tokens], following }, tried, columns: [] }
        following = chosen.following
        if (following.trial === undefined) trial = undefined
        token = chosen.token
        logprob -= chosen.gap
      }
      tried = []
      const isBlank = token === rules.blank || rules.isSilent(token)
      const { advance, frames: lasts } = advanceOf(scored.row, rules, isBlank, emitted)
      if (!isBlank) {
        tokens.push({ token, frame, logprob, ...(lasts === undefined ? {} : { frames: lasts }) })
        state = extended(scored, token)
        emitted++
      }
      if (advance > 0) {
        frame += advance
        emitted = 0
      }
    }
    const decoded: Decoded<S> = { state, frame, emitted, tokens, failures }
    if (following === undefined || search === undefined) return decoded
    if (trial === undefined) return { ...decoded, following }
    const { frame: begin } = trial.from
    const columns = Array.from({ length: first + frames - begin }, (_, i) => columnAt(begin + i))
    return { ...decoded, following, trial: { ...trial, columns } }
  })

/** The end of the audio, or of a piece: a phrase that was not completed is given back. `end`: frames of the piece so far. */
export const settle = <S, A, E>(
  decoded: Decoded<S>,
  end: number,
  decoding: Decoding<S, A, E>,
): Effect.Effect<Decoded<S>, E> =>
  Effect.suspend(() => {
    const { following, trial } = decoded
    if (trial === undefined || following === undefined || decoding.search?.isComplete(following) !== false)
      return Effect.succeed(decoded)
    const { columns, from } = trial
    const first = end - columns.length
    const { rules, scorer } = decoding
    return decode(from, first, columns.length, (frame) => columns[frame]!, { rules, scorer })
  })
