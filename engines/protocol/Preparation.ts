// What an engine can do for a request before the request has a slot, so that requests which need it hold up no others. Only text
// models prepare something: the rules of replies that follow schemas.
import type { GenerateRequest } from "./Text.ts"
import type { EngineKind, Request } from "./Verbs.ts"

/** Whose request it is. Opaque to engines. */
export interface Owner {
  /** Users are served in turn. */
  readonly user: string
  /** What was prepared for one organization is not used for another. */
  readonly organization: string
}

/** What of a request its preparation depends on. */
export interface Preparation extends Pick<GenerateRequest, "format" | "thinkingTokens" | "tools"> {
  /** False: a text prompt. */
  readonly isChat: boolean
}

/** What was prepared, for the `generate` of this request. What it is only its engine knows. */
export interface Prepared {
  /** The request will not follow, or has ended. */
  readonly release: () => void
}

const none = () => undefined

/** Undefined: the request needs none. */
export const preparationOf: {
  readonly [K in EngineKind]: (request: Request<K>) => Preparation | undefined
} = {
  text: ({ format, prompt, thinkingTokens, tools }) =>
    format === undefined && tools === undefined
      ? undefined
      : {
          isChat: "turns" in prompt,
          ...(format === undefined ? {} : { format }),
          ...(tools === undefined ? {} : { tools }),
          ...(thinkingTokens === undefined ? {} : { thinkingTokens }),
        },
  speech: none,
  transcription: none,
  embedding: none,
  detection: none,
}
