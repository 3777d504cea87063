// GET /v1/telephony/twilio: a telephone call over Twilio's Media Streams becomes a conversation. The handshake is Twilio's if it is signed; who pays, and
// with which model the caller speaks, the parameters of the first message say, which stand in the TwiML.
import { Context, Effect, Option } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { CloseEvent, type Reader, SocketCloseError, SocketError, type Writer } from "effect/socket/Socket"
import type { SessionChange } from "#domain/conversation/Settings.ts"
import { TwilioMessage, type TwilioStart } from "#domain/telephony/TwilioMessages.ts"
import { isSigned } from "#domain/telephony/TwilioSignature.ts"
import { CallNotFound, InvalidRequest, Unauthorized } from "#domain/wire/Errors.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { TextFrame } from "#http/SocketFrames.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import { holdConversation } from "../conversation/door/Converse.ts"
import { identifyOpener, openerOf } from "../conversation/door/Opener.ts"
import { decodeJson } from "../http/JsonBody.ts"
import { isWebSocket, upgradeLive } from "../live/LiveAdmission.ts"
import { twilioLine } from "./TwilioLine.ts"

/** The account's auth token at Twilio; empty: the node takes no telephone calls. */
export const TwilioToken = Context.Reference<string>("edgewise/api/TwilioToken", { defaultValue: () => "" })

/** Twilio's own messages have some hundred bytes. */
const messageSize = { mostBytes: 65_536, cuts: false }

/** Time until the first message with parameters. Twilio sends it at once. */
const startWithin = "5 seconds"

/** The model of a call that names none. */
const defaultModel = "gpt-realtime"

const unknownMessage = "unknown message"

const decodeMessage = decodeJson(TwilioMessage)

const textOf = (frame: string | Uint8Array): string =>
  typeof frame === "string" ? frame : frame instanceof TextFrame ? new TextDecoder().decode(frame) : ""

/** Reads one message after the other. */
class MessageReader {
  readonly #reader: Reader
  #frames: ReadonlyArray<string | Uint8Array> = []

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** The next message; a text that is none of Twilio's is a refusal. */
  readonly next: Effect.Effect<TwilioMessage, InvalidRequest | SocketError> = Effect.suspend(() => {
    const [frame, ...later] = this.#frames
    if (frame !== undefined) {
      this.#frames = later
      return decodeMessage(textOf(frame))
    }
    return Effect.flatMap(this.#reader.pull, (frames) => {
      this.#frames = frames
      return this.next
    })
  })

  /** Reads up to the first message with parameters. */
  readonly start: Effect.Effect<TwilioStart, InvalidRequest | SocketError> = Effect.flatMap(
    this.next,
    (message) => {
      if (message.event === "start") return Effect.succeed(message.start)
      if (message.event === "connected") return this.start
      return Effect.fail(new InvalidRequest({ field: "event", problem: "must be start, before any other" }))
    },
  )
}

const changeOf = ({ instructions, voice }: Readonly<Record<string, string>>): SessionChange => ({
  type: "realtime",
  ...(instructions === undefined ? {} : { instructions }),
  ...(voice === undefined ? {} : { audio: { output: { voice } } }),
})

/** The conversation of a call that has started. */
const converse = Effect.fnUntraced(function* (
  { customParameters = {}, streamSid }: TwilioStart,
  messages: MessageReader,
  writer: Writer,
) {
  const { api_key = "", model } = customParameters
  const identity = yield* identifyOpener(api_key)
  const found = yield* openerOf(identity, model ?? null, defaultModel)
  const opener = { ...found, session: [...found.session, changeOf(customParameters)] }
  // A message that is not understood ends the call.
  const next = Effect.catchTag(messages.next, "InvalidRequest", () =>
    Effect.andThen(
      writer.write(new CloseEvent(1008, unknownMessage)),
      Effect.fail(
        new SocketError({ reason: new SocketCloseError({ code: 1008, closeReason: unknownMessage }) }),
      ),
    ),
  )
  yield* holdConversation(opener, twilioLine({ streamSid, next, writer }))
})

/** The reason of a close frame has at most 123 bytes. */
const shortReason = (error: EdgeError): string => detailOf(error).slice(0, 120)

export const twilioSocket = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const token = yield* TwilioToken
  if (token === "") return yield* new CallNotFound({ isOff: true })
  if (!isWebSocket(request))
    return yield* new InvalidRequest({ field: "upgrade", problem: "this address speaks WebSocket only" })
  const { headers, url } = request
  const signature = headers["x-twilio-signature"] ?? ""
  if (!isSigned(token, headers.host ?? "", url, signature))
    return yield* new Unauthorized({ reason: "invalid-signature" })
  yield* Effect.gen(function* () {
    const connection = yield* upgradeLive(request, messageSize)
    const messages = new MessageReader(yield* connection.reader)
    const writer = yield* connection.writer
    const life = Effect.gen(function* () {
      const start = yield* Effect.timeoutOption(messages.start, startWithin)
      if (Option.isNone(start)) return yield* writer.write(new CloseEvent(1008, "no start"))
      yield* converse(start.value, messages, writer)
    })
    yield* Effect.catchIf(
      life,
      (error): error is Exclude<typeof error, SocketError> => error._tag !== "SocketError",
      (error) =>
        Effect.andThen(
          reportFailure(error, "/v1/telephony/twilio"),
          writer.write(new CloseEvent(1008, shortReason(error))),
        ),
    )
  }).pipe(
    Effect.scoped,
    Effect.catchIf(
      (error): error is SocketError => error._tag === "SocketError",
      () => Effect.void,
    ),
  )
  return HttpServerResponse.empty()
})
