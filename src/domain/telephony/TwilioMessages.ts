// Messages of Twilio's Media Streams, over which a telephone call reaches a node as a WebSocket: JSON texts with µ-law audio of 8 kHz in base64.
// Schemas and pure functions.
import { Schema } from "effect"

const base64 = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9+/]*={0,2}$/))

const Connected = Schema.Struct({ event: Schema.Literal("connected") })
const Start = Schema.Struct({
  event: Schema.Literal("start"),
  start: Schema.Struct({
    streamSid: Schema.String.check(Schema.isMaxLength(64)),
    mediaFormat: Schema.Struct({
      encoding: Schema.Literal("audio/x-mulaw"),
      sampleRate: Schema.Literal(8_000),
      channels: Schema.Literal(1),
    }),
    /** The `<Parameter>` elements of the TwiML. */
    customParameters: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  }),
})
const Media = Schema.Struct({
  event: Schema.Literal("media"),
  media: Schema.Struct({ track: Schema.optionalKey(Schema.String), payload: base64 }),
})
/** All audio that was sent before the mark was played, or was cleared. */
const Mark = Schema.Struct({
  event: Schema.Literal("mark"),
  mark: Schema.Struct({ name: Schema.String.check(Schema.isMaxLength(64)) }),
})
const Dtmf = Schema.Struct({
  event: Schema.Literal("dtmf"),
  dtmf: Schema.Struct({ digit: Schema.String.check(Schema.isPattern(/^[0-9A-D*#]$/)) }),
})
const Stop = Schema.Struct({ event: Schema.Literal("stop") })

/** What Twilio sends. */
export const TwilioMessage = Schema.Union([Connected, Start, Media, Mark, Dtmf, Stop])
export type TwilioMessage = typeof TwilioMessage.Type
export type TwilioStart = (typeof Start.Type)["start"]

const stream = { streamSid: Schema.String }

/** What a node sends. `clear`: what was sent and not played yet is dropped, and its marks come back at once. */
export const TwilioReply = Schema.Union([
  Schema.Struct({ event: Schema.Literal("media"), ...stream, media: Schema.Struct({ payload: base64 }) }),
  Schema.Struct({ event: Schema.Literal("mark"), ...stream, mark: Schema.Struct({ name: Schema.String }) }),
  Schema.Struct({ event: Schema.Literal("clear"), ...stream }),
])

/** A mark's name: how many samples were sent before it, and since how many cuts. */
export const markName = (cuts: number, samples: number): string => `${cuts}:${samples}`

/** Samples that were played when the mark came; undefined for a mark of before the last cut, or one that was not sent. */
export const playedAt = (name: string, cuts: number): number | undefined => {
  const [, of = "", samples = ""] = /^(\d{1,9}):(\d{1,15})$/.exec(name) ?? []
  return of === String(cuts) && samples !== "" ? Number(samples) : undefined
}
