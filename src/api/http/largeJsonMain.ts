// Entry point of the thread that parses large JSON bodies: bytes from LargeJson in, values or errors out.
import { parentPort } from "node:worker_threads"
import { parseJson } from "./JsonText.ts"
import type { FromLargeJson, ToLargeJson } from "./LargeJson.ts"

const port = parentPort
if (port === null) throw new Error("largeJsonMain runs as a worker thread")

const text = new TextDecoder()

port.on("message", ({ bytes, id }: ToLargeJson) => {
  const answer: FromLargeJson = { id, parsed: parseJson(text.decode(bytes)) }
  port.postMessage(answer)
})
