// A GGUF file as a model: which file of a repository, its tower for pictures, and how many sequences its memory allows.
import { Effect } from "effect"
import type { WeightFile } from "#domain/models/ModelEntry.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"
import type { GgufFacts } from "../formats/GgufCheck.ts"
import {
  embeddingArchitectures,
  otherArchitectures,
  quantisationOf,
  textArchitectures,
} from "./Architectures.ts"
import { type Choice, type FoundModel, megabytes } from "./FoundModel.ts"
import type { ListedFile } from "./HubFolder.ts"
import { expectedFile, type FoundError, NotUsable, type Repository } from "./Repository.ts"

const isGguf = ({ path }: ListedFile): boolean => path.toLowerCase().endsWith(".gguf")
const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)
const isTower = ({ path }: ListedFile): boolean => /mmproj/i.test(nameOf(path))
const isPart = ({ path }: ListedFile): boolean => /-\d{5}-of-\d{5}\.gguf$/i.test(path)

/** The quantisation in a file's name, e.g. `Q4_K_M`. */
const namedQuantisation = (path: string): string | undefined =>
  /(?:^|[-._])((?:I?Q\d(?:_[0-9A-Z]+)*)|BF16|F16|F32)\.gguf$/i.exec(nameOf(path))?.[1]?.toUpperCase()

/**
 * Quantisations in order of preference: eight bits lose next to nothing, four bits with K blocks little. The first whose file
 * takes at most half of the memory of models is chosen, because the context needs memory too.
 */
const preferred = ["Q8_0", "Q4_K_M", "Q5_K_M", "Q6_K", "Q4_K_S", "Q4_0", "IQ4_XS", "F16", "BF16"]

/** The file of a repository that is used if none is named. */
export const chooseGguf = (files: ReadonlyArray<ListedFile>, memoryBytes: number): ListedFile | undefined => {
  const whole = files.filter((file) => isGguf(file) && !isTower(file) && !isPart(file))
  const ranked = preferred.flatMap((quantisation) =>
    whole.filter(({ path }) => namedQuantisation(path) === quantisation),
  )
  const candidates = [...ranked, ...whole.filter((file) => !ranked.includes(file))]
  const fitting = candidates.find(({ sizeBytes = 0 }) => sizeBytes <= memoryBytes / 2)
  return fitting ?? candidates.toSorted((a, b) => (a.sizeBytes ?? 0) - (b.sizeBytes ?? 0))[0]
}

/** Sequences and context of a model whose file has this size and whose token takes these bytes. */
interface Room {
  readonly slots: number
  readonly contextTokens: number
  readonly contextBytes: number | undefined
}

/** The adapter's defaults, beyond which nothing is chosen. */
const mostSlots = 16
const mostContext = 8_192
/** A conversation with tools needs about this much. A guess. */
const leastContext = 2_048

/** As many sequences as fit in half of the memory that the weights leave; with one, a shorter context if it must be. */
export const roomFor = (
  { contextTokens: trained = mostContext, tokenBytes }: Pick<GgufFacts, "contextTokens" | "tokenBytes">,
  weightBytes: number,
  memoryBytes: number,
): Room => {
  let contextTokens = Math.min(mostContext, Math.max(32, trained))
  if (tokenBytes === undefined || tokenBytes === 0)
    return { slots: mostSlots, contextTokens, contextBytes: undefined }
  const freeBytes = Math.max(0, memoryBytes - weightBytes) / 2
  const fits = (slots: number): boolean => slots * contextTokens * tokenBytes <= freeBytes
  let slots = mostSlots
  while (slots > 1 && !fits(slots)) slots /= 2
  while (!fits(slots) && contextTokens > leastContext) contextTokens = Math.floor(contextTokens / 2)
  return { slots, contextTokens, contextBytes: slots * contextTokens * tokenBytes }
}

/** Letters and digits of a model's name, without its quantisation. */
const stem = (path: string): string =>
  nameOf(path)
    .replace(/\.gguf$/i, "")
    .replace(/mmproj/gi, "")
    .replace(/[-._]((?:I?Q\d(?:_[0-9A-Z]+)*)|BF16|F16|F32)$/i, "")
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "")

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1)

/** The tower in the folder of a text model: of the same name, or one without a name beside the only text model. */
export const towerOf = (files: ReadonlyArray<ListedFile>, model: ListedFile): ListedFile | undefined => {
  const beside = files.filter((file) => isGguf(file) && folderOf(file.path) === folderOf(model.path))
  const towers = beside.filter(isTower)
  const own = towers.filter(({ path }) => stem(path) === stem(model.path))
  const isAlone = beside.every((file) => isTower(file) || stem(file.path) === stem(model.path))
  // Repositories of one model name it `mmproj-F16.gguf`.
  const candidates = own.length > 0 || !isAlone ? own : towers.filter(({ path }) => stem(path) === "")
  return ["Q8_0", "F16", "BF16", "F32"]
    .flatMap((quantisation) => candidates.filter(({ path }) => namedQuantisation(path) === quantisation))
    .concat(candidates)[0]
}

interface Tower {
  readonly files: Readonly<Record<string, WeightFile>>
  readonly notes: ReadonlyArray<string>
  readonly projector?: string
}

const towerFiles = (repository: Repository, model: ListedFile): Effect.Effect<Tower, FoundError> =>
  Effect.gen(function* () {
    const file = towerOf(repository.files, model)
    if (file === undefined) return { files: {}, notes: [] }
    const { projector } = yield* repository.gguf(file)
    const known = adapterFacts["llama-gguf"]?.projectors ?? []
    if (projector === undefined || !known.includes(projector)) {
      const problem = `${nameOf(file.path)} has the type ${projector ?? "unnamed"}, which is not served (${known.join(", ")} are): the model is added without pictures`
      return { files: {}, notes: [problem] }
    }
    return { files: { mmproj: expectedFile(repository, file) }, notes: [], projector }
  })

