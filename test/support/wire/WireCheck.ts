// Decodes every recorded reply, event and frame with its declared schema, and reports everything that is not declared.
import { isObject } from "#domain/wire/text/Fields.ts"
import { pathOf } from "#http/NotFound.ts"
import { type Endpoint, endpointOf, ofListener, type Replies } from "./DeclaredReplies.ts"
import { bodyAt, eventsIn, type Frame, framesIn, type Head, headAt } from "./WireMessages.ts"
import { type Bytes, type Connection, connections } from "./WireTap.ts"

/** Numbers of checked messages, for a test of the check itself. */
export const checked = { replies: 0, events: 0, frames: 0 }

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const eventProblems = ({ events, name }: Endpoint, text: string): ReadonlyArray<string> =>
  eventsIn(text).flatMap((event) => {
    checked.events++
    const [, type, data] = /^(?:event: (\S+)\n)?data: ([^\r\n]*)$/.exec(event) ?? []
    if (data === undefined) return [`${name}: an event that is not one line of data: ${event.slice(0, 200)}`]
    if (data === "[DONE]") return []
    const value = jsonOf(data)
    const isNamed = type === undefined || (isObject(value) && value.type === type)
    const problem =
      events?.(value) ??
      (events === undefined ? "no events are declared" : undefined) ??
      (isNamed ? undefined : `has the name ${type}`)
    return problem === undefined ? [] : [`${name}: event ${data.slice(0, 300)}: ${problem}`]
  })

/** @param isAnswer whether the client has closed the socket before: the server repeats its code and reason */
const frameProblems = (
  endpoint: Endpoint,
  { kind, payload }: Frame,
  isAnswer: boolean,
): ReadonlyArray<string> => {
  const { frames, name } = endpoint
  checked.frames++
  if (kind === "ping" || kind === "pong") return []
  if (frames === undefined) return [`${name}: no frames are declared`]
  if (kind === "close") {
    if (isAnswer) return []
    const code = payload.length < 2 ? 1005 : payload.readUInt16BE(0)
    const reason = payload.toString("utf8", 2)
    const known = frames.closes[code] ?? []
    const isKnown = known.some((one) => (typeof one === "string" ? one === reason : one.test(reason)))
    return isKnown ? [] : [`${name}: close ${code} with the reason ${JSON.stringify(reason)} is not declared`]
  }
  if (kind !== "text") return [`${name}: a ${kind} frame is not declared`]
  const text = payload.toString("utf8")
  const problem = frames.decode(jsonOf(text))
  return problem === undefined ? [] : [`${name}: frame ${text.slice(0, 300)}: ${problem}`]
}

const bodyProblem = (candidates: ReadonlyArray<Replies>, type: string, body: Buffer): string | undefined => {
  if (candidates.some(({ contentTypes }) => contentTypes.has(type))) return undefined
  if (type !== "application/json") return `the content type ${type} is not declared`
  const decoders = candidates.flatMap(({ json }) => json)
  if (decoders.length === 0) return "no JSON body is declared"
  const value = jsonOf(body.toString("utf8"))
  const problems = decoders.map((decode) => decode(value))
  return problems.includes(undefined) ? undefined : [...new Set(problems)].join("; or ")
}

interface Asked {
  /** False if the bytes are not a request, so that only the listener answers, or if the request was not recorded. */
  readonly isRead: boolean
  readonly method: string
  readonly endpoint: Endpoint | undefined
}

const replyProblems = (role: string, asked: Asked, head: Head, body: Buffer, isWhole: boolean) => {
  checked.replies++
  const status = Number(head.first.split(" ")[1])
  const { endpoint, method } = asked
  const about = `${endpoint?.name ?? `${method} of another path`} (${role}) ${status}`
  const candidates = [endpoint?.replies.get(status), ofListener.get(status)].filter(
    (one) => one !== undefined,
  )
  if (candidates.length === 0) return asked.isRead ? [`${about}: the status is not declared`] : []
  const problems = [...head.headers.keys()]
    .filter((name) => !candidates.some(({ headers }) => headers.has(name)))
    .map((name) => `${about}: the header ${name} is not declared`)
  const type = head.headers.get("content-type") ?? ""
  const hasBody = method !== "HEAD" && body.length > 0
  if (!hasBody) return problems
  if (type.startsWith("text/event-stream") && endpoint !== undefined) {
    return [...problems, ...eventProblems(endpoint, body.toString("utf8"))]
  }
  if (head.headers.get("content-encoding") !== undefined || !isWhole) return problems
  const problem = bodyProblem(candidates, type, body)
  return problem === undefined
    ? problems
    : [...problems, `${about}: ${body.toString("utf8").slice(0, 300)}: ${problem}`]
}

