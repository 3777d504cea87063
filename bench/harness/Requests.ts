// Performs the request of an index by the plan of its kind. What fails becomes an outcome; nothing is thrown.
import type { Target } from "./client/Exchange.ts"
import { oneLine, RequestFailed } from "./client/Failures.ts"
import { runLive } from "./client/LiveRequest.ts"
import type { Measured, Outcome } from "./client/Outcome.ts"
import { speak } from "./client/SpeechRequest.ts"
import { chat } from "./client/TextRequest.ts"
import { transcribe } from "./client/TranscriptionRequest.ts"
import type { Conversations } from "./conversation/Conversations.ts"
import type { Clip } from "./data/Clip.ts"
import type { Issue } from "./load/Drive.ts"
import { type Kind, kinds, type Plans } from "./Plan.ts"
import { Random } from "./random/Random.ts"

/** What the first requests found out about the server. */
export interface Manners {
  /** It accepts `stream_options`. */
  readonly usage: boolean
}

export interface Requests {
  readonly target: Target
  readonly plans: Plans
  readonly shares: Partial<Readonly<Record<Kind, number>>>
  readonly seed: number
  /** Where turns of conversations are asked for. */
  readonly conversations?: Conversations
}

/** The kind of a request: drawn by the shares, the same for the same index. */
export const kindOf = ({ seed, shares }: Pick<Requests, "seed" | "shares">, index: number): Kind => {
  const list = kinds.filter((kind) => (shares[kind] ?? 0) > 0)
  const total = list.reduce((sum, kind) => sum + shares[kind]!, 0)
  let left = (new Random(seed ^ 0x6b696e64, index).next() / 2 ** 32) * total
  for (const kind of list) {
    left -= shares[kind]!
    if (left < 0) return kind
  }
  return list.at(-1) ?? "text"
}

/** Clips in rotation, so that all are used equally. */
const clipOf = (clips: ReadonlyArray<Clip>, index: number): Clip => clips[index % clips.length]!

const perform = (
  { conversations, plans, target }: Requests,
  kind: Kind,
  manners: Manners,
  { client, index, scheduledAtMs, signal }: Issue,
): Promise<Measured> => {
  switch (kind) {
    case "text": {
      const { prompts, ...rest } = plans.text!
      const ask = { ...rest, prompt: prompts.prompt(index), usage: manners.usage }
      return chat(target, ask, scheduledAtMs, signal)
    }
    case "speech": {
      const { input, ...rest } = plans.speech!
      return speak(target, { ...rest, input: input(index) }, scheduledAtMs, signal)
    }
    case "transcription": {
      const { clips, ...rest } = plans.transcription!
      return transcribe(target, { ...rest, clip: clipOf(clips, index) }, scheduledAtMs, signal)
    }
    case "live": {
      const { clips, ...rest } = plans.live!
      return runLive(target, { ...rest, clip: clipOf(clips, index) }, scheduledAtMs, signal)
    }
    case "conversation":
      return conversations!.turn(client, index, signal)
  }
}

export const request = async (
  requests: Requests,
  kind: Kind,
  manners: Manners,
  issue: Issue,
): Promise<Outcome> => {
  try {
    return { kind, measured: await perform(requests, kind, manners, issue) }
  } catch (cause) {
    if (cause instanceof RequestFailed) return { kind, failure: { key: cause.key, detail: cause.message } }
    const detail = cause instanceof Error ? cause.message : String(cause)
    return { kind, failure: { key: "wrong reply", detail: oneLine(detail) } }
  }
}
