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

/** Endings of graphs that are known. A text that `*` stands for does not contain one. */
const knownEndings = ["", "_quantized", "_q4", "_fp16", "_q4f16", "_int8", ".int8"]

/**
 * The names of a family's graphs in this repository: `*` is the first text, of those in a name of the first graph, that gives all of
 * them. The names as they are where there is no such text.
 */
const namesIn = (repository: Repository, { graphs }: Family): Readonly<Record<string, string>> => {
  const [first = ""] = Object.values(graphs)
  if (!first.includes("*")) return graphs
  const [before = "", behind = ""] = first.split("*")
  const named = (text: string) =>
    Object.fromEntries(Object.entries(graphs).map(([role, name]) => [role, name.replace("*", text)]))
  const texts = repository.files.flatMap(({ path }) => {
    const name = nameOf(path)
      .replace(/\.onnx$/, "")
      .replace(/(?:[._]int8|_quantized|_fp16|_q4|_q4f16)$/, "")
    return path.endsWith(".onnx") && name.startsWith(before) && name.endsWith(behind)
      ? [name.slice(before.length, name.length - behind.length)]
      : []
  })
  const text = texts.find((one) =>
    Object.values(named(one)).every((name) => graphOf(repository.files, name, knownEndings) !== undefined),
  )
  return text === undefined ? graphs : named(text)
}

/** External data of a graph: large exports keep their weights beside it. */
const dataOf = (files: ReadonlyArray<ListedFile>, graph: ListedFile): ReadonlyArray<ListedFile> =>
  files.filter(({ path }) => path.startsWith(`${graph.path}_data`) || path === `${graph.path}.data`)

const missing = (repository: Repository, family: Family, what: string): NotUsable =>
  new NotUsable({
    source: repository.source,
    problem: `looks like ${family.what} and has no ${what}; choose ${family.whole ?? "the export for transformers.js, with the folder onnx/"}`,
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
    for (const [role, name] of Object.entries(namesIn(repository, family))) {
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
  int8: ["_quantized", "_int8", ".int8"],
  q8: ["_quantized", "_int8", ".int8"],
  quantized: ["_quantized"],
  uint8: ["_uint8"],
  q4: ["_q4"],
  q4f16: ["_q4f16"],
  bnb4: ["_bnb4"],
}

/** The endings for the precision that was asked for, of which the export must have a graph. */
const precisionsFor = (
  repository: Repository,
  family: Family,
  named: string,
): Effect.Effect<ReadonlyArray<string>, NotUsable> => {
  const has = (endings: ReadonlyArray<string>): boolean =>
    Object.values(namesIn(repository, family)).some(
      (name) => graphOf(repository.files, name, endings) !== undefined,
    )
  const endings = namedPrecisions[named.toLowerCase()]
  if (endings !== undefined && has(endings)) return Effect.succeed(endings)
  const there = Object.keys(namedPrecisions).filter((name) => has(namedPrecisions[name] ?? []))
  const problem = `has no graphs of the precision ${named}; --file may be ${there.join(", ")}`
  return Effect.fail(new NotUsable({ source: repository.source, problem }))
}

const familyOf = (repository: Repository, modelType: string | undefined): Family | undefined => {
  const hasGraphs = (family: Family): boolean =>
    Object.values(namesIn(repository, family)).every(
      (name) => graphOf(repository.files, name, knownEndings) !== undefined,
    )
  return (
    families.find(({ modelTypes }) => modelType !== undefined && modelTypes.includes(modelType)) ??
    // Without a known type: by the graphs, and by what only this form of export has beside them.
    families.find(
      (family) =>
        modelType === undefined && family.isKnownByGraphs?.(repository) === true && hasGraphs(family),
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
      const known = [...new Set(families.map(({ what }) => what))].join(", ")
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
      return yield* missing(repository, family, "voices (voices/af_….bin)")
    return {
      kind: family.kind,
      adapter: family.adapter,
      files: { ...files, ...more },
      ...entry,
      summary: `${family.what}, ${graphs.join(", ")}`,
      notes: [],
    }
  })
