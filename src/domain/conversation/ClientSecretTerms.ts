// What `POST /v1/realtime/client_secrets` takes and answers, and what is stored of it. Schemas and pure functions.
import { Schema } from "effect"
import { microDollarsPerDollar } from "../models/Money.ts"
import { finite, int, optional, range, textUpTo } from "../wire/text/Fields.ts"
import { ConversationSession } from "./ServerEvents.ts"
import { SessionChange } from "./Settings.ts"

/** Life of a secret, seconds. OpenAI's values. */
export const secretSeconds = { default: 600, minimum: 10, maximum: 7_200 }

/** Longest session that a limit can set, seconds: the longest of all. */
const longestSeconds = 3_600

/** Characters of a secret's terms as JSON. A guess: a hundred tools with their schemas are shorter. */
export const maxTermsCharacters = 65_536

const seconds = int.check(range(secretSeconds.minimum, secretSeconds.maximum))

/** Sessions of a secret that are open at the same time. By default those of a page, a second tab and two that are being replaced: a guess. */
export const sessionsAtOnce = { default: 4, minimum: 1, maximum: 100 }

/** What the sessions of a secret may take at most. Not OpenAI's. */
export const SessionLimits = Schema.Struct({
  max_sessions: optional(
    int
      .check(range(sessionsAtOnce.minimum, sessionsAtOnce.maximum))
      .annotate({ description: "Sessions that may be open at the same time, on each node; 4 by default" }),
  ),
  max_session_seconds: optional(
    int
      .check(range(1, longestSeconds))
      .annotate({ description: "Duration of each session, from its handshake on" }),
  ),
  max_cost_usd: optional(
    finite.check(range(1 / microDollarsPerDollar, 1_000_000)).annotate({
      description:
        "What the turns, answers and speech of all sessions of the secret are charged together, US dollars",
    }),
  ),
})
export type SessionLimits = typeof SessionLimits.Type

const fields = {
  expires_after: optional(
    Schema.Struct({
      anchor: optional(Schema.Literal("created_at").annotate({ message: "must be created_at" })),
      seconds: optional(seconds),
    }),
  ),
  session: Schema.optionalKey(Schema.Struct({ ...SessionChange.fields, model: optional(textUpTo(256)) })),
  limits: optional(SessionLimits),
}

export const ClientSecretRequest = Schema.Struct(fields)
export type ClientSecretRequest = typeof ClientSecretRequest.Type

/** What a session of the secret begins with. */
export const SecretTerms = Schema.Struct({
  /** As its server wrote it. */
  model: Schema.String,
  session: SessionChange,
  limits: SessionLimits,
})
export type SecretTerms = typeof SecretTerms.Type

const { id: _id, expires_at: _end, ...described } = ConversationSession.fields

export const ClientSecretReply = Schema.Struct({
  value: Schema.String,
  /** Unix time, seconds. */
  expires_at: Schema.Int,
  /** The session as it will begin; each has an id and an end of its own. */
  session: Schema.Struct(described),
  limits: SessionLimits,
})

const known: Readonly<Record<string, ReadonlyArray<string>>> = {
  "": ["expires_after", "session", "limits"],
  expires_after: ["anchor", "seconds"],
  limits: Object.keys(SessionLimits.fields),
}

/**
 * A key that a request should not have. Elsewhere unknown keys are ignored; here a limit with a wrong name would be none. Those of
 * `session` are ignored as in `session.update`.
 */
export const unknownField = (body: unknown): string | undefined => {
  for (const [at, keys] of Object.entries(known)) {
    const value = at === "" ? body : (body as Readonly<Record<string, unknown>> | null)?.[at]
    if (typeof value !== "object" || value === null) continue
    const other = Object.keys(value).find((key) => !keys.includes(key))
    if (other !== undefined) return at === "" ? other : `${at}.${other}`
  }
  return undefined
}

/** The most that all sessions of the secret may be charged together, micro-dollars; undefined without a limit. */
export const maxMicroDollarsOf = ({ max_cost_usd: usd }: SessionLimits): number | undefined =>
  typeof usd === "number" ? Math.round(usd * microDollarsPerDollar) : undefined
