// Requests of the command line to a running node: its address, the key, and the errors for refusals. Uses Node's http
// client, which sends a Content-Length and has no deadline for a long reply.
import { createReadStream, readFileSync } from "node:fs"
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http"
import { request as httpsRequest, type RequestOptions } from "node:https"
import { join } from "node:path"
import { Readable } from "node:stream"
import { Config, Effect, Option, Schema } from "effect"
import { Flag } from "effect/cli"
import { load } from "#config/Config.ts"
import { isLoopbackHost } from "#domain/access/Loopback.ts"
import { portOfOperatorToken } from "#domain/access/OperatorToken.ts"
import { EventStream } from "#harness/client/EventStream.ts"
import { operatorTokenFile } from "#store/accounts/OperatorToken.ts"
import { tlsFiles } from "./NodeCertificate.ts"
import { trustOptions } from "./NodeTrust.ts"
import { textFlag } from "./Output.ts"
import { textsOf } from "./SettingFlags.ts"

/** An error that ends a command with one line. */
export class NodeRefused extends Schema.TaggedError<NodeRefused>()("NodeRefused", {
  status: Schema.Int,
  detail: Schema.String,
  /** One line for each mistake in a file of the node's operator. */
  lines: Schema.optionalKey(Schema.Array(Schema.String)),
}) {
  override get message(): string {
    return this.status === 0 ? this.detail : `${this.detail} (${this.status})`
  }

  /** Exit status of the command: a wrong file counts as wrong usage. */
  get exitStatus(): number {
    return this.lines === undefined ? 1 : 2
  }
}

/** A failure that no node has reported, by its sentence or by what was thrown. */
export const localFailure = (cause: unknown) =>
  new NodeRefused({ status: 0, detail: cause instanceof Error ? cause.message : String(cause) })

export const nodeFlags = {
  url: textFlag("url", "URL", "Address of the node; default: from EDGEWISE_HOST and EDGEWISE_PORT"),
  key: textFlag(
    "key",
    "KEY",
    "API key; default: EDGEWISE_API_KEY, else the data directory's development key",
  ),
}

/** Of commands for operators. */
export const operatorFlags = {
  ...nodeFlags,
  key: nodeFlags.key.pipe(
    Flag.withDescription(
      "API key with the superadmin scope; default: EDGEWISE_API_KEY, else the data directory's operator token",
    ),
  ),
}

export interface NodeAccess {
  readonly base: URL
  readonly key: string
  /** What is trusted over https. */
  readonly trust: RequestOptions
}

/** An address to connect to, for an address to bind. */
const callable = (host: string): string => {
  if (host === "0.0.0.0") return "127.0.0.1"
  if (host === "::") return "[::1]"
  return host.includes(":") ? `[${host}]` : host
}

const developmentKey = (dataDir: string): string | undefined => {
  try {
    return readFileSync(join(dataDir, "dev-key"), "utf8").trim()
  } catch {
    return undefined
  }
}

/** How an operator gets a credential where there is no operator token. */
const otherwise =
  "or give --key with a superadmin key (edgewise keys create --org ops --scope superadmin makes one)"

/**
 * The operator token of the node that is asked. Undefined if there is none: no node runs on this data directory. It is sent to
 * loopback addresses only, which alone accept it, and to no other port than its node's.
 */
const operatorToken = (dataDir: string, base: URL): Effect.Effect<string | undefined, NodeRefused> =>
  Effect.suspend(() => {
    const file = operatorTokenFile(dataDir)
    if (!isLoopbackHost(base.host)) return Effect.succeed(undefined)
    let token: string
    try {
      token = readFileSync(file, "utf8").trim()
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EACCES") return Effect.succeed(undefined)
      return localFailure(
        `${file}: this user may not read it; run the command as the user that the node runs as, ${otherwise}`,
      )
    }
    const port = portOfOperatorToken(token)
    const asked = Number(base.port || (base.protocol === "https:" ? 443 : 80))
    if (port === asked || port === undefined) return Effect.succeed(token)
    return localFailure(
      `${file} is for a node at port ${port}, not ${asked}: set EDGEWISE_PORT=${port}, or EDGEWISE_DATA_DIR to the other node's data directory, ${otherwise}`,
    )
  })

/** The flags that say which node is meant. */
export interface GivenNode {
  readonly url: Option.Option<string>
  readonly key: Option.Option<string>
  /** Of commands that have this flag. */
  readonly dataDir?: Option.Option<string>
}

