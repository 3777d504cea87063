// Writes an event of the server to a realtime socket. A large one is made to JSON in slices.
import { Effect } from "effect"
import type { SocketError, Writer } from "effect/socket/Socket"
import { isLarge, JsonWriter } from "#domain/json/JsonWriter.ts"
import { inSlices } from "#http/InSlices.ts"
import { joined } from "#http/JoinedBytes.ts"
import { TextFrame } from "#http/SocketFrames.ts"

/** Characters of an event that is made to JSON in one go: 0.3 ms. Audio of an answer is less. */
const atOnce = 64 * 1024

export const writeEvent = ({ write }: Writer, event: object): Effect.Effect<void, SocketError> =>
  isLarge(event, atOnce)
    ? Effect.gen(function* () {
        const writer = new JsonWriter(event)
        const whole = yield* joined(yield* inSlices((isOver) => writer.write(isOver)))
        yield* write(new TextFrame(whole.buffer as ArrayBuffer, whole.byteOffset, whole.byteLength))
      })
    : write(JSON.stringify(event))
