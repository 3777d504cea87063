// Checks of weight files against public references, with the product's own readers: sums, sizes of the network, token ids, the mel
// table, phonemes. A reader that fails makes a failed row.
import { readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Result, type Scope } from "effect"
import type { Deployment } from "#domain/models/Deployment.ts"
import type { EngineSpec } from "#engines/protocol/Engine.ts"
import { counted } from "../doctor/report/Words.ts"
import type { ProvenFile, Row } from "./Document.ts"
import { row } from "./Document.ts"
import type { Reference } from "./Reference.ts"

/** What an adapter's files say. */
interface Contents {
  readonly dimensions: Readonly<Record<string, number | string>>
  readonly encode: (text: string, special: boolean) => ReadonlyArray<number>
  readonly mel?: MelTable
  readonly phonemes?: (text: string, british: boolean) => Promise<string>
}

interface MelTable {
  readonly rateHz: number
  readonly fftSize: number
  readonly hopSamples: number
  /** By filter and FFT bin. */
  readonly weights: ReadonlyArray<Float64Array>
  /** A table that the files carry; the engine computes its own. */
  readonly carried: ReadonlyArray<ReadonlyArray<number>> | undefined
}

const specOf = ({ entry, files }: Deployment): EngineSpec => ({
  modelId: entry.id,
  adapter: entry.adapter,
  files,
  options: entry.options,
  threads: 1,
})

const json = async (path: string): Promise<Readonly<Record<string, unknown>>> =>
  JSON.parse(await readFile(path, "utf8")) as Readonly<Record<string, unknown>>

const plain = (record: Readonly<Record<string, unknown>>): Readonly<Record<string, number | string>> =>
  Object.fromEntries(
    Object.entries(record).filter(
      (pair): pair is [string, number | string] => typeof pair[1] === "number" || typeof pair[1] === "string",
    ),
  )

const whisper = (deployment: Deployment) =>
  Effect.gen(function* () {
    const { melFilters } = yield* Effect.promise(() => import("#engines/shared/listening/MelFilters.ts"))
    const { readModel } = yield* Effect.promise(() => import("#engines/whisper/WhisperModel.ts"))
    const model = yield* readModel(specOf(deployment))
    const config = yield* Effect.promise(() => json(deployment.files.config ?? ""))
    const preprocessor = yield* Effect.promise(() => json(deployment.files.preprocessor ?? ""))
    const { fftSize, hopSamples, melBins, rateHz } = model.features
    const weights = melFilters({ melBins, fftSize, rateHz }).map(({ firstBin, weights: some }) => {
      const all = new Float64Array(fftSize / 2 + 1)
      all.set(some, firstBin)
      return all
    })
    const carried = preprocessor.mel_filters as MelTable["carried"]
    return {
      dimensions: plain(config),
      encode: model.encode,
      mel: { rateHz, fftSize, hopSamples, weights, carried: Array.isArray(carried) ? carried : undefined },
    } satisfies Contents
  })

const kokoro = (deployment: Deployment) =>
  Effect.gen(function* () {
    const { loadSymbols } = yield* Effect.promise(() => import("#engines/shared/speech/Symbols.ts"))
    const { englishFragments } = yield* Effect.promise(() => import("#engines/kokoro/KokoroOnnx.ts"))
    const { loadEnglish } = yield* Effect.promise(() => import("#engines/kokoro/Espeak.ts"))
    const english = yield* loadEnglish
    const symbols = yield* loadSymbols(deployment.files.tokenizer ?? "")
    const voices = Object.keys(deployment.entry.files.voices?.files ?? {})
    const sizes = yield* Effect.promise(() =>
      Promise.all(voices.map(async (name) => (await stat(join(deployment.files.voices ?? "", name))).size)),
    )
    const phonemes = async (text: string, british: boolean): Promise<string> => {
      let all = ""
      for await (const fragment of englishFragments(text, british, english!)) all += fragment.phonemes
      return all.trim()
    }
    return {
      dimensions: {
        english_voices: voices.filter((name) => /^[ab]/.test(name)).length,
        voice_bytes: [...new Set(sizes)].join(" and "),
      },
      // Without the pad at either end.
      encode: (text: string) => symbols.ids(text).slice(1, -1),
      ...(english === undefined ? {} : { phonemes }),
    } satisfies Contents
  })

