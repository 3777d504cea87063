// Few operations on the objects of a bucket, over S3's HTTP interface: put, get, size, remove, list. The package `aws4fetch` signs the
// requests; it is loaded when a bucket is opened. A file is sent and received in small pieces, and a service that does not go on for
// some seconds ends in an error.
//
// The text of an error holds S3's error code and never its message: that repeats the key and what was signed.
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { open } from "node:fs/promises"
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http"
import { Agent as HttpsAgent, request as httpsRequest } from "node:https"
import { pipeline } from "node:stream"
import { setTimeout as sleep } from "node:timers/promises"
import { removeSpooled } from "#audio/SpoolFile.ts"
import type { S3Access, S3Address } from "#store/files/S3Address.ts"
import type { UploadFacts } from "#store/ledger/JobRows.ts"

/** Milliseconds. */
export interface S3Times {
  /** Without a byte in either direction. */
  readonly idle: number
  /** For a file of at most 100 MB, with all attempts: 100 MB at 2.7 Mbit/s. */
  readonly file: number
  /** For each other request, with all attempts. */
  readonly call: number
  /** Before the second attempt; before the third one twice that. */
  readonly retry: number
}

/** Guesses. */
export const s3Times: S3Times = { idle: 15_000, file: 300_000, call: 20_000, retry: 300 }

/** A request failed. */
export class S3Problem extends Error {
  /** S3's error code, such as NoSuchKey. Empty if there was none. */
  readonly code: string
  /** Another attempt may succeed. */
  readonly isPassing: boolean

  constructor(problem: string, options: { readonly code?: string; readonly isPassing?: boolean } = {}) {
    super(problem)
    this.code = options.code ?? ""
    this.isPassing = options.isPassing ?? false
  }
}

interface S3Object {
  readonly key: string
  /** By the service's clock. */
  readonly modifiedMs: number
}

interface S3Page {
  readonly objects: ReadonlyArray<S3Object>
  /** The service's time of this answer. */
  readonly nowMs: number
  /** Of the next page; undefined on the last one. */
  readonly next: string | undefined
}

export interface S3Bucket {
  readonly put: (key: string, text: string, signal: AbortSignal) => Promise<void>
  /** Stores the file, which must have this size and digest: the service compares them. */
  readonly putFile: (key: string, path: string, facts: UploadFacts, signal: AbortSignal) => Promise<void>
  /** The start of a small object; undefined if there is none. */
  readonly get: (key: string, signal: AbortSignal) => Promise<string | undefined>
  /** Copies an object of at most `mostBytes` to a new file, and returns what was received. Leaves nothing behind if it fails. */
  readonly getFile: (
    key: string,
    path: string,
    mostBytes: number,
    signal: AbortSignal,
  ) => Promise<UploadFacts>
  /** Bytes; undefined if there is no such object. */
  readonly size: (key: string, signal: AbortSignal) => Promise<number | undefined>
  /** Succeeds if there is no such object. */
  readonly remove: (key: string, signal: AbortSignal) => Promise<void>
  readonly list: (prefix: string, after: string | undefined, signal: AbortSignal) => Promise<S3Page>
}

/** Read, sent and hashed at a time: below a millisecond of the event loop. */
const pieceBytes = 256 * 1024

/** Of an error or of a small object. */
const mostTextBytes = 16 * 1024

/** A page of a list has 1,000 keys of up to 1 KB. */
const mostListBytes = 4 * 1024 * 1024

/** Transfers at a time; further ones wait. A guess. */
const mostSockets = 16

const attempts = 3

/** A file of this node cannot be read or written: no fault of the service. */
const fileErrors = ["ENOENT", "EACCES", "EISDIR", "EIO", "ENOSPC", "EDQUOT", "EROFS", "EEXIST", "EMFILE"]

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex")

/** What a file holds, read in pieces. */
export const factsOf = async (path: string, signal: AbortSignal): Promise<UploadFacts> => {
  const digest = createHash("sha256")
  const piece = Buffer.allocUnsafe(pieceBytes)
  const file = await open(path, "r")
  try {
    let sizeBytes = 0
    for (;;) {
      signal.throwIfAborted()
      const { bytesRead } = await file.read(piece, 0, piece.length)
      if (bytesRead === 0) return { sizeBytes, sha256: digest.digest("hex") }
      digest.update(piece.subarray(0, bytesRead))
      sizeBytes += bytesRead
    }
  } finally {
    await file.close()
  }
}

const textOf = async (response: IncomingMessage, mostBytes: number): Promise<string> => {
  const pieces: Array<Buffer> = []
  let bytes = 0
  for await (const piece of response as AsyncIterable<Buffer>) {
    pieces.push(piece)
    bytes += piece.length
    // Leaving the loop closes the connection.
    if (bytes > mostBytes) break
  }
  return Buffer.concat(pieces).toString("utf8", 0, mostBytes)
}

