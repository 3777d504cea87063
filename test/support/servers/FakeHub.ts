// A local model hub with the resolve protocol and the listing of repositories: the hub itself, which sends sizes, checksums and
// redirects, and its storage on another port, which sends the bytes. It can send false sizes, refuse requests, cut connections and be
// slow.
import { createHash } from "node:crypto"
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http"
import { startLoopbackServer } from "./LoopbackServer.ts"

export interface Seen {
  readonly at: "hub" | "storage"
  readonly url: string
  readonly headers: IncomingHttpHeaders
}

interface HubBehaviour {
  /** Only this token is accepted. */
  token?: string
  /** Answer of the hub instead of a redirect. */
  hubStatus?: number
  /** Answer of the hub to a request for a listing. */
  listStatus?: number
  /** Sent as the listing. */
  listing?: string
  /** The licence in the listing; Apache-2.0 if it is absent. */
  licence?: string
  /** Sizes in the listing, by the last part of a path. */
  listedSizes?: Readonly<Record<string, number>>
  /** Answers of the storage to its first requests, one each, before it serves files. */
  storageStatuses?: Array<number>
  /** Bytes after which the storage cuts the connections of its first requests, one entry each. */
  cutAfter?: Array<number>
  /** Whether requests for a part of a file that has an end are left out of `cutAfter`. */
  cutWhole?: boolean
  /** Bytes after which the storage sends no more of a file and leaves the connection open; requests for a part that has an end are not held. */
  holdAfter?: number
  /** Sent by the storage instead of the file's bytes, with the same declared checksum. */
  content?: Buffer
  linkedSize?: number
  linkedEtag?: string | null
  /** The ETag of the storage; null sends none. */
  etag?: string | null
  /** The file's length in the storage's headers. */
  declared?: number
  /** Whether the storage sends no length. */
  chunked?: boolean
  /** Whether the storage answers ranges with the whole file. */
  ignoreRange?: boolean
  /** Whether the hub serves the bytes itself, as hubs do with small files. */
  direct?: boolean
  /** Whether the hub redirects to itself in an endless loop. */
  loop?: boolean
  /** Other target of the redirect. */
  location?: string
  /** Milliseconds between two pieces of `pieceBytes`. */
  pieceMs?: number
  pieceBytes?: number
}

export interface FakeHub {
  readonly endpoint: string
  readonly storage: string
  readonly behaviour: HubBehaviour
  readonly seen: Array<Seen>
  /** Files that are being sent. */
  readonly sending: () => number
  /** Clears its records and its settings. */
  readonly reset: () => void
  readonly stop: () => Promise<void>
}

export const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex")

/** The record of a repository at a commit or branch, in the hub's form. Files of a kilobyte or less have no large storage. */
const listingOf = (
  files: Readonly<Record<string, Buffer>>,
  repo: string,
  revision: string,
  sizes: Readonly<Record<string, number>> = {},
  license = "apache-2.0",
): object | undefined => {
  const keys = Object.keys(files).filter((key) => key.startsWith(`${repo}/`))
  const commits = new Set(keys.map((key) => key.split("/")[2]))
  const commit = commits.has(revision) ? revision : [...commits][0]
  if (commit === undefined || (revision !== "main" && revision !== commit)) return undefined
  const listed = keys.filter((key) => key.startsWith(`${repo}/${commit}/`))
  return {
    id: repo,
    sha: commit,
    cardData: { license },
    siblings: listed.map((key) => {
      const bytes = files[key]!
      const rfilename = key.split("/").slice(3).join("/")
      const size = sizes[rfilename.split("/").at(-1)!] ?? bytes.length
      const lfs = { sha256: sha256(bytes), size, pointerSize: 130 }
      return { rfilename, size, blobId: sha256(bytes).slice(0, 40), ...(bytes.length > 1024 ? { lfs } : {}) }
    }),
  }
}

