// What `edgewise models add` would write: the entry with its comments, made from what was found out about the files.
import { Clock, Effect, Result } from "effect"
import { Device } from "#actors/device/Device.ts"
import { processBytes, tooLargeProblem } from "#actors/model/MemoryClaim.ts"
import type { Config } from "#config/Settings.ts"
import { ModelEntry, type WeightFile } from "#domain/models/ModelEntry.ts"
import { decodeStrictly } from "#store/files/SchemaMistakes.ts"
import type { Comments } from "#weights/edit/EntryText.ts"
import { findModel } from "#weights/found/FindModel.ts"
import type { FoundModel } from "#weights/found/FoundModel.ts"
import { restrictsUse } from "#weights/found/Licences.ts"
import { NotUsable } from "#weights/found/Repository.ts"
import type { PulledFile } from "#weights/PullModel.ts"
import { withDevice } from "./MachineMemory.ts"
import { type WeightsSource, weightsSource } from "./WeightsSource.ts"

/** An entry as it is written: what the schema would add is left out. */
export interface Written {
  readonly id: string
  readonly aliases?: ReadonlyArray<string>
  readonly kind: string
  readonly adapter: string
  readonly ownedBy: string
  readonly created: number
  readonly files: Readonly<Record<string, WeightFile>>
  readonly options?: Readonly<Record<string, unknown>>
  readonly price: object
  readonly speech?: Readonly<Record<string, unknown>>
  readonly transcription?: Readonly<Record<string, unknown>>
}

/** As a node will read it. */
export const decodedEntry = (entry: Written): Effect.Effect<ModelEntry, NotUsable> => {
  const decoded = decodeStrictly(ModelEntry, entry)
  if (Result.isSuccess(decoded)) return Effect.succeed(decoded.success)
  const problem = decoded.failure.map(({ path, problem }) => `${path.join(".")}: ${problem}`).join("; ")
  return Effect.fail(new NotUsable({ source: entry.id, problem }))
}

interface Names {
  readonly id: string
  readonly aliases: ReadonlyArray<string>
}

const writtenEntry = (
  { adapter, files, kind, options, speech, transcription }: FoundModel,
  { aliases, id }: Names,
  ownedBy: string,
  created: number,
): Written => ({
  id,
  ...(aliases.length === 0 ? {} : { aliases }),
  kind,
  adapter,
  ownedBy,
  created,
  files,
  ...(Object.keys(options).length === 0 ? {} : { options }),
  price: {},
  ...(speech === undefined ? {} : { speech }),
  ...(transcription === undefined ? {} : { transcription }),
})

/** The licence that the publisher names, or that of the preset. */
export const licenceOf = ({ preset, repository }: WeightsSource): string | undefined =>
  repository.licence ?? preset?.licence

/** Fails if the licence restricts the use of the model and was not accepted. */
export const requireAccepted = (source: WeightsSource, accept: boolean): Effect.Effect<void, NotUsable> => {
  const licence = licenceOf(source)
  if (accept || !restrictsUse(licence)) return Effect.void
  const problem = `its licence (${licence}) restricts what the model may be used for: read it at the publisher's (${source.repository.source}), then repeat the command with --accept`
  return Effect.fail(new NotUsable({ source: source.name, problem }))
}

const commentsOf = (found: FoundModel, source: WeightsSource, notes: ReadonlyArray<string>): Comments => {
  const { repository } = source
  const licence = licenceOf(source)
  const from = `${found.summary}. From ${repository.source}${licence === undefined ? "" : `, licence ${licence}`}.`
  return {
    "": [from, ...notes.map((note) => `${note[0]?.toUpperCase() ?? ""}${note.slice(1)}.`)].join(" "),
    aliases: "Further names in requests. A built-in model with one of them steps aside.",
    price: "Micro-dollars; empty: free. See docs/bring-your-weights.md.",
    ...found.comments,
  }
}

/** The sums and sizes that the files had when they arrived, so that later pulls are held to them. */
export const withSums = (
  files: Readonly<Record<string, WeightFile>>,
  pulled: ReadonlyArray<PulledFile>,
): Readonly<Record<string, WeightFile>> => {
  const known = new Map(pulled.map(({ sha256, sizeBytes, source }) => [source, { sha256, sizeBytes }]))
  return Object.fromEntries(
    Object.entries(files).map(([role, file]) => [
      role,
      file.files === undefined
        ? { ...file, ...known.get(file.source) }
        : {
            ...file,
            files: Object.fromEntries(
              Object.entries(file.files).map(([name, one]) => [
                name,
                { ...one, ...known.get(`${file.source}/${name}`) },
              ]),
            ),
          },
    ]),
  )
}

export const fits = (entry: ModelEntry, sizeBytes: number) =>
  Effect.gen(function* () {
    const problem = yield* tooLargeProblem(yield* Device, { entry, sizeBytes }, processBytes)
    if (problem === undefined) return
    const advice =
      "choose a smaller model (edgewise models presets) or quantisation (--file), or raise EDGEWISE_MEMORY_MB where there is more"
    return yield* new NotUsable({ source: entry.id, problem: `${problem}; ${advice}` })
  })

/** What of the preset's record does not agree with the hub. */
const changesSince = ({ preset, repository }: WeightsSource): ReadonlyArray<string> =>
  Object.entries(preset?.sums ?? {}).flatMap(([path, sum]) => {
    const listed = repository.files.find((file) => file.path === path)
    return listed?.sha256 === undefined || listed.sha256 === sum
      ? []
      : [`the publisher has replaced ${path} since the preset was written (its SHA-256 was ${sum})`]
  })

interface Asked {
  readonly id: string | undefined
  readonly aliases: ReadonlyArray<string>
  readonly file: string | undefined
  readonly source: string
}

/** What would be written, with everything checked that can be without the files. */
export const planned = Effect.fnUntraced(function* (config: Config, asked: Asked) {
  const source: WeightsSource = yield* weightsSource(asked.source, asked.file)
  const memoryBytes = yield* withDevice(
    config,
    Effect.map(Device, (device) => device.modelBytes()),
  )
  const found = yield* findModel(source.repository, { ...source.choice, memoryBytes })
  const created = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  const names = { id: asked.id ?? source.name, aliases: asked.aliases }
  const entry = writtenEntry(found, names, source.repository.owner, created)
  const notes = [...found.notes, ...changesSince(source)]
  const comments = commentsOf(found, source, found.notes)
  return { source, found, entry, notes, comments }
})
