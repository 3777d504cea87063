// The entry of the decoder process: receives one decode at a time over IPC and sends its result. Its argument says what
// decodes (a `DecoderProgram` as JSON). It starts with an empty environment, is killed to cancel a decode, and ends when
// its parent ends.

import type { PictureRequest } from "#domain/pictures/PictureRequest.ts"
import type { DecodeFile } from "./DecodeInput.ts"
import type { DecodeRequest, DecoderProgram, FromDecoder, ToDecoder } from "./DecoderWire.ts"
import { windowChunks } from "./DecoderWire.ts"
import { Rejected } from "./Rejected.ts"
import { RingWriter, Unwritable } from "./RingWriter.ts"

const send = (message: FromDecoder) => {
  process.send?.(message)
}

let unacknowledged = 0
let acknowledged: (() => void) | undefined
let ring: RingWriter | undefined

const emitChunk = (samples: Float32Array): Promise<void> | undefined => {
  send({ t: "chunk", samples })
  if (++unacknowledged < windowChunks) return undefined
  return new Promise((resolve) => {
    acknowledged = resolve
  })
}

/** Loads what decodes. The package node-av is imported only here, and only if it is wanted: it may be missing. */
const load = async (program: DecoderProgram): Promise<DecodeFile> => {
  switch (program.kind) {
    case "node-av":
      return (await import("./BindingDecode.ts")).decodeFile
    case "ffmpeg":
      return (await import("./ProgramDecode.ts")).decodeWith(program)
  }
}

const decode = async (decodeFile: DecodeFile, request: DecodeRequest) => {
  unacknowledged = 0
  try {
    ring = request.ring && new RingWriter(request.ring, (samples) => send({ t: "written", samples }))
    const totals = await decodeFile(request, {
      info: (info) => send({ t: "info", info }),
      emit: ring?.write.bind(ring) ?? emitChunk,
    })
    send({ t: "end", totals })
  } catch (cause) {
    if (cause instanceof Rejected) send({ t: "rejected", reason: cause.reason, detail: cause.message })
    else if (cause instanceof Unwritable) send({ t: "unwritable", code: cause.code })
    // Any other error is a bug of this program: it ends the process, and the parent reports the failure.
    else throw cause
  } finally {
    ring?.close()
    ring = undefined
  }
}

const decodePicture = async (request: PictureRequest) => {
  // Loaded with the first picture: most processes only decode sound.
  const { writePicture } = await import("#pictures/native/WritePicture.ts")
  send(await writePicture(request, (detail) => send({ t: "rejected", reason: "TooCostly", detail })))
}

const serve = (decodeFile: DecodeFile) => {
  process.on("message", (message: ToDecoder) => {
    switch (message.t) {
      case "decode-picture":
        void decodePicture(message.request)
        return
      case "decode":
        void decode(decodeFile, message.request)
        return
      case "allow":
        ring?.allowUntil(message.until)
        return
      case "ack": {
        unacknowledged--
        const resume = acknowledged
        acknowledged = undefined
        resume?.()
      }
    }
  })
  send({ t: "up" })
}

/** The first line only: the rest of a module's error is a list of the places where it was sought. */
const firstLine = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).split("\n", 1)[0] ?? ""

process.on("disconnect", () => process.exit(0))
load(JSON.parse(process.argv[2] ?? "")).then(serve, (cause: unknown) => {
  process.send?.({ t: "absent", detail: firstLine(cause) } satisfies FromDecoder, () => process.exit(1))
})