const refusedCredentials = ["SignatureDoesNotMatch", "InvalidAccessKeyId", "InvalidToken", "ExpiredToken"]

/** Why a request was refused. The code of an answer without a body, to HEAD, is unknown. */
const refusal = async (method: string, response: IncomingMessage): Promise<S3Problem> => {
  const status = response.statusCode ?? 0
  const text = await textOf(response, mostTextBytes).catch(() => "")
  const code = /<Code>\s*([A-Za-z0-9.]{1,64})\s*<\/Code>/.exec(text)?.[1] ?? ""
  const region = response.headers["x-amz-bucket-region"]
  const says = (problem: string) => new S3Problem(problem, { code })
  if (code === "NoSuchBucket") return says("there is no such bucket")
  if (refusedCredentials.includes(code))
    return says(`the credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are refused (${code})`)
  if (status === 403) return says(`${method} is not allowed (${code || "403"})`)
  if (status < 400 && typeof region === "string" && /^[a-z0-9-]{1,32}$/.test(region))
    return says(`the bucket is in the region ${region}; set AWS_REGION`)
  return new S3Problem(`the service answers ${[status, code].join(" ").trim()}`, {
    code,
    isPassing: status >= 500 || status === 429,
  })
}

/** Text of an XML element; S3 names no element in another case or with attributes. */
const element = (xml: string, name: string): string | undefined =>
  new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]

/** Of a continuation token. Keys of this program need none. */
const unescaped = (text: string): string =>
  text
    .replaceAll("&quot;", '"')
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")

interface Call {
  readonly method: "GET" | "HEAD" | "PUT" | "DELETE"
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** A text, or a file with its size. */
  readonly body?: string | { readonly path: string; readonly sizeBytes: number }
  readonly sha256?: string
}

