// Entry point of the thread that parses large JSON bodies: bytes from LargeJson in, values or errors out.
import { parentPort } from "node:worker_threads"
import { hasManyKeys, type JsonPiece, maxKeys, piecesOf } from "./JsonPieces.ts"
import { parseJson } from "./JsonText.ts"
import type { FromLargeJson, ToLargeJson } from "./LargeJson.ts"

const port = parentPort
if (port === null) throw new Error("largeJsonMain runs as a worker thread")

const text = new TextDecoder()

/** Values of which pieces are still to be sent, with the next piece. */
const sending = new Map<number, { readonly rest: Generator<JsonPiece>; readonly next: JsonPiece }>()

const send = (message: FromLargeJson): void => port.postMessage(message)

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
  const parsed = parseJson(text.decode(message.bytes))
  if ("problem" in parsed) return send({ id, problem: parsed.problem })
  if (hasManyKeys(parsed.value)) return send({ id, problem: `has an object of more than ${maxKeys} keys` })
  const pieces = piecesOf(parsed.value)
  sendNext(id, pieces, pieces.next().value)
})
