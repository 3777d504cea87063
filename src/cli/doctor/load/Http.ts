// Requests of the load client to the private node, over Node's http client with kept connections. Every function takes
// an AbortSignal that ends its request. A refusal is an error whose message has the status and the node's detail.
import { Agent, type IncomingMessage, request } from "node:http"
import type { Target } from "./Tasks.ts"

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

export class Refused extends Error {
  readonly status: number

  constructor(status: number, detail: string) {
    super(`the node answered ${status}: ${detail}`)
    this.status = status
  }
}

const textOf = async (incoming: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString("utf8")
}

const detailOf = (text: string): string => {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === "object" && body !== null && "detail" in body)
      return String(body.detail).slice(0, 300)
  } catch {
    // Not JSON: the first characters are used.
  }
  return text.slice(0, 300)
}

interface Sent {
  readonly path: string
  readonly type: string
  readonly body: string | Uint8Array
  readonly signal: AbortSignal
}

/** Sends the request and returns the head of the reply. Rejects with `Refused` unless the status is 200. */
const post = async ({ key, port }: Target, { body, path, signal, type }: Sent): Promise<IncomingMessage> => {
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request(
      {
        agent,
        host: "127.0.0.1",
        port,
        path,
        method: "POST",
        signal,
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": type,
          "content-length": Buffer.byteLength(body),
        },
      },
      resolve,
    )
    outgoing.on("error", reject)
    outgoing.end(body)
  })
  if (incoming.statusCode === 200) return incoming
  throw new Refused(incoming.statusCode ?? 0, detailOf(await textOf(incoming)))
}

/** Passes each piece of the reply's body to `onChunk`. */
export const postStream = async (
  target: Target,
  sent: Omit<Sent, "type" | "body"> & { readonly json: unknown },
  onChunk: (chunk: Buffer) => void,
): Promise<void> => {
  const { json, ...rest } = sent
  const incoming = await post(target, { ...rest, type: "application/json", body: JSON.stringify(json) })
  await new Promise<void>((resolve, reject) => {
    incoming.on("data", onChunk)
    incoming.on("end", resolve)
    incoming.on("error", reject)
    incoming.on("close", () => {
      if (!incoming.complete) reject(new Error("the node closed the connection early"))
    })
  })
}

/** Sends a form with one file and returns the whole body of the reply. */
export const postFile = async (
  target: Target,
  sent: Omit<Sent, "type" | "body"> & { readonly name: string; readonly file: Uint8Array },
): Promise<string> => {
  const boundary = "edgewise-doctor-file"
  const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${sent.name}"\r\ncontent-type: audio/wav\r\n\r\n`
  const body = Buffer.concat([Buffer.from(head), sent.file, Buffer.from(`\r\n--${boundary}--\r\n`)])
  const { path, signal } = sent
  return textOf(await post(target, { path, signal, type: `multipart/form-data; boundary=${boundary}`, body }))
}

/** Requests a WebSocket and returns the status: 101 if it was admitted. `close` ends the connection. */
export const upgrade = (
  { key, port }: Target,
  path: string,
): Promise<{ readonly status: number; readonly close: () => void }> =>
  new Promise((resolve, reject) => {
    const outgoing = request({
      host: "127.0.0.1",
      port,
      path,
      headers: {
        authorization: `Bearer ${key}`,
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": Buffer.from("edgewise doctor!").toString("base64"),
      },
    })
    outgoing.on("upgrade", (_incoming, socket) => {
      socket.on("error", () => {})
      resolve({ status: 101, close: () => void socket.destroy() })
    })
    outgoing.on("response", (incoming) => {
      incoming.resume()
      resolve({ status: incoming.statusCode ?? 0, close: () => void outgoing.destroy() })
    })
    outgoing.on("error", reject)
    outgoing.end()
  })

/** True if an error only means that the signal ended the request. */
export const isAborted = (signal: AbortSignal, error: unknown): boolean =>
  signal.aborted && !(error instanceof Refused)
