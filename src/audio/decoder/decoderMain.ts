// The door of the decoder process: takes one decode at a time from Decoder over IPC and answers it. It is started
// with an empty environment, is killed to cancel, and ends when its parent does.

import { flushCompileCache } from "node:module"
import { decodeFile } from "./DecodeLoop.ts"
import type { DecodeRequest, FromDecoder, ToDecoder } from "./DecoderWire.ts"
import { WINDOW_CHUNKS } from "./DecoderWire.ts"
import { Rejected } from "./MonoResampler.ts"

const send = (message: FromDecoder) => {
  process.send?.(message)
}

let unacknowledged = 0
let acknowledged: (() => void) | undefined

const decode = async (request: DecodeRequest) => {
  unacknowledged = 0
  try {
    const totals = await decodeFile(request, {
      info: (info) => send({ t: "info", info }),
      emit: (samples) => {
        send({ t: "chunk", samples })
        if (++unacknowledged < WINDOW_CHUNKS) return undefined
        return new Promise((resolve) => {
          acknowledged = resolve
        })
      },
    })
    send({ t: "end", totals })
  } catch (cause) {
    // Anything else is a mistake of this program: it ends the process, and the parent tells the request.
    if (!(cause instanceof Rejected)) throw cause
    send({ t: "rejected", reason: cause.reason, detail: cause.message })
  }
}

process.on("message", (message: ToDecoder) => {
  if (message.t === "decode") {
    void decode(message.request)
    return
  }
  unacknowledged--
  const resume = acknowledged
  acknowledged = undefined
  resume?.()
})
process.on("disconnect", () => process.exit(0))
// For the next one: Node keeps what it has compiled when it exits, and decoders are killed. 0.1 s once, then 5 ms.
flushCompileCache()
send({ t: "up" })
