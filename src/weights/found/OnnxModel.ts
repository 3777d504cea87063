// An ONNX export as a model: which adapter reads it, by its configuration and its graphs, and which files it needs.
import { Effect, Schema } from "effect"
import type { WeightFile } from "#domain/models/ModelEntry.ts"
import type { Choice, FoundModel } from "./FoundModel.ts"
import type { ListedFile } from "./HubFolder.ts"
import { defaultPrecisions, type Family, families, nameOf, voiceFiles } from "./OnnxFamilies.ts"
import { expectedFile, type FoundError, NotUsable, type Repository } from "./Repository.ts"

const Config = Schema.fromJsonString(Schema.Struct({ model_type: Schema.optionalKey(Schema.String) }))

/** The graph of this name with one of these endings, in `onnx/` or beside the configuration. */
const graphOf = (
  files: ReadonlyArray<ListedFile>,
  name: string,
  precisions: ReadonlyArray<string>,
): ListedFile | undefined =>
  precisions
    .flatMap((precision) => [`onnx/${name}${precision}.onnx`, `${name}${precision}.onnx`])
    .flatMap((path) => files.filter((file) => file.path === path))[0]

/** External data of a graph: large exports keep their weights beside it. */
const dataOf = (files: ReadonlyArray<ListedFile>, graph: ListedFile): ReadonlyArray<ListedFile> =>
  files.filter(({ path }) => path.startsWith(`${graph.path}_data`) || path === `${graph.path}.data`)

const missing = (repository: Repository, family: Family, what: string): NotUsable =>
  new NotUsable({
    source: repository.source,
    problem: `looks like ${family.what} and has no ${what}; choose the export for transformers.js, with the folder onnx/`,
  })

const filesOf = (
  repository: Repository,
  family: Family,
  precisions: ReadonlyArray<string>,
): Effect.Effect<
  { readonly files: Readonly<Record<string, WeightFile>>; readonly graphs: ReadonlyArray<string> },
  NotUsable
> =>
  Effect.gen(function* () {
    const files: Record<string, WeightFile> = {}
    const graphs: Array<string> = []
    for (const [role, name] of Object.entries(family.graphs)) {
      // What does not exist in the wanted precision is taken in full.
      const graph = graphOf(repository.files, name, [...precisions, ""])
      if (graph === undefined) return yield* missing(repository, family, `${name}.onnx`)
      files[role] = expectedFile(repository, graph)
      graphs.push(nameOf(graph.path))
      for (const [index, data] of dataOf(repository.files, graph).entries())
        files[`${role}Data${index === 0 ? "" : index + 1}`] = expectedFile(repository, data)
    }
    for (const [role, names] of Object.entries({ ...family.files, ...family.optional })) {
      const found = repository.files.find(({ path }) => names.includes(path))
      if (found !== undefined) files[role] = expectedFile(repository, found)
      else if (family.files[role] !== undefined) return yield* missing(repository, family, names[0] ?? role)
    }
    return { files, graphs }
  })

/** Names of precisions as publishers and people write them, and the endings of their graphs. */
const namedPrecisions: Readonly<Record<string, ReadonlyArray<string>>> = {
  fp32: [""],
  fp16: ["_fp16"],
  int8: ["_quantized", "_int8"],
  q8: ["_quantized", "_int8"],
  quantized: ["_quantized"],
  uint8: ["_uint8"],
  q4: ["_q4"],
  q4f16: ["_q4f16"],
  bnb4: ["_bnb4"],
}

/** The endings for the precision that was asked for, of which the export must have a graph. */
const precisionsFor = (
  repository: Repository,
  { graphs }: Family,
  named: string,
): Effect.Effect<ReadonlyArray<string>, NotUsable> => {
  const has = (endings: ReadonlyArray<string>): boolean =>
    Object.values(graphs).some((name) => graphOf(repository.files, name, endings) !== undefined)
  const endings = namedPrecisions[named.toLowerCase()]
  if (endings !== undefined && has(endings)) return Effect.succeed(endings)
  const there = Object.keys(namedPrecisions).filter((name) => has(namedPrecisions[name] ?? []))
  const problem = `has no graphs of the precision ${named}; --file may be ${there.join(", ")}`
  return Effect.fail(new NotUsable({ source: repository.source, problem }))
}

const familyOf = (repository: Repository, modelType: string | undefined): Family | undefined => {
  const has = (name: string): boolean =>
    graphOf(repository.files, name, ["", "_quantized", "_q4", "_fp16", "_q4f16", "_int8"]) !== undefined
  return (
    families.find(({ modelTypes }) => modelType !== undefined && modelTypes.includes(modelType)) ??
    // Without a known type: the graphs and voices of one family only.
    families.find(
      ({ adapter, graphs }) =>
        modelType === undefined &&
        Object.values(graphs).every(has) &&
        (adapter === "chatterbox-onnx" || (adapter === "kokoro-onnx" && voiceFiles(repository).length > 0)),
    )
  )
}

/** The type that config.json names. Undefined without one. */
const modelTypeOf = (repository: Repository): Effect.Effect<string | undefined, FoundError> =>
  repository.files.some(({ path }) => path === "config.json")
    ? repository.readText("config.json").pipe(
        Effect.flatMap((text) =>
          Effect.mapError(
            Schema.decodeUnknownEffect(Config)(text),
            () =>
              new NotUsable({
                source: repository.source,
                problem: "its config.json is not JSON; get it again",
              }),
          ),
        ),
        Effect.map(({ model_type }) => model_type),
      )
    : Effect.succeed(undefined)

/** An ONNX export as a catalog entry. Undefined if the files are none that an adapter reads. */
export const onnxModel = (
  repository: Repository,
  choice: Choice,
): Effect.Effect<FoundModel | undefined, FoundError> =>
  Effect.gen(function* () {
    if (!repository.files.some(({ path }) => path.endsWith(".onnx"))) return undefined
    const modelType = yield* modelTypeOf(repository)
    const family = familyOf(repository, modelType)
    if (family === undefined) {
      const known = families.map(({ what }) => what).join(", ")
      const problem = `is an ONNX export of ${modelType ?? "an unnamed type"}, which no adapter reads; ${known} are read`
      return yield* new NotUsable({ source: repository.source, problem })
    }
    const precisions =
      choice.file === undefined
        ? (choice.precisions ?? family.precisions ?? defaultPrecisions)
        : yield* precisionsFor(repository, family, choice.file)
    const { files, graphs } = yield* filesOf(repository, family, precisions)
    const { files: more = {}, ...entry } = family.entry(repository)
    if (family.adapter === "kokoro-onnx" && voiceFiles(repository).length === 0)
      return yield* missing(repository, family, "English voices (voices/af_….bin)")
    return {
      kind: family.kind,
      adapter: family.adapter,
      files: { ...files, ...more },
      ...entry,
      summary: `${family.what}, ${graphs.join(", ")}`,
      notes: [],
    }
  })
