// A small S3 service on a port of this machine: a bucket in memory, and the faults that a real one may have. It computes the signature of
// each request (Signature Version 4) from what it received, with nothing of the client's, and refuses what AWS refuses: a wrong key or
// secret, a changed header, path, query or body, and a time that is 15 minutes off.
import { createHash, createHmac, timingSafeEqual } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { S3Access } from "#store/files/S3Address.ts"
import { startLoopbackServer } from "./LoopbackServer.ts"

interface StoredObject {
  readonly bytes: Buffer
  readonly modifiedMs: number
  readonly encryption: string | undefined
}

/** A fault of the next requests with this method, until it is taken away. */
interface S3Fault {
  readonly method: string
  /** Only of keys with this in them. */
  readonly key?: string
  /** How many requests have it. Absent: all. */
  times?: number
  /** `refuse`: an error status and code. `cut`: half of the answer's or the request's bytes, as if they were all. `break`: the connection
   * ends after half. `hang`: no answer. */
  readonly does: { readonly refuse: readonly [number, string] } | "cut" | "break" | "hang"
}

export interface S3Server {
  /** How a client reaches it and who it is. */
  readonly access: S3Access
  readonly bucket: string
  readonly objects: Map<string, StoredObject>
  /** Method and path of each request, with its status. */
  readonly requests: Array<{ readonly method: string; readonly path: string; readonly status: number }>
  readonly faults: Array<S3Fault>
  /** What its clock is ahead of this machine's, milliseconds. */
  aheadMs: number
  /** Keys on a page of a list. */
  pageSize: number
  readonly stop: () => Promise<void>
}

const hex = (bytes: Buffer | string) => createHash("sha256").update(bytes).digest("hex")
const hmac = (key: Buffer | string, text: string) => createHmac("sha256", key).update(text).digest()
const encoded = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const pieces: Array<Buffer> = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

/** The error code that the request deserves; undefined if its signature is right. */
const signatureProblem = (
  request: IncomingMessage,
  body: Buffer,
  { accessKeyId, region, secretAccessKey, sessionToken }: S3Access,
  nowMs: number,
): string | undefined => {
  const header = (name: string) => String(request.headers[name] ?? "")
  const parts =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/.exec(
      header("authorization"),
    )
  if (parts === null) return "AccessDenied"
  const [, id, day = "", inRegion, names = "", signature = ""] = parts
  if (id !== accessKeyId) return "InvalidAccessKeyId"
  if (inRegion !== region) return "AuthorizationHeaderMalformed"
  if (header("x-amz-security-token") !== (sessionToken ?? "")) return "InvalidToken"
  const date = header("x-amz-date")
  const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? []
  const atMs = Date.parse(`${y}-${mo}-${d}T${h}:${mi}:${s}Z`)
  if (!date.startsWith(day) || !(Math.abs(atMs - nowMs) <= 15 * 60_000)) return "RequestTimeTooSkewed"
  const signed = names.split(";")
  // Every header of S3's own must be signed, and the host.
  const own = Object.keys(request.headers).filter((name) => name.startsWith("x-amz-") || name === "host")
  if (own.some((name) => !signed.includes(name))) return "AccessDenied"
  const url = new URL(request.url ?? "/", "http://s3")
  const canonical = [
    request.method ?? "",
    decodeURIComponent(url.pathname).split("/").map(encoded).join("/"),
    [...url.searchParams]
      .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
      .toSorted()
      .join("&"),
    ...signed.map((name) => `${name}:${header(name).trim().replace(/ +/g, " ")}`),
    "",
    names,
    header("x-amz-content-sha256"),
  ].join("\n")
  const toSign = ["AWS4-HMAC-SHA256", date, `${day}/${region}/s3/aws4_request`, hex(canonical)].join("\n")
  const key = hmac(hmac(hmac(hmac(`AWS4${secretAccessKey}`, day), region), "s3"), "aws4_request")
  if (!timingSafeEqual(hmac(key, toSign), Buffer.from(signature, "hex"))) return "SignatureDoesNotMatch"
  const declared = header("x-amz-content-sha256")
  return declared === hex(body) ? undefined : "XAmzContentSHA256Mismatch"
}

