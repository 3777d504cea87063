// An ONNX export as a model: which adapter reads it, by its configuration and its graphs, and which files it needs.
import { Effect, Schema } from "effect"
import type { ModelEntry, WeightFile } from "#domain/models/ModelEntry.ts"
import type { Choice, FoundModel } from "./FoundModel.ts"
import type { ListedFile } from "./HubFolder.ts"
import { type FoundError, NotUsable, type Repository } from "./Repository.ts"

/**
 * Endings of graphs in order of preference. The exports' names: `_quantized` has 8 bits a weight, none is full precision,
 * `_int8` is another form of 8 bits. Graphs of 16 and 4 bits are chosen only by name: not every processor is fast with them.
 */
const defaultPrecisions = ["_quantized", "", "_int8"]

/** What each form of export has, and how its entry looks. */
interface Family {
  readonly adapter: string
  readonly kind: ModelEntry["kind"]
  /** In words. */
  readonly what: string
  /** `model_type` of config.json; other exports are recognised by their graphs alone. */
  readonly modelTypes: ReadonlyArray<string>
  /** Role → name of the graph without folder and ending. */
  readonly graphs: Readonly<Record<string, string>>
  /** Role → names that the file may have. */
  readonly files: Readonly<Record<string, ReadonlyArray<string>>>
  readonly optional?: Readonly<Record<string, ReadonlyArray<string>>>
  /** Graphs that only some precisions exist for; the others stay at full precision. */
  readonly precisions?: ReadonlyArray<string>
  readonly entry: (repository: Repository) => Pick<
    FoundModel,
    "options" | "speech" | "transcription" | "comments"
  > & {
    readonly files?: Readonly<Record<string, WeightFile>>
  }
}

const expected = (repository: Repository, { path, sha256, sizeBytes }: ListedFile): WeightFile => ({
  source: repository.sourceOf(path),
  ...(sha256 === undefined ? {} : { sha256 }),
  ...(sizeBytes === undefined ? {} : { sizeBytes }),
})

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** English voices: the front end has American (a…) and British (b…) pronunciation. */
const voiceFiles = ({ files }: Repository): ReadonlyArray<ListedFile> =>
  files.filter(({ path }) => /^voices\/[ab][fm]_[a-z]+\.bin$/.test(path))

const voicesOf = (repository: Repository) => {
  const found = voiceFiles(repository)
  const source = repository.sourceOf("voices")
  const isLocal = !source.startsWith("hf:")
  const members = Object.fromEntries(
    found.map(({ path, sha256, sizeBytes }) => [
      nameOf(path),
      {
        ...(sha256 === undefined ? {} : { sha256 }),
        ...(sizeBytes === undefined ? {} : { sizeBytes }),
      },
    ]),
  )
  return {
    names: found.map(({ path }) => nameOf(path).replace(/\.bin$/, "")),
    // A folder here is read as it is; on a hub its files have to be named.
    file: isLocal ? { source } : { source, files: members },
  }
}

const families: ReadonlyArray<Family> = [
  {
    adapter: "whisper-hf-onnx",
    kind: "transcription",
    what: "Whisper",
    modelTypes: ["whisper"],
    graphs: { encoder: "encoder_model", decoder: "decoder_model_merged" },
    files: {
      config: ["config.json"],
      generation: ["generation_config.json"],
      preprocessor: ["preprocessor_config.json"],
      tokenizer: ["tokenizer.json"],
      tokenizerConfig: ["tokenizer_config.json"],
    },
    entry: () => ({ options: {}, comments: {} }),
  },
  {
    adapter: "cohere-hf-onnx",
    kind: "transcription",
    what: "Cohere Transcribe",
    modelTypes: ["cohere_asr"],
    graphs: { encoder: "encoder_model", decoder: "decoder_model_merged" },
    files: {
      preprocessor: ["preprocessor_config.json"],
      tokenizer: ["tokenizer.json"],
      tokenizerConfig: ["tokenizer_config.json"],
    },
    entry: () => ({
      options: {},
      transcription: { defaultLanguage: "en" },
      comments: {
        transcription: "The model detects no language: this one is meant where a request names none.",
      },
    }),
  },
  {
    adapter: "chatterbox-onnx",
    kind: "speech",
    what: "Chatterbox",
    modelTypes: ["chatterbox"],
    graphs: {
      speechEncoder: "speech_encoder",
      embedTokens: "embed_tokens",
      languageModel: "language_model",
      conditionalDecoder: "conditional_decoder",
    },
    files: {
      tokenizer: ["tokenizer.json"],
      tokenizerConfig: ["tokenizer_config.json"],
      defaultVoice: ["default_voice.wav"],
    },
    optional: { cangjie: ["Cangjie5_TC.json"] },
    precisions: ["_q4", ""],
    entry: () => ({
      options: {},
      speech: {
        maxCharacters: 850,
        voices: ["default"],
        cloning: true,
        languages: ["en", "fr", "de", "es", "it", "pt", "pl", "ja", "ar", "zh"],
      },
      comments: { speech: "`voice` may be a reference clip. The published model knows more languages." },
    }),
  },
  {
    adapter: "kokoro-onnx",
    kind: "speech",
    what: "Kokoro",
    modelTypes: ["style_text_to_speech_2", "kokoro"],
    graphs: { model: "model" },
    files: { tokenizer: ["tokenizer.json"] },
    precisions: ["", "_quantized"],
    entry: (repository) => {
      const { file, names } = voicesOf(repository)
      return {
        options: {},
        files: { voices: file },
        speech: { maxCharacters: 4_096, voices: names },
        comments: { "speech.voices": "The English voices of the repository." },
      }
    },
  },
]

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
      files[role] = expected(repository, graph)
      graphs.push(nameOf(graph.path))
      for (const [index, data] of dataOf(repository.files, graph).entries())
        files[`${role}Data${index === 0 ? "" : index + 1}`] = expected(repository, data)
    }
    for (const [role, names] of Object.entries({ ...family.files, ...family.optional })) {
      const found = repository.files.find(({ path }) => names.includes(path))
      if (found !== undefined) files[role] = expected(repository, found)
      else if (family.files[role] !== undefined) return yield* missing(repository, family, names[0] ?? role)
    }
    return { files, graphs }
  })

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
    const precisions = choice.precisions ?? family.precisions ?? defaultPrecisions
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
