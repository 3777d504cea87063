// Writes events of the server to a realtime socket, of a conversation or a transcription. A large one is made to JSON in slices.
import { Effect } from "effect"
import type { SocketError, Writer } from "effect/socket/Socket"
import { isLarge, JsonWriter } from "#domain/json/JsonWriter.ts"
import { freeMemory } from "#domain/queues/FreeMemory.ts"
import { inSlices } from "#http/InSlices.ts"
import { joined } from "#http/JoinedBytes.ts"
import { TextFrame } from "#http/SocketFrames.ts"

/** Characters of an event that is made to JSON in one go: 0.3 ms. Audio of an answer is less. */
const atOnce = 64 * 1024

const writeJson = (writer: Writer, event: object): Effect.Effect<void, SocketError> =>
  isLarge(event, atOnce)
    ? Effect.gen(function* () {
        const json = new JsonWriter(event)
        const parts = yield* inSlices((isOver) => json.write(isOver))
        const whole = yield* joined(parts)
        for (const part of parts) freeMemory(part)
        yield* writer.write(new TextFrame(whole.buffer as ArrayBuffer, whole.byteOffset, whole.byteLength))
      })
    : writer.write(JSON.stringify(event))

/** Gives each event an id of its own. */
export const eventWriter =
  (writer: Writer, newId: () => string) =>
  (type: string, event: object = {}): Effect.Effect<void, SocketError> =>
    writeJson(writer, { type, event_id: `event_${newId()}`, ...event })