const refusal = (source: string, architecture: string | undefined): NotUsable | undefined => {
  if (architecture === undefined)
    return new NotUsable({
      source,
      problem: "names no architecture; choose a GGUF file made by llama.cpp's converter",
    })
  if (textArchitectures.has(architecture) || embeddingArchitectures.has(architecture)) return undefined
  const what = otherArchitectures[architecture]
  const problem =
    what === undefined
      ? `has the architecture ${architecture}, which the built-in llama.cpp does not know; choose another model`
      : `has the architecture ${architecture}: ${what}`
  return new NotUsable({ source, problem })
}

const withTokens = (tokens: number | undefined): string =>
  tokens === undefined ? "" : `, trained on contexts of ${tokens} tokens`

const embeddingModel = (repository: Repository, file: ListedFile, facts: GgufFacts): FoundModel => {
  const contextTokens = Math.min(32_768, Math.max(8, facts.contextTokens ?? 2_048), 2_048)
  return {
    kind: "embedding",
    adapter: "llama-embedding",
    files: { weights: expectedFile(repository, file) },
    options: { contextTokens },
    summary: `${facts.architecture}, ${quantisationOf(facts.fileType) ?? "an unnamed quantisation"}${withTokens(facts.contextTokens)}`,
    comments: { "options.contextTokens": "Longest input in tokens. Longer ones are refused." },
    notes:
      facts.pooling === undefined || facts.pooling === 0
        ? ["the file names no pooling: add options.pooling (mean, cls or last) as the model's card says"]
        : [],
  }
}

/** A GGUF file as a catalog entry. */
export const ggufModel = (
  repository: Repository,
  file: ListedFile,
  { memoryBytes }: Choice,
): Effect.Effect<FoundModel, FoundError> =>
  Effect.gen(function* () {
    const source = repository.sourceOf(file.path)
    const facts = yield* repository.gguf(file)
    const refused = refusal(source, facts.architecture)
    if (refused !== undefined) return yield* refused
    if (facts.tensors === 0 || facts.type === "vocab")
      return yield* new NotUsable({ source, problem: "has a vocabulary and no weights; choose another file" })
    if (facts.type === "adapter")
      return yield* new NotUsable({
        source,
        problem: "is an adapter to another model, which cannot run alone",
      })
    if (facts.parts > 1 && !isPart(file))
      return yield* new NotUsable({ source, problem: `is one of ${facts.parts} parts under another name` })
    const pools = facts.pooling !== undefined && facts.pooling > 0
    if (pools || embeddingArchitectures.has(facts.architecture ?? ""))
      return embeddingModel(repository, file, facts)
    const tower = yield* towerFiles(repository, file)
    const weightBytes = (file.sizeBytes ?? 0) + (tower.files.mmproj?.sizeBytes ?? 0)
    const room = roomFor(facts, weightBytes, memoryBytes)
    const quantisation = quantisationOf(facts.fileType)
    const context =
      room.contextBytes === undefined
        ? "Sequences that are decoded side by side."
        : `Sequences that are decoded side by side. Their contexts take up to ${megabytes(room.contextBytes)} beside the weights: ` +
          `${room.slots} x ${room.contextTokens} tokens x ${facts.tokenBytes} bytes. Chosen for this machine.`
    return {
      kind: "text",
      adapter: "llama-gguf",
      files: { weights: expectedFile(repository, file), ...tower.files },
      options: { contextTokens: room.contextTokens, slots: room.slots },
      summary:
        `${facts.architecture}, ${quantisation ?? "an unnamed quantisation"}${withTokens(facts.contextTokens)}` +
        (tower.projector === undefined ? "" : `, takes pictures (${tower.projector})`),
      comments: {
        "options.contextTokens": "Tokens of one conversation, prompt and reply together.",
        "options.slots": context,
        ...(tower.projector === undefined ? {} : { "files.mmproj": "The tower that reads pictures." }),
      },
      notes: [
        ...tower.notes,
        ...(facts.hasChatTemplate
          ? []
          : ["the file has no chat template: use it with /v1/completions, chats may be misread"]),
      ],
    }
  })

/** The GGUF file that a repository's model is. Undefined if there is none. */
export const ggufOf = (
  repository: Repository,
  { file: named, memoryBytes }: Choice,
): Effect.Effect<ListedFile | undefined, NotUsable> => {
  const all = repository.files.filter(isGguf)
  const { source } = repository
  if (named !== undefined) {
    const found =
      all.find(({ path }) => path === named) ??
      all.find((file) => !isTower(file) && namedQuantisation(file.path) === named.toUpperCase())
    return found !== undefined || (all.length === 0 && !/gguf$/i.test(named))
      ? Effect.succeed(found)
      : Effect.fail(
          new NotUsable({
            source,
            problem: `has no ${named}; it has ${
              all
                .map(({ path }) => path)
                .slice(0, 12)
                .join(", ") || "no GGUF file"
            }`,
          }),
        )
  }
  const chosen = chooseGguf(repository.files, memoryBytes)
  if (chosen !== undefined || all.length === 0) return Effect.succeed(chosen)
  const isSplit = all.some(isPart)
  const problem = isSplit
    ? "has only models in several parts: pull them by hand, and name the first part as a file"
    : "has only towers for pictures (mmproj); name the repository of the text model"
  return Effect.fail(new NotUsable({ source, problem }))
}
