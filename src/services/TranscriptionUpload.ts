// The multipart body of a transcription request: its one file goes to disk as it arrives, its fields are collected.
// Knows sizes and names of parts, not the meaning of fields.
import { randomUUID } from "node:crypto"
import { type FileHandle, mkdir, open } from "node:fs/promises"
import { join } from "node:path"
import { ByteSize, Context, Effect, type Scope, Stream } from "effect"
import { HttpIncomingMessage, type HttpServerRequest, Multipart } from "effect/http"
import { removeSpooled } from "#audio/SpoolFile.ts"
import { FileTooLarge, InvalidRequest } from "#domain/wire/Errors.ts"
import { keywordNames, mostKeywords } from "#domain/wire/Transcription.ts"
import { RequestBlocks } from "#http/BodyBlocks.ts"

/** Most bytes of an uploaded file (protocol 9.1). */
export const maxFileBytes = 100 * 1024 * 1024
/** Most bytes of the body beside the file: boundaries, part headers, fields. A generous guess. */
const overheadBytes = 1024 * 1024
/** Parts besides the phrases of `keywords[]`, each of which is a part of its own. */
const maxParts = 32
const maxKeywordParts = mostKeywords + maxParts
const isKeyword = (name: string): boolean => (keywordNames as ReadonlyArray<string>).includes(name)
const maxFieldBytes = 64 * 1024

/** Where uploads lie while they are needed; set by main. */
export const UploadDir = Context.Reference<string>("edgewise/api/UploadDir", {
  defaultValue: () => "uploads",
})

export interface Upload {
  /** Absolute path of the spooled file. */
  readonly path: string
  readonly sizeBytes: number
  readonly fields: ReadonlyMap<string, ReadonlyArray<string>>
  /** Keeps the file when the request's scope closes: its new owner removes it. */
  readonly keep: () => void
}

const tooLarge = Effect.fail(new FileTooLarge({ limitBytes: maxFileBytes }))
const invalid = (field: string, problem: string) => new InvalidRequest({ field, problem })

/**
 * A disk that cannot be written is not the caller's fault: a defect, answered 500. The error's code (ENOSPC, EACCES) goes to
 * the log, the path does not.
 */
const stored = <A>(write: () => Promise<A>): Effect.Effect<A> =>
  Effect.promise(() =>
    write().catch((cause: unknown) => {
      const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"
      throw new Error(`an upload could not be stored: ${code}`)
    }),
  )

/** `writev` may write fewer bytes than it is given. */
const writeAll = async (handle: FileHandle, pieces: ReadonlyArray<Uint8Array>): Promise<void> => {
  let rest = [...pieces]
  while (rest.length > 0) {
    let { bytesWritten } = await handle.writev(rest)
    rest = rest.flatMap((piece) => {
      const taken = Math.min(bytesWritten, piece.length)
      bytesWritten -= taken
      return taken === piece.length ? [] : [piece.subarray(taken)]
    })
  }
}

/** Writes a part's content, refusing it with the first byte over the limit. */
const spool = (file: Multipart.File, handle: FileHandle) =>
  Effect.gen(function* () {
    const blocks = yield* RequestBlocks
    let sizeBytes = 0
    yield* Stream.runForEachArray(file.content, (chunks) =>
      Effect.gen(function* () {
        for (const chunk of chunks) sizeBytes += chunk.length
        if (sizeBytes > maxFileBytes) return yield* tooLarge
        yield* stored(() => writeAll(handle, chunks))
        // Gives blocks back. The parser passes pieces on whole, which belong to this file now, or in part; then it has
        // no effect.
        for (const chunk of chunks) blocks.giveBack(chunk)
      }),
    )
    return sizeBytes
  })

const create = (path: string): Promise<FileHandle> => open(path, "wx", 0o600)

const openSpool = Effect.fnUntraced(function* (dir: string) {
  const path = join(dir, randomUUID())
  let kept = false
  const handle = yield* Effect.acquireRelease(
    stored(() =>
      create(path).catch(async (cause: NodeJS.ErrnoException) => {
        if (cause.code !== "ENOENT") throw cause
        await mkdir(dir, { recursive: true, mode: 0o700 })
        return await create(path)
      }),
    ),
    (handle) =>
      Effect.promise(async () => {
        await handle.close().catch(() => {})
        if (!kept) await removeSpooled(path)
      }),
  )
  return {
    path,
    handle,
    keep: () => {
      kept = true
    },
  }
})

/** The name of a client's part for an error text, shortened. */
const quoted = (name: string): string => (name === "" ? "body" : name.slice(0, 64))

const partsProblem = `has more than ${maxParts} parts besides ${mostKeywords} keywords`
const tooManyParts = Effect.suspend(() => Effect.fail(invalid("body", partsProblem)))

const toFailure = (error: Multipart.MultipartError | FileTooLarge | InvalidRequest) => {
  if (error._tag !== "MultipartError") return error
  switch (error.reason._tag) {
    case "FileTooLarge":
    case "BodyTooLarge":
      return new FileTooLarge({ limitBytes: maxFileBytes })
    case "FieldTooLarge":
      return invalid("body", `a field is larger than ${maxFieldBytes} bytes`)
    case "TooManyParts":
      return invalid("body", partsProblem)
    default:
      return invalid("body", "is not complete and correct multipart/form-data")
  }
}

/** Reads the whole body. The file is removed with the scope unless it was kept. */
export const readUpload = (
  request: HttpServerRequest.HttpServerRequest,
): Effect.Effect<Upload, FileTooLarge | InvalidRequest, Scope.Scope> =>
  Effect.gen(function* () {
    if (!/^multipart\/form-data\s*;/i.test(request.headers["content-type"] ?? "")) {
      return yield* invalid("body", "must be multipart/form-data with a part named file")
    }
    if (Number(request.headers["content-length"] ?? 0) > maxFileBytes + overheadBytes) return yield* tooLarge
    const dir = yield* UploadDir
    const fields = new Map<string, Array<string>>()
    let found: Omit<Upload, "fields"> | undefined
    let parts = 0
    yield* Stream.runForEach(
      request.multipartStream,
      (part): Effect.Effect<void, Multipart.MultipartError | FileTooLarge | InvalidRequest, Scope.Scope> =>
        Effect.gen(function* () {
          if (!isKeyword(part.key) && ++parts > maxParts) return yield* tooManyParts
          if (Multipart.isField(part)) {
            if (part.key === "file") {
              return yield* invalid("file", "must be sent as a file, with a filename")
            }
            const values = fields.get(part.key)
            if (values === undefined) fields.set(part.key, [part.value])
            else values.push(part.value)
            return
          }
          if (part.key !== "file") {
            const problem = "is a file that this request does not take; the audio is the part named file"
            return yield* invalid(quoted(part.key), problem)
          }
          if (found !== undefined) return yield* invalid("file", "must be given once")
          const { handle, keep, path } = yield* openSpool(dir)
          found = { path, keep, sizeBytes: 0 }
          const sizeBytes = yield* spool(part, handle)
          found = { path, keep, sizeBytes }
        }),
    ).pipe(
      Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxFileBytes + overheadBytes)),
      Effect.provideService(Multipart.MaxParts, maxKeywordParts),
      Effect.provideService(Multipart.MaxFieldSize, ByteSize.bytes(maxFieldBytes)),
      Effect.mapError(toFailure),
    )
    if (found === undefined) return yield* invalid("file", "is required")
    if (found.sizeBytes === 0) return yield* invalid("file", "is empty")
    return { ...found, fields }
  })
