// Entry point of the thread that parses large JSON bodies: bytes from LargeJson in, values or errors out.
import { parentPort } from "node:worker_threads"
import { decodeInlinePictures } from "#domain/wire/text/Pictures.ts"
import { parseJson } from "./JsonText.ts"
import type { FromLargeJson, ToLargeJson } from "./LargeJson.ts"

const port = parentPort
if (port === null) throw new Error("largeJsonMain runs as a worker thread")

const text = new TextDecoder()

port.on("message", ({ bytes, id, pictures }: ToLargeJson) => {
  const parsed = parseJson(text.decode(bytes))
  const answer: FromLargeJson = { id, parsed }
  const taken = pictures && "value" in parsed ? decodeInlinePictures(parsed.value) : []
  port.postMessage(
    answer,
    taken.map(({ buffer }) => buffer as ArrayBuffer),
  )
})