/** Loads the package that signs. Nothing is sent. */
export const openBucket = async (
  { bucket, encryption }: S3Address,
  access: S3Access,
  times: S3Times = s3Times,
): Promise<S3Bucket> => {
  const { AwsV4Signer } = await import("aws4fetch")
  const { accessKeyId, endpoint, region, secretAccessKey, sessionToken } = access
  // The name of a bucket with a dot fits no certificate of AWS.
  const inHost = endpoint === undefined && !bucket.includes(".")
  const base = inHost
    ? `https://${bucket}.s3.${region}.amazonaws.com`
    : `${endpoint ?? `https://s3.${region}.amazonaws.com`}/${bucket}`
  const isPlain = base.startsWith("http:")
  const agent = new (isPlain ? HttpAgent : HttpsAgent)({ keepAlive: true, maxSockets: mostSockets })
  /** Derived keys of the day, which the signer keeps here. */
  let derived = { day: "", keys: new Map<string, ArrayBuffer>() }
  /** What the service's clock is ahead of this node's. A signature holds for some minutes only. */
  let aheadMs = 0

  const signed = async (call: Call) => {
    const url = new URL(`${base}/${call.key ?? ""}`)
    for (const [name, value] of Object.entries(call.query ?? {})) url.searchParams.set(name, value)
    const datetime = new Date(Date.now() + aheadMs).toISOString().replace(/[:-]|\.\d{3}/g, "")
    const day = datetime.slice(0, 8)
    if (derived.day !== day) derived = { day, keys: new Map() }
    const { headers } = await new AwsV4Signer({
      method: call.method,
      url: url.href,
      headers: { ...call.headers, "x-amz-content-sha256": call.sha256 ?? digestOf("") },
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      service: "s3",
      region,
      datetime,
      cache: derived.keys,
    }).sign()
    return { url, headers: Object.fromEntries(headers as unknown as Iterable<[string, string]>) }
  }

  /** One request: resolves with the head of the answer. */
  const ask = async (call: Call, signal: AbortSignal): Promise<IncomingMessage> => {
    const { headers, url } = await signed(call)
    const { body } = call
    const bytes = body === undefined ? 0 : typeof body === "string" ? Buffer.byteLength(body) : body.sizeBytes
    return new Promise((resolve, reject) => {
      const request = (isPlain ? httpRequest : httpsRequest)(
        url,
        {
          method: call.method,
          headers: { ...headers, ...(call.method === "PUT" ? { "content-length": bytes } : {}) },
          agent,
          signal,
        },
        resolve,
      )
      request.on("error", reject)
      request.setTimeout(times.idle, () => request.destroy(new S3Problem("the service does not answer")))
      if (body === undefined || bytes === 0) request.end()
      else if (typeof body === "string") request.end(body)
      else {
        const file = createReadStream(body.path, { end: bytes - 1, highWaterMark: pieceBytes })
        // Fails if the service answers before it has read all; then the answer counts.
        pipeline(file, request, (cause) => void (cause && request.destroy(cause)))
      }
    })
  }

  /** Runs `work` with the successful answer to the request, and both again after a failure that may pass. */
  const call = async <A>(
    what: Call,
    outer: AbortSignal,
    work: (response: IncomingMessage) => Promise<A>,
    deadlineMs = times.call,
  ): Promise<A> => {
    const late = AbortSignal.timeout(deadlineMs)
    const signal = AbortSignal.any([outer, late])
    const once = async (): Promise<A> => {
      let response: IncomingMessage | undefined
      try {
        response = await ask(what, signal)
        // A request that was answered early still sends its body; what breaks then is in the answer.
        response.on("error", () => {})
        if (response.statusCode === 200 || response.statusCode === 204) return await work(response)
        const { date } = response.headers
        const problem = await refusal(what.method, response)
        if (problem.code !== "RequestTimeTooSkewed" || date === undefined) throw problem
        aheadMs = Date.parse(date) - Date.now() || 0
        throw new S3Problem("the clock of this node differs from the service's (RequestTimeTooSkewed)", {
          code: problem.code,
          isPassing: true,
        })
      } catch (cause) {
        response?.destroy()
        outer.throwIfAborted()
        if (late.aborted) throw new S3Problem("the service does not answer in time")
        if (cause instanceof S3Problem) throw cause
        const { code = "" } = cause as NodeJS.ErrnoException
        if (fileErrors.includes(code)) throw cause
        throw new S3Problem(`the connection failed (${code || (cause as Error).name})`, { isPassing: true })
      }
    }
    for (let attempt = 1; ; attempt++) {
      try {
        return await once()
      } catch (cause) {
        if (!(cause instanceof S3Problem && cause.isPassing) || attempt === attempts) throw cause
        await sleep(times.retry * attempt, undefined, { signal: outer })
      }
    }
  }

  const drained = async (response: IncomingMessage): Promise<void> =>
    void (await textOf(response, mostTextBytes))
  const encrypted: Readonly<Record<string, string>> =
    encryption === undefined ? {} : { "x-amz-server-side-encryption": encryption }
  const orNone = (cause: unknown): undefined => {
    if (cause instanceof S3Problem && cause.code === "NoSuchKey") return undefined
    throw cause
  }

  return {
    put: (key, text, signal) =>
      call({ method: "PUT", key, body: text, sha256: digestOf(text), headers: encrypted }, signal, drained),
    putFile: (key, path, { sha256, sizeBytes }, signal) =>
      call(
        { method: "PUT", key, body: { path, sizeBytes }, sha256, headers: encrypted },
        signal,
        drained,
        times.file,
      ),
    get: (key, signal) =>
      call({ method: "GET", key }, signal, (response) => textOf(response, mostTextBytes)).catch(orNone),
    getFile: (key, path, mostBytes, signal) =>
      call(
        { method: "GET", key },
        signal,
        async (response) => {
          const digest = createHash("sha256")
          const file = await open(path, "wx", 0o600)
          try {
            let sizeBytes = 0
            for await (const piece of response as AsyncIterable<Buffer>) {
              digest.update(piece)
              sizeBytes += piece.length
              // One that is larger than it was is not the one that was stored. Leaving the loop closes the connection.
              if (sizeBytes > mostBytes) break
              await file.writeFile(piece)
            }
            await file.close()
            return { sizeBytes, sha256: digest.digest("hex") }
          } catch (cause) {
            await file.close()
            await removeSpooled(path).catch(() => {})
            throw cause
          }
        },
        times.file,
      ),
    size: (key, signal) =>
      call({ method: "HEAD", key }, signal, async (response) => {
        response.resume()
        const length = response.headers["content-length"]
        return length === undefined ? undefined : Number(length)
      }),
    remove: (key, signal) => call({ method: "DELETE", key }, signal, drained).catch(orNone),
    list: (prefix, after, signal) =>
      call(
        {
          method: "GET",
          query: {
            "list-type": "2",
            prefix,
            ...(after === undefined ? {} : { "continuation-token": after }),
          },
        },
        signal,
        async (response) => {
          const xml = await textOf(response, mostListBytes)
          const nowMs = Date.parse(response.headers.date ?? "")
          if (Number.isNaN(nowMs) || !xml.includes("<ListBucketResult"))
            throw new S3Problem("the service's list of objects cannot be read")
          const objects = xml
            .split("<Contents>")
            .slice(1)
            .flatMap((one) => {
              const key = element(one, "Key")
              const modifiedMs = Date.parse(element(one, "LastModified") ?? "")
              return key === undefined || Number.isNaN(modifiedMs) ? [] : [{ key, modifiedMs }]
            })
          const next = element(xml, "NextContinuationToken")
          return { objects, nowMs, next: next === undefined ? undefined : unescaped(next) }
        },
      ),
  }
}
