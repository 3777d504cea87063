// The input of an index: which kind it is, its bytes and how they are cut. The same seed and index give the same input.
// Pure.

import { Random } from "#harness/random/Random.ts"
import { audioFiles } from "./Files.ts"
import { audioTokens, httpTokens, jsonTokens, multipartTokens, mutated } from "./Mutations.ts"
import { chunked, jsonCalls, multipartType, post, upload, uploadFields, wholeRequests } from "./Requests.ts"
import { conversations } from "./Sockets.ts"

/** What is mutated: a whole request, the named part of one, or several requests behind each other. */
export const kinds = [
  "request",
  "pipelined",
  "json",
  "chunked",
  "multipart",
  "handshake",
  "frames",
  "audio",
] as const
export type Kind = (typeof kinds)[number]

export interface Input {
  readonly kind: Kind
  readonly bytes: Buffer
  /** Sent once the handshake in `bytes` was accepted. */
  readonly frames?: Buffer
  /** Into how many pieces the bytes are cut, each written in a tick of its own. */
  readonly pieces: number
  /** Whether the framing is right, so that exactly one answer follows and the connection stays usable. */
  readonly framed: boolean
}

/**
 * Kind of an index, by its remainder. One in 80 is a file and one an upload: a decoder takes milliseconds for what
 * transport refuses in microseconds.
 */
const cycle: ReadonlyArray<Kind> = [
  ...Array.from({ length: 20 }, (): Kind => "request"),
  ...Array.from({ length: 6 }, (): Kind => "pipelined"),
  ...Array.from({ length: 21 }, (): Kind => "json"),
  ...Array.from({ length: 11 }, (): Kind => "chunked"),
  ...Array.from({ length: 7 }, (): Kind => "handshake"),
  ...Array.from({ length: 13 }, (): Kind => "frames"),
  "multipart",
  "audio",
]

const kindOf = (index: number): Kind => cycle[(index * 7) % cycle.length] ?? "request"

/** Inputs that decode have connections of their own, so that they never hold up the others. */
export const decodes = (index: number): boolean => ["multipart", "audio"].includes(kindOf(index))

const uploadPath = "/v1/audio/transcriptions"

const jsonBody = (random: Random) => {
  const call = random.pick(jsonCalls)
  return { path: call.path, body: mutated(call.body, random.pick(jsonCalls).body, random, jsonTokens) }
}

const uploadBody = (random: Random): Buffer => {
  const { bytes, name } = random.pick(audioFiles)
  return upload(bytes, name, random.pick(uploadFields))
}

/** Most chunked inputs are JSON; one in eight is an upload, which is read as it comes. */
const chunkedInput = (random: Random): Buffer => {
  const call = random.pick(jsonCalls)
  const isUpload = random.once(8)
  const path = isUpload ? uploadPath : call.path
  const type = isUpload ? multipartType : "application/json"
  const size = random.pick([1, 7, 64, 4_096])
  const valid = chunked(path, type, isUpload ? uploadBody(random) : call.body, size)
  return Buffer.concat([valid.head, mutated(valid.body, Buffer.from("0\r\n\r\n"), random, httpTokens)])
}

const bytesOf = (kind: Exclude<Kind, "handshake" | "frames">, random: Random): Buffer => {
  switch (kind) {
    case "request":
      return mutated(random.pick(wholeRequests), random.pick(wholeRequests), random, httpTokens)
    case "pipelined": {
      const requests = Array.from({ length: 2 + random.below(12) }, () => random.pick(wholeRequests))
      return mutated(Buffer.concat(requests), random.pick(wholeRequests), random, httpTokens)
    }
    case "json": {
      const { body, path } = jsonBody(random)
      return post(path, "application/json", body)
    }
    case "chunked":
      return chunkedInput(random)
    case "multipart":
      return post(
        uploadPath,
        multipartType,
        mutated(uploadBody(random), uploadBody(random), random, multipartTokens),
      )
    case "audio": {
      const { bytes, name } = random.pick(audioFiles)
      const file = mutated(bytes, random.pick(audioFiles).bytes, random, audioTokens)
      return post(uploadPath, multipartType, upload(file, name, random.pick(uploadFields)))
    }
  }
}

const socketInput = (kind: "handshake" | "frames", random: Random) => {
  const conversation = random.pick(conversations)
  const other = random.pick(conversations)
  if (kind === "handshake") {
    const bytes = mutated(conversation.handshake, other.handshake, random, httpTokens)
    return { bytes, frames: conversation.frames }
  }
  const frames = mutated(conversation.frames, other.frames, random, jsonTokens)
  return { bytes: conversation.handshake, frames }
}

export const inputOf = (seed: number, index: number): Input => {
  const random = new Random(seed, index)
  const kind = kindOf(index)
  const framed = kind === "json" || kind === "multipart" || kind === "audio"
  const made =
    kind === "handshake" || kind === "frames" ? socketInput(kind, random) : { bytes: bytesOf(kind, random) }
  return { kind, ...made, pieces: random.once(4) ? 2 + random.below(6) : 1, framed }
}