/** Address and key: from flags, environment or data directory, in this order. */
const accessBy = Effect.fnUntraced(function* (
  given: GivenNode,
  inDataDirectory: (dataDir: string, base: URL) => Effect.Effect<string | undefined, NodeRefused>,
) {
  const config = yield* load(textsOf(given.dataDir === undefined ? {} : { dataDir: given.dataDir }))
  const text = Option.getOrElse(given.url, () => {
    const scheme = tlsFiles(config) === undefined ? "http" : "https"
    return `${scheme}://${callable(config.host)}:${config.port}`
  })
  const base = URL.canParse(text) ? new URL(text) : undefined
  if (base === undefined || !/^https?:$/.test(base.protocol)) {
    return yield* localFailure(`${text} is not an address like http://127.0.0.1:8080`)
  }
  const fromEnvironment = Option.getOrUndefined(
    yield* Effect.orElseSucceed(Config.option(Config.NonEmptyString("EDGEWISE_API_KEY")), () =>
      Option.none(),
    ),
  )
  const key =
    Option.getOrUndefined(given.key) ?? fromEnvironment ?? (yield* inDataDirectory(config.dataDir, base))
  if (key === undefined || key === "") {
    return yield* localFailure(
      "no API key: give --key or EDGEWISE_API_KEY, or run where the running node's data directory is",
    )
  }
  const trust = base.protocol === "https:" ? trustOptions(config) : {}
  return { base, key, trust } satisfies NodeAccess
})

/** For what any key may do: the development key, if no other is given. */
export const nodeAccess = (given: GivenNode) =>
  accessBy(given, (dataDir) => Effect.sync(() => developmentKey(dataDir)))

/** For what operators do: the operator token of a node that runs on the data directory, if no key is given. */
export const operatorAccess = (given: GivenNode) =>
  accessBy(given, (dataDir, base) =>
    Effect.map(operatorToken(dataDir, base), (token) => token ?? developmentKey(dataDir)),
  )

interface Sent {
  readonly method: "GET" | "POST" | "DELETE"
  /** Path and query. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  /** Pieces in order; a path stands for the file's content. `sizeBytes` is the size of all of them together. */
  readonly body?: {
    readonly pieces: ReadonlyArray<string | { readonly path: string }>
    readonly sizeBytes: number
  }
  /** Called with the bytes of the body sent so far. */
  readonly onSent?: (sentBytes: number) => void
}

/** The pieces' bytes, counted as they are read. */
async function* bytesOf({ body, onSent }: Sent): AsyncGenerator<Buffer> {
  let sentBytes = 0
  for (const piece of body?.pieces ?? []) {
    const chunks = typeof piece === "string" ? [Buffer.from(piece)] : createReadStream(piece.path)
    for await (const chunk of chunks as AsyncIterable<Buffer>) {
      sentBytes += chunk.length
      onSent?.(sentBytes)
      yield chunk
    }
  }
}

/** Writes the body as fast as the connection accepts it, until a reply arrives or everything is sent. */
const sendBody = (outgoing: ClientRequest, sent: Sent, onError: (cause: Error) => void): void => {
  if (sent.body === undefined) return void outgoing.end()
  const source = Readable.from(bytesOf(sent))
  source.once("error", onError)
  // A node that has refused reads no further, and its reply says why.
  outgoing.once("response", () => {
    source.unpipe(outgoing)
    source.destroy()
  })
  outgoing.once("close", () => source.destroy())
  source.pipe(outgoing)
}

const untrusted = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
])

const unreachable = (base: URL, cause: NodeJS.ErrnoException): NodeRefused => {
  const { code = "", message } = cause
  if (code === "ECONNREFUSED") {
    return localFailure(`no node answers at ${base.origin}; is \`edgewise serve\` running?`)
  }
  if (untrusted.has(code)) {
    return localFailure(
      `${base.origin}: ${message}; name its certificate with EDGEWISE_TLS_CERT or NODE_EXTRA_CA_CERTS`,
    )
  }
  // A TLS listener silently closes a connection that begins with plain HTTP.
  const hint =
    code === "ECONNRESET" && base.protocol === "http:" ? "; if it speaks TLS, use --url https://…" : ""
  return localFailure(`${base.origin}: ${message}${hint}`)
}

