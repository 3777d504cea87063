// What a model hub has in a repository: the commit of a revision, its files with sizes and sums, and small files and
// beginnings of large ones, read without a pull. Requests that fail are repeated a few times.
import { Effect, Schedule, Schema } from "effect"
import { type HubFile, hubScheme, parseHubFile, resolveUrl, sourceOf } from "#domain/models/HubFile.ts"
import type { ByteSource } from "#store/files/FileReader.ts"
import { type Ask, ask, type Hub, Refusal, silenceMs, Transient } from "../HubClient.ts"
import { HubRefused, HubSilent, PullCorrupt } from "../PullErrors.ts"

export interface ListedFile {
  readonly path: string
  readonly sizeBytes: number | undefined
  /** Lower-case hex, of files that the hub keeps in its large storage. */
  readonly sha256: string | undefined
}

export interface HubFolder {
  readonly repo: string
  /** The commit of the revision: later changes of a branch do not change it. */
  readonly commit: string
  /** The licence that the publisher names. */
  readonly licence: string | undefined
  readonly files: ReadonlyArray<ListedFile>
}

export type ListError = HubRefused | HubSilent | PullCorrupt

/** Far above real listings, which have some hundred files of 300 bytes. */
const maxListingBytes = 8 * 1024 * 1024
/** Far above a model's configuration. Tokenizers are larger and are not read. */
const maxSmallBytes = 4 * 1024 * 1024
/** Requests before a failure is reported, and the pause before the second; each further one doubles it. Guesses. */
const attempts = 4
const firstPauseMs = 500

/** The hub's record of a repository at a revision, as far as it is used. */
const Listing = Schema.fromJsonString(
  Schema.Struct({
    sha: Schema.String.check(Schema.isPattern(/^[0-9a-f]{7,64}$/)),
    cardData: Schema.optionalKey(
      Schema.NullOr(
        Schema.Struct({
          license: Schema.optionalKey(Schema.Unknown),
          license_name: Schema.optionalKey(Schema.Unknown),
        }),
      ),
    ),
    siblings: Schema.Array(
      Schema.Struct({
        rfilename: Schema.String,
        size: Schema.optionalKey(Schema.NullOr(Schema.Int)),
        lfs: Schema.optionalKey(
          Schema.NullOr(
            Schema.Struct({
              sha256: Schema.optionalKey(Schema.String),
              size: Schema.optionalKey(Schema.Int),
            }),
          ),
        ),
      }),
    ),
  }),
)

const decodeListing = Schema.decodeUnknownEffect(Listing)

/** Reads a reply up to its end, or up to `most` bytes. With a range, the bytes of that range only. */
const collected = async (request: Ask, most: number): Promise<Buffer> => {
  const { body, status } = await ask(request)
  // A host without range requests sends the file from its beginning.
  const skip = status === 206 ? 0 : (request.range?.from ?? 0)
  const chunks: Array<Buffer> = []
  let size = 0
  try {
    for await (const chunk of body) {
      chunks.push(chunk as Buffer)
      size += (chunk as Buffer).length
      if (size >= skip + most) break
    }
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    throw new Transient(new URL(request.url).host, code ?? message)
  } finally {
    body.destroy()
  }
  return Buffer.concat(chunks).subarray(skip, skip + most)
}

const errorOf = (source: string, cause: unknown): ListError | Transient => {
  if (cause instanceof Transient) return cause
  if (!(cause instanceof Refusal))
    return new PullCorrupt({ source, problem: cause instanceof Error ? cause.message : String(cause) })
  const { host, message, status, withToken } = cause
  return message === ""
    ? new HubRefused({ source, host, status, withToken })
    : new PullCorrupt({ source, problem: `${host} ${message}` })
}

/** Repeats a request that failed on the way; a refusal is final. */
const repeated = <A>(
  source: string,
  work: (signal: AbortSignal) => Promise<A>,
): Effect.Effect<A, ListError> =>
  Effect.tryPromise({ try: work, catch: (cause) => errorOf(source, cause) }).pipe(
    Effect.retry({
      while: (error) => error instanceof Transient,
      times: attempts - 1,
      schedule: Schedule.exponential(firstPauseMs),
    }),
    Effect.mapError((error) =>
      error instanceof Transient
        ? new HubSilent({ source, host: error.host, problem: error.message, attempts })
        : error,
    ),
  )