const gguf = (deployment: Deployment) =>
  Effect.gen(function* () {
    const { openVocabulary } = yield* Effect.promise(() => import("#engines/llama/model/GgufVocabulary.ts"))
    return yield* openVocabulary(deployment.files.weights ?? "")
  })

/** By adapter; others have no readers of their own here. */
const readers = { "whisper-hf-onnx": whisper, "kokoro-onnx": kokoro, "llama-gguf": gguf } as const

const messageOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "detail" in error ? String(error.detail) : String(error)

const listed = (values: ReadonlyArray<number>): string =>
  values.length > 12 ? `${values.slice(0, 12).join(" ")} … (${values.length})` : values.join(" ")

const shown = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)

/** SHA-256 of the pulled weights against the record of several public sources. */
export const sumsRow = (
  files: ReadonlyArray<ProvenFile>,
  { sums }: Pick<Reference, "sums">,
): ReadonlyArray<Row> => {
  if (sums === undefined) return [row("weights", "none", "no public record of their SHA-256 is known here")]
  const known = files.filter(({ path }) => sums.files[path] !== undefined)
  const wrong = known.find(({ path, sha256 }) => sums.files[path] !== sha256)
  const reference = sums.from
  if (wrong !== undefined)
    return [
      row("weights", "fail", `${wrong.path} has SHA-256 ${wrong.sha256}`, {
        expected: sums.files[wrong.path]!,
        reference,
      }),
    ]
  return known.length === 0
    ? [row("weights", "none", "another precision than the public record has", { reference })]
    : [row("weights", "pass", `SHA-256 of ${known.map(({ path }) => path).join(", ")}`, { reference })]
}

const dimensionsRow = ({ dimensions }: Contents, wanted: NonNullable<Reference["dimensions"]>): Row => {
  const reference = wanted.from
  const wrong = Object.entries(wanted.values).filter(
    ([name, value]) => String(dimensions[name]) !== String(value),
  )
  if (wrong.length === 0)
    return row("tensors", "pass", `${Object.keys(wanted.values).length} sizes of the network`, { reference })
  return row("tensors", "fail", wrong.map(([name]) => `${name} ${dimensions[name] ?? "absent"}`).join(", "), {
    expected: wrong.map(([name, value]) => `${name} ${value}`).join(", "),
    reference,
  })
}

const tokensRow = ({ encode }: Contents, wanted: NonNullable<Reference["tokens"]>): Row => {
  const reference = wanted.from
  for (const { ids, special = false, text } of wanted.texts) {
    const found = encode(text, special)
    if (found.length !== ids.length || found.some((id, at) => id !== ids[at]))
      return row("tokenizer", "fail", `${shown(text)} gives ${listed(found)}`, {
        expected: listed(ids),
        reference,
      })
  }
  const count = wanted.texts.reduce((sum, { ids }) => sum + ids.length, 0)
  return row("tokenizer", "pass", `${count} ids of ${counted(wanted.texts.length, "text")}`, { reference })
}

/** Relative difference that single precision explains. */
const tolerance = 1e-5

const differs = (a: number, b: number): boolean => Math.abs(a - b) > tolerance * Math.max(1e-3, Math.abs(b))

/** The first place where a table of the files differs from the engine's own. */
const carriedProblem = ({ carried, weights }: MelTable): string | undefined => {
  if (carried === undefined) return undefined
  // Some exports have [bin][filter].
  const isTurned = carried.length !== weights.length && carried[0]?.length === weights.length
  for (const [filter, own] of weights.entries())
    for (const [bin, value] of own.entries()) {
      const other = Number(isTurned ? carried[bin]?.[filter] : carried[filter]?.[bin])
      if (!(Math.abs(other - value) <= tolerance))
        return `the table of preprocessor_config.json has ${other} at filter ${filter}, bin ${bin}; the engine computes ${value}`
    }
  return undefined
}

