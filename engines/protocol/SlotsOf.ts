// How many slots of its engine a request takes. Pure.
import type { EngineKind, Request } from "./Verbs.ts"

export const slotsOf: { readonly [K in EngineKind]: (request: Request<K>) => number } = {
  /** One for each reply that is generated. */
  text: ({ bestOf = 1, replies = 1 }) => Math.max(replies, bestOf),
  speech: () => 1,
  transcription: () => 1,
  embedding: () => 1,
}