/** What the hub has at a revision: a branch, a tag or a commit. */
export const listFolder = (hub: Hub, repo: string, revision: string): Effect.Effect<HubFolder, ListError> =>
  Effect.gen(function* () {
    const source = `${hubScheme}${repo}@${revision}`
    const url = `${hub.endpoint}/api/models/${repo}/revision/${revision}?blobs=true`
    const bytes = yield* repeated(source, (signal) =>
      collected({ hub, url, from: undefined, signal, silenceMs }, maxListingBytes),
    )
    const { cardData, sha, siblings } = yield* Effect.mapError(
      decodeListing(bytes.toString("utf8")),
      () => new PullCorrupt({ source, problem: `${new URL(url).host} does not send a list of files` }),
    )
    const name = typeof cardData?.license_name === "string" ? cardData.license_name : cardData?.license
    return {
      repo,
      commit: sha,
      licence: typeof name === "string" && /^[\w .+-]{1,60}$/.test(name) ? name : undefined,
      files: siblings.flatMap(({ lfs, rfilename: path, size }) => {
        const sum = lfs?.sha256
        const sizeBytes = size ?? lfs?.size ?? undefined
        const sha256 = sum !== undefined && /^[0-9a-f]{64}$/.test(sum) ? sum : undefined
        // A name that no catalog entry may have, e.g. one that leads out of the folder, is not there.
        const isName = parseHubFile(sourceOf({ repo, revision: sha, path })) !== undefined
        return isName ? [{ path, sizeBytes, sha256 }] : []
      }),
    }
  })

/** The bytes of a small file, e.g. a configuration. */
export const readSmall = (hub: Hub, file: HubFile): Effect.Effect<Buffer, ListError> =>
  repeated(sourceOf(file), (signal) =>
    collected(
      { hub, url: resolveUrl(hub.endpoint, file), from: undefined, signal, silenceMs },
      maxSmallBytes,
    ),
  )

/** Longest wait for a first answer. A guess: a hub that is slower is of no use for gigabytes. */
const probeMs = 15_000

/** Fails at once, without further attempts, if the hub cannot be reached; any answer of it is enough. */
export const probeHub = (hub: Hub): Effect.Effect<void, HubSilent> => {
  const { host } = new URL(hub.endpoint)
  const silent = (problem: string) => new HubSilent({ source: hub.endpoint, host, problem, attempts: 1 })
  return Effect.tryPromise({
    try: async (signal) => {
      try {
        const { body } = await ask({
          hub,
          url: `${hub.endpoint}/`,
          from: undefined,
          signal,
          silenceMs: probeMs,
        })
        body.destroy()
      } catch (cause) {
        // It answered, if only with a refusal.
        if (cause instanceof Refusal || (cause instanceof Transient && cause.message.startsWith("answered")))
          return
        throw cause
      }
    },
    catch: (cause) => silent(cause instanceof Error ? cause.message : String(cause)),
  })
}

/** Bytes of one request for a part of a file. A guess: a header of ten megabytes takes ten requests. */
const pieceBytes = 1024 * 1024

/** Far above real headers, of which a vocabulary takes some ten megabytes. */
const maxHeaderBytes = 128 * 1024 * 1024

/** A file on the hub, read in pieces. Its `read` fails with an error of `ListError`. */
export const remoteFile = (hub: Hub, file: HubFile, sizeBytes: number): ByteSource => ({
  sizeBytes,
  pieceBytes,
  read: (at, count) => {
    if (at + count > maxHeaderBytes) {
      const problem = `its header is larger than ${maxHeaderBytes} bytes: it is damaged, choose another file`
      return Promise.reject(new PullCorrupt({ source: sourceOf(file), problem }))
    }
    const url = resolveUrl(hub.endpoint, file)
    const range = { from: at, to: at + count - 1 }
    return Effect.runPromise(
      repeated(sourceOf(file), (signal) =>
        collected({ hub, url, from: undefined, range, signal, silenceMs }, count),
      ),
    )
  },
})