/** `files`: `owner/repo/revision/path` → content. A repository has one commit, which is also its branch `main`. */
export const startHub = async (files: Readonly<Record<string, Buffer>>): Promise<FakeHub> => {
  const behaviour: HubBehaviour = {}
  const seen: Array<Seen> = []

  let sending = 0
  const send = async (
    response: ServerResponse,
    bytes: Buffer,
    cutAfter: number | undefined,
    holdAfter: number | undefined,
  ) => {
    sending++
    response.once("close", () => sending--)
    const pieceBytes = behaviour.pieceBytes ?? 64 * 1024
    const upTo = Math.min(bytes.length, cutAfter ?? bytes.length)
    for (let at = 0; at < upTo; at += pieceBytes) {
      if (response.destroyed || (holdAfter !== undefined && at >= holdAfter)) return
      await new Promise((resolve) =>
        response.write(bytes.subarray(at, Math.min(upTo, at + pieceBytes)), resolve),
      )
      if (behaviour.pieceMs !== undefined)
        await new Promise((resolve) => setTimeout(resolve, behaviour.pieceMs))
    }
    if (cutAfter === undefined) response.end()
    else response.destroy()
  }

  const serve = (request: IncomingMessage, response: ServerResponse, key: string) => {
    const status = behaviour.storageStatuses?.shift()
    if (status !== undefined) {
      response.writeHead(status, { "retry-after": "0" }).end()
      return
    }
    const file = files[key]
    if (file === undefined) {
      response.writeHead(404).end()
      return
    }
    const bytes = behaviour.content ?? file
    const etag = behaviour.etag === undefined ? `"${sha256(file).slice(0, 16)}"` : behaviour.etag
    const headers: Record<string, string | number> = etag === null ? {} : { etag }
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "")
    const unchanged = request.headers["if-range"] === undefined || request.headers["if-range"] === etag
    const isOpen = range === null || range[2] === ""
    const holdAfter = isOpen ? behaviour.holdAfter : undefined
    const cutAfter = isOpen || behaviour.cutWhole !== true ? behaviour.cutAfter?.shift() : undefined
    if (range !== null && unchanged && behaviour.ignoreRange !== true) {
      const from = Number(range[1])
      const to = Math.min(range[2] === "" ? bytes.length : Number(range[2]) + 1, bytes.length)
      headers["content-range"] = `bytes ${from}-${to - 1}/${bytes.length}`
      headers["content-length"] = to - from
      response.writeHead(206, headers)
      void send(response, bytes.subarray(from, to), cutAfter, holdAfter)
      return
    }
    if (behaviour.chunked !== true) headers["content-length"] = behaviour.declared ?? bytes.length
    response.writeHead(200, headers)
    void send(response, bytes, cutAfter, holdAfter)
  }

  const storage = await startLoopbackServer((request, response) => {
    seen.push({ at: "storage", url: request.url ?? "", headers: request.headers })
    serve(request, response, new URL(request.url ?? "", "http://s").pathname.slice(1))
  })

  const hub = await startLoopbackServer((request, response) => {
    seen.push({ at: "hub", url: request.url ?? "", headers: request.headers })
    const key = (request.url ?? "").slice(1).replace("/resolve/", "/")
    if (behaviour.token !== undefined && request.headers.authorization !== `Bearer ${behaviour.token}`) {
      response.writeHead(401).end()
      return
    }
    const list = /^api\/models\/([^/]+\/[^/]+)\/revision\/([^/?]+)\?blobs=true$/.exec(key)
    if (list !== null) {
      const record = listingOf(files, list[1]!, list[2]!, behaviour.listedSizes, behaviour.licence)
      const status = behaviour.listStatus ?? (record === undefined ? 404 : 200)
      response.writeHead(status, { "content-type": "application/json", "retry-after": "0" })
      response.end(behaviour.listing ?? JSON.stringify(record ?? { error: "Repository not found" }))
      return
    }
    const file = files[key]
    if (behaviour.hubStatus !== undefined || file === undefined) {
      response.writeHead(behaviour.hubStatus ?? 404).end()
      return
    }
    if (behaviour.direct === true) return serve(request, response, key)
    const linkedEtag = behaviour.linkedEtag === undefined ? sha256(file) : behaviour.linkedEtag
    const location = behaviour.loop === true ? (request.url ?? "") : `${storage.url}/${key}?signature=secret`
    response
      .writeHead(302, {
        location: behaviour.location ?? location,
        "x-linked-size": behaviour.linkedSize ?? file.length,
        ...(linkedEtag === null ? {} : { "x-linked-etag": `"${linkedEtag}"` }),
      })
      .end()
  })

  return {
    endpoint: hub.url,
    storage: storage.url,
    behaviour,
    seen,
    sending: () => sending,
    reset: () => {
      seen.length = 0
      for (const key of Object.keys(behaviour)) delete behaviour[key as keyof HubBehaviour]
    },
    stop: async () => {
      await Promise.all([hub.stop(), storage.stop()])
    },
  }
}
