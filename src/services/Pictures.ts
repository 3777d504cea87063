// The pictures of a chat from where the request has them to files of pixels that an engine reads: fetched, decoded, scaled
// to what the model takes. Knows no prompt and no money.
import { randomUUID } from "node:crypto"
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { type DecodeError, Decoder } from "#audio/Decoder.ts"
import { removeSpooled } from "#audio/SpoolFile.ts"
import { AtCapacity, InvalidRequest, NotInstalled } from "#domain/wire/Errors.ts"
import type { RequestedPicture } from "#domain/wire/text/Pictures.ts"
import type { PictureFile } from "#engines/protocol/Text.ts"
import { PictureUrl } from "#pictures/PictureUrl.ts"
import { died, ringFolder } from "./TranscriptionAudio.ts"
import { UploadDir } from "./TranscriptionUpload.ts"

/** Pictures of one request that are fetched and decoded side by side: half of the decoders. A guess. */
const sideBySide = 2

/** Most pixels of a picture at an engine, whatever its model takes: 30 MB, within what a decoder may write. */
const maxPixelsAtEngine = 10_000_000

/** Retry-After for a free decoder or a free fetch. A guess: a picture takes a fraction of a second. */
const busyRetryMs = 1_000

/** Who asks, and for which model. */
interface PictureTerms {
  readonly model: string
  readonly user: string
  /** Of the model's facts. */
  readonly maxPixels: number
}

const refusal = (field: string, problem: string): InvalidRequest => new InvalidRequest({ field, problem })

const noDecoder = (model: string) => new NotInstalled({ model, part: "a picture decoder" })

const toEdgeError =
  (model: string, field: string) =>
  (error: DecodeError): AtCapacity | InvalidRequest | NotInstalled => {
    if (error._tag === "AudioRejected") return refusal(field, error.detail)
    if (error.reason === "Absent") return noDecoder(model)
    // A full disk is temporary, and the picture is not at fault. A crashed decoder has been replaced once.
    return error.reason === "Busy" || error.reason === "Spool"
      ? new AtCapacity({ model, retryAfterMs: busyRetryMs })
      : refusal(field, "cannot be decoded")
  }

/** The picture file's bytes. */
const bytesOf = ({ field, source }: RequestedPicture, { model, user }: PictureTerms) =>
  "bytes" in source
    ? Effect.succeed(source.bytes)
    : Effect.flatMap(PictureUrl, (urls) => urls.fetch(source.url, user)).pipe(
        Effect.mapError(({ detail, reason }) =>
          reason === "Busy" ? new AtCapacity({ model, retryAfterMs: busyRetryMs }) : refusal(field, detail),
        ),
      )

/** A new path in a folder that is cleared at a start of what a crash has left; the file there is removed with the scope. */
const pathIn = (folder: string, name: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      return join(folder, name)
    }),
    (path) => Effect.promise(() => removeSpooled(path)),
  )

const decoded = (requested: RequestedPicture, terms: PictureTerms) =>
  Effect.gen(function* () {
    const { detail, field } = requested
    const { model, user } = terms
    const maxPixels = Math.min(terms.maxPixels, maxPixelsAtEngine)
    const uploads = yield* UploadDir
    const decoder = yield* Decoder
    // The id of the process, because another node may use the same folder.
    const into = yield* pathIn(ringFolder(uploads), `${randomUUID()}.${process.pid}.rgb`)
    const picture = yield* Effect.scoped(
      Effect.gen(function* () {
        const bytes = yield* bytesOf(requested, terms)
        const path = yield* pathIn(uploads, `picture-${randomUUID()}`)
        const spooled = Effect.tryPromise({
          try: () => writeFile(path, bytes, { mode: 0o600, flag: "wx" }),
          catch: () => new AtCapacity({ model, retryAfterMs: busyRetryMs }),
        })
        yield* spooled
        return yield* decoder
          .decodePicture({ path, into, maxPixels }, { user })
          .pipe(Effect.retry({ times: 1, while: died }), Effect.mapError(toEdgeError(model, field)))
      }),
    )
    const file: PictureFile = { ...picture, detail, path: into }
    return file
  })

/** The decoded pictures in the order of the request. Their files are removed when the scope closes. */
export const decodedPictures = (
  requested: ReadonlyArray<RequestedPicture>,
  terms: PictureTerms,
): Effect.Effect<
  ReadonlyArray<PictureFile>,
  AtCapacity | InvalidRequest | NotInstalled,
  Decoder | PictureUrl | Scope.Scope
> => Effect.forEach(requested, (picture) => decoded(picture, terms), { concurrency: sideBySide })

/** Refuses pictures where nothing can decode them, before anything is paid or fetched. */
export const requirePictureDecoder = (model: string): Effect.Effect<void, NotInstalled, Decoder> =>
  Effect.flatMap(Decoder, ({ readyForPictures }) => Effect.mapError(readyForPictures, () => noDecoder(model)))