const statusOf: Readonly<Record<string, number>> = {
  XAmzContentSHA256Mismatch: 400,
  AuthorizationHeaderMalformed: 400,
}

export const startS3 = async (
  options: { readonly bucket?: string; readonly sessionToken?: string } = {},
): Promise<S3Server> => {
  const { bucket = "edgewise-test", sessionToken } = options
  const objects = new Map<string, StoredObject>()
  const requests: S3Server["requests"] = []
  const faults: Array<S3Fault> = []

  const nowMs = () => Date.now() + made.aheadMs
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? "/", "http://s3")
    const method = request.method ?? ""
    const end = (status: number, bytes: Buffer | string = "", headers: Record<string, string> = {}) => {
      requests.push({ method, path: url.pathname, status })
      const all = Buffer.from(bytes as string)
      response.writeHead(status, {
        date: new Date(nowMs()).toUTCString(),
        ...(status === 204 ? {} : { "content-length": String(all.length) }),
        ...headers,
      })
      response.end(method === "HEAD" ? undefined : all)
    }
    // As AWS does: the message repeats the key and what was signed.
    const refuse = (status: number, code: string) =>
      end(
        status,
        `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>no</Message><AWSAccessKeyId>${made.access.accessKeyId}</AWSAccessKeyId><StringToSign>${String(request.headers.authorization)}</StringToSign></Error>`,
        { "content-type": "application/xml" },
      )
    const key = decodeURIComponent(url.pathname).slice(bucket.length + 2)
    const fault = faults.find(
      (one) => one.method === method && (one.times ?? 1) > 0 && key.includes(one.key ?? ""),
    )
    if (fault?.times !== undefined) fault.times -= 1
    const does = fault?.does
    if (does === "hang") return void request.resume()
    if (does === "break" && method === "PUT") return void request.once("data", () => request.destroy())
    const body = await bodyOf(request)
    const problem = signatureProblem(request, body, made.access, nowMs())
    if (problem !== undefined) return refuse(statusOf[problem] ?? 403, problem)
    if (typeof does === "object") return refuse(...does.refuse)
    if (!`${url.pathname}/`.startsWith(`/${bucket}/`)) return refuse(404, "NoSuchBucket")
    const stored = objects.get(key)
    if (method === "PUT") {
      const encryption = request.headers["x-amz-server-side-encryption"]
      const bytes = does === "cut" ? body.subarray(0, body.length >> 1) : body
      objects.set(key, { bytes, modifiedMs: nowMs(), encryption: encryption as string | undefined })
      return end(200)
    }
    if (method === "DELETE") {
      objects.delete(key)
      return end(204)
    }
    if (url.searchParams.get("list-type") === "2") {
      const prefix = url.searchParams.get("prefix") ?? ""
      const from = url.searchParams.get("continuation-token")?.slice("after <&".length) ?? ""
      const keys = [...objects.keys()].filter((one) => one.startsWith(prefix) && one > from).toSorted()
      const page = keys.slice(0, made.pageSize)
      const next =
        keys.length > page.length
          ? `<NextContinuationToken>after &lt;&amp;${page.at(-1)}</NextContinuationToken>`
          : ""
      const contents = page.map((one) => {
        const at = new Date(objects.get(one)!.modifiedMs).toISOString()
        return `<Contents><Key>${one}</Key><LastModified>${at}</LastModified><Size>1</Size></Contents>`
      })
      const xml = `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${contents.join("")}${next}</ListBucketResult>`
      return end(200, xml)
    }
    if (stored === undefined) return refuse(404, "NoSuchKey")
    const half = stored.bytes.subarray(0, stored.bytes.length >> 1)
    if (does === "break") {
      response.writeHead(200, { "content-length": stored.bytes.length })
      response.write(half, () => response.destroy())
      return
    }
    return end(200, does === "cut" ? half : stored.bytes)
  }

  const { stop, url: endpoint } = await startLoopbackServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  const made: S3Server = {
    access: {
      endpoint,
      region: "eu-test-1",
      accessKeyId: "AKIDTESTKEY",
      secretAccessKey: "secret/of+the=test",
      sessionToken,
    },
    bucket,
    objects,
    requests,
    faults,
    aheadMs: 0,
    pageSize: 1_000,
    stop,
  }
  return made
}
