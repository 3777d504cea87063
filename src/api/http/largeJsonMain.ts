// Entry point of the thread that parses large JSON bodies: bytes from LargeJson in, values or errors out.
import { parentPort } from "node:worker_threads"
import { maxJsonBytes, parseJson } from "#domain/wire/JsonText.ts"
import { decodeInlinePictures } from "#domain/wire/text/Pictures.ts"
import { hasManyKeys, type JsonPiece, maxKeys, piecesOf } from "./JsonPieces.ts"
import type { FromLargeJson, ToLargeJson } from "./LargeJson.ts"

const port = parentPort
if (port === null) throw new Error("largeJsonMain runs as a worker thread")

const text = new TextDecoder()

/** Bytes of the texts that begin as a `data:` URL does, in a body that is not parsed. */
const dataUrlBytes = (bytes: Uint8Array): number => {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let sum = 0
  for (let from = body.indexOf('"data:'); from >= 0; ) {
    const end = body.indexOf('"', from + 1)
    const after = end < 0 ? body.length : end
    sum += after - from - 1
    from = body.indexOf('"data:', after)
  }
  return sum
}

/** Values of which pieces are still to be sent, with the next piece. */
const sending = new Map<number, { readonly rest: Generator<JsonPiece>; readonly next: JsonPiece }>()

/** The memory of all pictures in a piece, which passes to the event loop without a copy. */
const picturesIn = (value: unknown): ReadonlyArray<ArrayBuffer> => {
  if (value instanceof Uint8Array) return [value.buffer as ArrayBuffer]
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(picturesIn) : []
}

const send = (message: FromLargeJson): void =>
  port.postMessage(message, "piece" in message ? picturesIn(message.piece.values) : [])

const sendNext = (id: number, rest: Generator<JsonPiece>, piece: JsonPiece): void => {
  const { done, value: next } = rest.next()
  if (done === true) sending.delete(id)
  else sending.set(id, { rest, next })
  send({ id, piece, isLast: done === true })
}

port.on("message", (message: ToLargeJson) => {
  const { id } = message
  if ("wanted" in message) {
    const value = sending.get(id)
    if (!message.wanted) sending.delete(id)
    else if (value !== undefined) sendNext(id, value.rest, value.next)
    return
  }
  const { bytes, pictures } = message
  const parsed = parseJson(text.decode(bytes))
  const inline = !pictures
    ? 0
    : "problem" in parsed
      ? dataUrlBytes(bytes)
      : decodeInlinePictures(parsed.value)
  // The event loop would copy the rest, and no prompt is as long. The size comes first, as for bodies that are not read to their end.
  if (bytes.length - inline > maxJsonBytes) return send({ id, isTooLarge: true })
  if ("problem" in parsed) return send({ id, problem: parsed.problem })
  if (hasManyKeys(parsed.value)) return send({ id, problem: `has an object of more than ${maxKeys} keys` })
  const pieces = piecesOf(parsed.value)
  sendNext(id, pieces, pieces.next().value)
})
