// The line of a telephone call over Twilio's Media Streams. What the caller says arrives at the conversation as audio frames, keys that are pressed as
// texts. Speech goes out as media, each with a mark; a mark that comes back says what was heard, so that an interruption cuts to the word.
import { Effect, type Scope } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Socket from "effect/socket/Socket"
import { fromG711, g711RateHz, toG711 } from "#audio/G711.ts"
import { Resampler } from "#audio/Resampler.ts"
import { speechRateHz } from "#domain/audio/Audio.ts"
import type { PlayClock } from "#domain/conversation/PlayClock.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { Signal } from "#domain/queues/Signal.ts"
import { markName, playedAt, type TwilioMessage } from "#domain/telephony/TwilioMessages.ts"
import { audioFrame } from "#http/SocketFrames.ts"
import type { Line } from "../conversation/Line.ts"

type Frame = string | Uint8Array

/** From the sending of audio until a telephone plays it, milliseconds, until the first mark comes back. A guess. */
const firstDelayMs = 150

interface TwilioLineTerms {
  readonly streamSid: string
  /** The next message of Twilio. */
  readonly next: Effect.Effect<TwilioMessage, Socket.SocketError>
  readonly writer: Socket.Writer
}

/** A key of the telephone, as a message of the user. It is answered with the next turn. */
const pressed = (digit: string): string =>
  JSON.stringify({
    type: "conversation.item.create",
    item: { type: "message", role: "user", content: [{ type: "input_text", text: `Pressed key: ${digit}` }] },
  })

const stopped = new Socket.SocketError({
  reason: new Socket.SocketCloseError({ code: 1000, closeReason: "the caller has hung up" }),
})

export const twilioLine = ({
  next,
  streamSid,
  writer,
}: TwilioLineTerms): Effect.Effect<Line, never, Scope.Scope> =>
  Effect.gen(function* () {
    let clock: PlayClock | undefined
    let cuts = 0
    /** Samples that the newest mark has confirmed. */
    let confirmed = 0
    let unsent: Array<string> = []
    const news = new Signal()
    const resampler = new Resampler(speechRateHz, g711RateHz)

    const send = (message: object): void => {
      unsent.push(JSON.stringify({ ...message, streamSid }))
      news.set()
    }

    /** What one message of Twilio is for the conversation; undefined: nothing. */
    const take = (message: TwilioMessage, nowMs: number): Frame | undefined => {
      switch (message.event) {
        case "media":
          if ((message.media.track ?? "inbound") !== "inbound") return undefined
          return audioFrame(fromG711(Buffer.from(message.media.payload, "base64"), "pcmu"))
        case "mark": {
          const samples = playedAt(message.mark.name, cuts)
          if (samples === undefined || samples <= confirmed) return undefined
          confirmed = samples
          clock?.played(samples, nowMs)
          return undefined
        }
        case "dtmf":
          return pressed(message.dtmf.digit)
        case "connected":
        case "start":
        case "stop":
          return undefined
      }
    }

    const frames: Effect.Effect<NonEmptyReadonlyArray<Frame>, Socket.SocketError> = Effect.gen(function* () {
      for (;;) {
        const message = yield* next
        if (message.event === "stop") return yield* stopped
        const frame = take(message, yield* monotonicMs)
        if (frame !== undefined) return [frame]
      }
    })

    const write = (chunk: Frame | Socket.CloseEvent): Effect.Effect<void, Socket.SocketError> =>
      // Events of the conversation have no place in Twilio's protocol.
      chunk instanceof Socket.CloseEvent ? writer.write(chunk) : Effect.void

    const sending = Effect.gen(function* () {
      for (;;) {
        news.clear()
        const texts = unsent
        unsent = []
        for (const text of texts) yield* writer.write(text)
        if (unsent.length === 0) yield* news.wait
      }
    })
    yield* Effect.forkScoped(Effect.ignore(sending), { startImmediately: true })

    return {
      reader: {
        pull: frames,
        upgrade: () =>
          Effect.fail(
            new Socket.SocketError({ reason: new Socket.SocketReadError({ cause: "not a stream" }) }),
          ),
      },
      writer: {
        write,
        writeAll: (chunks) => Effect.forEach(chunks, write, { discard: true }),
      },
      sound: {
        rateHz: g711RateHz,
        play: (samples) => {
          const payload = Buffer.from(toG711(resampler.push(samples), "pcmu")).toString("base64")
          if (payload !== "") send({ event: "media", media: { payload } })
          send({ event: "mark", mark: { name: markName(cuts, clock?.sentSamples ?? 0) } })
        },
        flush: () => {
          cuts++
          confirmed = 0
          unsent = []
          send({ event: "clear" })
        },
        delayMs: () => firstDelayMs,
        follow: (followed) => {
          clock = followed
        },
      },
    }
  })