/** Sends a request and waits for the head of its reply. Interrupting it, or closing the scope, ends the connection. */
export const send = Effect.fnUntraced(function* ({ base, key, trust }: NodeAccess, sent: Sent) {
  const connect = base.protocol === "https:" ? httpsRequest : httpRequest
  const outgoing = yield* Effect.acquireRelease(
    Effect.sync(() =>
      connect(new URL(sent.target, base), {
        ...trust,
        method: sent.method,
        headers: {
          ...sent.headers,
          authorization: `Bearer ${key}`,
          ...(sent.body === undefined ? {} : { "content-length": String(sent.body.sizeBytes) }),
        },
      }),
    ),
    (outgoing) => Effect.sync(() => outgoing.destroy()),
  )
  return yield* Effect.callback<IncomingMessage, NodeRefused>((resume) => {
    outgoing.on("response", (incoming) => resume(Effect.succeed(incoming)))
    outgoing.on("error", (cause) => resume(Effect.fail(unreachable(base, cause))))
    sendBody(outgoing, sent, (cause) => resume(Effect.fail(localFailure(cause))))
  })
})

/** The rest of a reply, piece by piece. Fails with what `onChunk` throws. */
export const eachChunk = (
  incoming: IncomingMessage,
  onChunk: (chunk: Buffer) => void,
): Effect.Effect<void, NodeRefused> =>
  Effect.callback((resume) => {
    incoming.on("data", (chunk: Buffer) => {
      try {
        onChunk(chunk)
      } catch (cause) {
        resume(Effect.fail(localFailure(cause)))
        incoming.destroy()
      }
    })
    incoming.on("end", () => resume(Effect.void))
    incoming.on("close", () => {
      if (!incoming.complete) resume(Effect.fail(localFailure("the node closed the connection early")))
    })
  })

/** The data of each server-sent event of a reply, without the last one, `[DONE]`. */
export const eachEvent = (
  incoming: IncomingMessage,
  onData: (data: string) => void,
): Effect.Effect<void, NodeRefused> =>
  Effect.suspend(() => {
    const events = new EventStream((data) => {
      if (data !== "[DONE]") onData(data)
    })
    return eachChunk(incoming, (chunk) => events.read(chunk, performance.now()))
  })

export const textOf = (incoming: IncomingMessage): Effect.Effect<string, NodeRefused> =>
  Effect.suspend(() => {
    const chunks: Array<Buffer> = []
    return Effect.map(
      eachChunk(incoming, (chunk) => void chunks.push(chunk)),
      () => Buffer.concat(chunks).toString("utf8"),
    )
  })

/** What to do about a refusal, by its detail. */
const hints: Readonly<Record<string, string>> = {
  "Requires the superadmin scope": `leave out --key and EDGEWISE_API_KEY where the node's data directory can be read, ${otherwise}`,
  Forbidden:
    "a router answers there, which serves GET /v1/route only; give --url with the edge's address, which the start prints",
  "Invalid operator token": `another node answers there, or a proxy is in between: EDGEWISE_DATA_DIR and EDGEWISE_PORT name the node, ${otherwise}`,
}

/** How the caller gets a key with the scope that a 403 names, e.g. of another server's address or of `edgewise bench`. */
export const scopeHint = (detail: string): string | undefined => {
  const [, scope] = /Requires the ([\w-]+) scope/.exec(detail) ?? []
  return scope === undefined
    ? undefined
    : `edgewise keys create --org NAME --scope ${scope} makes a key with it`
}

const refusalOf = (status: number, text: string): NodeRefused => {
  let detail = text.slice(0, 300) || "the node refused the request"
  let lines: ReadonlyArray<string> = []
  try {
    const body = JSON.parse(text) as {
      readonly detail?: unknown
      readonly message?: unknown
      readonly mistakes?: unknown
    }
    detail = String(body.detail ?? body.message ?? detail)
    if (Array.isArray(body.mistakes)) lines = body.mistakes.map(String)
  } catch {
    // Not the node's own reply, e.g. that of a proxy in front of it.
  }
  const hint = hints[detail] ?? scopeHint(detail)
  if (hint !== undefined) detail += `; ${hint}`
  return new NodeRefused({ status, detail, ...(lines.length === 0 ? {} : { lines }) })
}

/** Succeeds if the reply has one of these statuses; otherwise fails with its refusal. */
export const expectStatus = (incoming: IncomingMessage, ...statuses: ReadonlyArray<number>) =>
  statuses.includes(incoming.statusCode ?? 0)
    ? Effect.succeed(incoming)
    : Effect.flatMap(textOf(incoming), (text) => Effect.fail(refusalOf(incoming.statusCode ?? 0, text)))

/** Fails at the first SIGINT or SIGTERM, so that the command can end its request properly. */
export const interrupted = Effect.callback<never, NodeRefused>((resume) => {
  const onSignal = () => resume(Effect.fail(localFailure("interrupted")))
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal)
  return Effect.sync(() => process.off("SIGINT", onSignal).off("SIGTERM", onSignal))
})
