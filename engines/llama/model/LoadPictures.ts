// Loads the tower of a model that takes pictures, and checks that it fits the text model.
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type EngineError, loadFailed } from "../../protocol/Engine.ts"
import type { NativeContext, OpenedNative } from "../native/Native.ts"
import type { NativeLog } from "../native/NativeLog.ts"
import { UnfitTensors } from "../tower/Graph.ts"
import { familyGraphs } from "../tower/Graphs.ts"
import { openTower } from "../tower/Tower.ts"
import { readTowerFile, type TowerFile, UnusableTower } from "../tower/TowerFile.ts"
import { families } from "../vision/Families.ts"
import { PictureReader } from "../vision/PictureReader.ts"
import { PictureRows } from "../vision/PictureRows.ts"

export interface Pictures {
  readonly reader: PictureReader
  readonly rows: PictureRows
}

interface PicturesSpec {
  /** Path of the mmproj file. */
  readonly path: string
  readonly opened: OpenedNative
  readonly native: Pick<NativeContext, "rows">
  readonly cacheBytes: number
  /** CPU threads for the tower now. */
  readonly threads: () => number
  readonly log: NativeLog
}

/** What of the two files does not fit together; undefined if they fit. */
const misfit = (
  file: TowerFile,
  { model }: OpenedNative,
  width: number,
  name: string,
): string | undefined => {
  const rowWidth = familyGraphs[file.projector].rowWidth(file)
  if (rowWidth !== width)
    return `${name} makes rows of ${rowWidth} values, and the text model reads rows of ${width}`
  if (model.fileInfo.metadata.tokenizer?.chat_template === undefined)
    return `${name} needs a text model with a chat template, and this one has none`
  const known = new Set(model.fileInfo.metadata.tokenizer?.ggml?.tokens)
  const missing = families[file.projector].markers.find((marker) => !known.has(marker))
  return missing === undefined
    ? undefined
    : `${name} is of type ${file.projector}, and the text model has no token ${missing}`
}

export const loadPictures = ({
  cacheBytes,
  log,
  native,
  opened,
  path,
  threads,
}: PicturesSpec): Effect.Effect<Pictures, EngineError, Scope.Scope> =>
  Effect.gen(function* () {
    const name = basename(path)
    const { device } = opened
    const { rows: access } = native
    const named = (cause: unknown): string => {
      if (cause instanceof UnusableTower) return `${name} ${cause.message}`
      if (cause instanceof UnfitTensors) return `${name} is no usable tower: ${cause.message}`
      return `cannot load ${name}: ${cause instanceof Error ? cause.message : String(cause)}`
    }
    const file = yield* Effect.tryPromise({
      try: async () => {
        const read = await readTowerFile(path)
        const problem = misfit(read, opened, access.width, name)
        return problem === undefined ? read : { problem }
      },
      catch: (cause) => loadFailed("", named(cause)),
    })
    if ("problem" in file) return yield* loadFailed("", file.problem)
    const tower = yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: () => openTower(path, file, device),
        catch: (cause) => loadFailed("", named(cause)),
      }),
      (one) => Effect.sync(() => one.close()),
    )
    yield* Effect.promise(() => log.settled())
    const rows = yield* Effect.acquireRelease(
      Effect.sync(() => new PictureRows({ tower, cacheBytes, threads })),
      (one) => Effect.promise(() => one.close()),
    )
    return { rows, reader: new PictureReader(file, rows) }
  })