const whole = (bytes: Bytes): Buffer => Buffer.concat(bytes.chunks)

const drop = (bytes: Bytes, data: Buffer, end: number): void => {
  bytes.chunks.splice(0, bytes.chunks.length, ...(end < data.length ? [data.subarray(end)] : []))
  bytes.size = data.length - end
}

const requestLine = /^([A-Z]+) (\S+) HTTP\/1\.1$/

/** The problems of all bytes that a connection has received so far. Checked bytes are dropped. */
class Reader {
  readonly #connection: Connection
  #endpoint: Endpoint | undefined
  #isSocket = false
  #isClosedByClient = false
  /** A request could not be parsed, so the following bytes cannot be split into messages. */
  #isLost = false

  constructor(connection: Connection) {
    this.#connection = connection
  }

  #asked(sent: Buffer, at: number): { readonly asked: Asked; readonly end: number } {
    const unknown = {
      asked: { isRead: false, method: "bytes that are no request", endpoint: undefined },
      end: sent.length,
    }
    const head = this.#isLost ? undefined : headAt(sent, at)
    const [, method = "", url = ""] = requestLine.exec(head?.first ?? "") ?? []
    if (head === undefined || method === "") {
      this.#isLost = true
      return unknown
    }
    const endpoint = endpointOf(this.#connection.role, method, pathOf(url))
    return { asked: { isRead: true, method, endpoint }, end: bodyAt(sent, head).end }
  }

  read(): ReadonlyArray<string> {
    const { isOver, received, role, sent } = this.#connection
    const problems: Array<string> = []
    const data = whole(received)
    const out = whole(sent)
    let at = 0
    let outAt = 0
    while (!this.#isSocket) {
      const head = headAt(data, at)
      if (head === undefined) break
      const status = Number(head.first.split(" ")[1])
      if (status >= 100 && status < 101) {
        at = head.end
        continue
      }
      const { asked, end } = this.#asked(out, outAt)
      const hasNone = asked.method === "HEAD" || status === 101 || status === 204 || status === 304
      const body = hasNone
        ? { bytes: data.subarray(0, 0), end: head.end, isComplete: true }
        : bodyAt(data, head)
      if (!body.isComplete && !isOver && !received.isCut) break
      problems.push(...replyProblems(role, asked, head, body.bytes, body.isComplete))
      at = body.end
      outAt = end
      if (status !== 101) continue
      this.#isSocket = true
      this.#endpoint = asked.endpoint
    }
    if (this.#isSocket && this.#endpoint !== undefined) {
      const { end, frames } = framesIn(data, at)
      const client = framesIn(out, outAt)
      // Where more was sent than is kept, its close frame may be among the rest.
      this.#isClosedByClient ||= sent.isCut || client.frames.some(({ kind }) => kind === "close")
      for (const frame of frames)
        problems.push(...frameProblems(this.#endpoint, frame, this.#isClosedByClient))
      at = end
      outAt = client.end
    }
    drop(received, data, at)
    drop(sent, out, outAt)
    return problems
  }
}

const readers = new WeakMap<Connection, Reader>()

/** The problems of everything that the listeners have sent since the last call. */
export const wireProblems = (): ReadonlyArray<string> => {
  const problems = [...connections].flatMap((connection) => {
    const reader = readers.get(connection) ?? new Reader(connection)
    readers.set(connection, reader)
    if (connection.isOver) connections.delete(connection)
    return reader.read()
  })
  return [...new Set(problems)]
}