const melRow = (mel: MelTable, wanted: NonNullable<Reference["mel"]>): Row => {
  const reference = wanted.from
  const settings = (of: Pick<typeof wanted, "rateHz" | "fftSize" | "hopSamples" | "bins">): string =>
    `${of.bins} filters, ${of.rateHz} Hz, windows of ${of.fftSize} every ${of.hopSamples}`
  const own = settings({ ...mel, bins: mel.weights.length })
  if (own !== settings(wanted))
    return row("mel table", "fail", own, { expected: settings(wanted), reference })
  const total = mel.weights.reduce((sum, filter) => sum + filter.reduce((inner, one) => inner + one, 0), 0)
  if (differs(total, wanted.sum))
    return row("mel table", "fail", `sum ${total}`, { expected: `sum ${wanted.sum}`, reference })
  for (const [filter, bin, value] of wanted.weights) {
    const found = mel.weights[filter]?.[bin] ?? Number.NaN
    if (!(Math.abs(found - value) <= tolerance * value))
      return row("mel table", "fail", `filter ${filter}, bin ${bin}: ${found}`, {
        expected: String(value),
        reference,
      })
  }
  const problem = carriedProblem(mel)
  return problem === undefined
    ? row("mel table", "pass", `${own}: sum and ${wanted.weights.length} entries`, { reference })
    : row("mel table", "fail", problem, { expected: "one table", reference })
}

const phonemesRow = async (
  phonemes: NonNullable<Contents["phonemes"]>,
  wanted: NonNullable<Reference["phonemes"]>,
): Promise<Row> => {
  const reference = wanted.from
  for (const { british = false, phonemes: expected, text } of wanted.texts) {
    const found = await phonemes(text, british)
    if (found !== expected)
      return row("phonemes", "fail", `${shown(text)} gives ${found}`, { expected, reference })
  }
  return row("phonemes", "pass", counted(wanted.texts.length, "text"), { reference })
}

/** The checks for which there is a reference; one row says which have none. */
export const fileRows = (deployment: Deployment, reference: Reference): Effect.Effect<ReadonlyArray<Row>> =>
  Effect.gen(function* () {
    const { adapter } = deployment.entry
    const reader = readers[adapter as keyof typeof readers]
    if (reader === undefined)
      return [row("tokenizer", "none", `no public reference is known here for ${adapter}`)]
    const read = yield* Effect.result(reader(deployment) as Effect.Effect<Contents, unknown, Scope.Scope>)
    if (Result.isFailure(read)) return [row("tokenizer", "fail", messageOf(read.failure))]
    const contents = read.success
    const { dimensions, mel, phonemes, tokens } = reference
    const rows: Array<Row> = []
    if (dimensions !== undefined) rows.push(dimensionsRow(contents, dimensions))
    if (tokens !== undefined) rows.push(tokensRow(contents, tokens))
    if (contents.mel !== undefined && mel !== undefined) rows.push(melRow(contents.mel, mel))
    const { phonemes: speakable } = contents
    if (speakable !== undefined && phonemes !== undefined)
      rows.push(yield* Effect.promise(() => phonemesRow(speakable, phonemes)))
    const absent = [
      ...(dimensions === undefined ? ["tensors"] : []),
      ...(tokens === undefined ? ["tokenizer"] : []),
      ...(contents.mel !== undefined && mel === undefined ? ["mel table"] : []),
    ]
    for (const check of absent) rows.push(row(check, "none", "no public reference is known here"))
    return rows
  }).pipe(
    Effect.scoped,
    Effect.catchCause((cause) =>
      Effect.succeed([row("tensors", "fail", `the files cannot be read: ${String(cause)}`)]),
    ),
  )
