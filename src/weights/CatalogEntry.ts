// Checks of one catalog entry beyond its schema: adapter, kind, options, files, id and regions, which depend on one
// another. They work on the entry as written, so that one mistake does not hide the others.
import { stat } from "node:fs/promises"
import { dirname, isAbsolute, join } from "node:path"
import { Result, Schema } from "effect"
import { hasFakeEngines } from "#config/OtherVariables.ts"
import { hubScheme, parseHubFile } from "#domain/models/HubFile.ts"
import { ModelKind, reservedModelIds } from "#domain/models/ModelEntry.ts"
import { suggestion } from "#domain/models/NearestName.ts"
import { type AdapterFacts, adapterFacts } from "#engines/AdapterFacts.ts"
import { decodeStrictly, type Mistake } from "#store/files/SchemaMistakes.ts"

type Written = Readonly<Record<string, unknown>>

const isWritten = (value: unknown): value is Written =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isKind = Schema.is(ModelKind)

/** The entry's files as pairs of role and source. Pairs of another form are reported by the schema. */
const sourcesOf = (entry: Written): ReadonlyArray<readonly [role: string, source: string]> =>
  Object.entries(isWritten(entry.files) ? entry.files : {}).flatMap(([role, file]) =>
    isWritten(file) && typeof file.source === "string" ? [[role, file.source] as const] : [],
  )

/** The adapters that a catalog may name here. */
const adapterNames = (): ReadonlyArray<string> =>
  Object.keys(adapterFacts).filter((name) => !name.startsWith("fake") || hasFakeEngines())

const factsNamed = (adapter: unknown): AdapterFacts | undefined =>
  typeof adapter === "string" && adapterNames().includes(adapter) ? adapterFacts[adapter] : undefined

/** What is wrong with the adapter itself: it is none, is of another kind, or the files are those of another one. */
const adapterProblem = (entry: Written): string | undefined => {
  const { adapter, kind } = entry
  if (typeof adapter !== "string" || adapter === "") return undefined
  const facts = factsNamed(adapter)
  if (facts === undefined)
    return `${JSON.stringify(adapter)} is not an adapter${suggestion(adapter, adapterNames())}`
  if (!isKind(kind)) return undefined
  const ofKind = adapterNames().filter((name) => adapterFacts[name]?.kind === kind)
  const names = `adapters of ${kind} models are ${ofKind.join(", ")}`
  if (kind !== facts.kind) return `${adapter} runs ${facts.kind} models, and kind is "${kind}"; ${names}`
  const fits = (name: string): boolean =>
    roleMistakes({ ...entry, adapter: name }, adapterFacts[name]!).length === 0
  // Without files nothing says which adapter is meant; fake adapters need none.
  const meant = fits(adapter) || sourcesOf(entry).length === 0 ? undefined : ofKind.find(fits)
  return meant === undefined
    ? undefined
    : `${adapter} reads other files, these are those of ${meant}; ${names}`
}

/** The facts of the entry's adapter. Undefined if the adapter itself is wrong: what follows from that is not reported. */
const factsOf = (entry: Written): AdapterFacts | undefined =>
  adapterProblem(entry) === undefined ? factsNamed(entry.adapter) : undefined

const adapterMistakes = (entry: Written): ReadonlyArray<Mistake> => {
  const problem = adapterProblem(entry)
  return problem === undefined ? [] : [{ path: ["adapter"], problem }]
}

const optionMistakes = (
  entry: Written,
  { options, withdrawn = {} }: AdapterFacts,
): ReadonlyArray<Mistake> => {
  if (entry.options !== undefined && !isWritten(entry.options)) return []
  const decoded = decodeStrictly(options, entry.options ?? {})
  return Result.isSuccess(decoded)
    ? []
    : decoded.failure.map((mistake) => ({
        ...mistake,
        problem: withdrawn[String(mistake.path[0])] ?? mistake.problem,
        path: ["options", ...mistake.path],
      }))
}

/** External data of an ONNX graph: a file beside the graph that the graph itself names, so it has no role. */
const isGraphData = (adapter: unknown, source: string | undefined): boolean =>
  String(adapter).endsWith("-onnx") && /[._]data(?:_\d+)?$/.test(source ?? "")

const roleMistakes = (entry: Written, { files }: AdapterFacts): ReadonlyArray<Mistake> => {
  if (!isWritten(entry.files)) return []
  const sources = new Map(sourcesOf(entry))
  const roles = Object.keys(files)
  const unknown = Object.keys(entry.files)
    .filter((role) => !roles.includes(role) && !isGraphData(entry.adapter, sources.get(role)))
    .map((role) => ({
      path: ["files", role],
      atKey: true,
      problem: `is not a file of ${String(entry.adapter)}${suggestion(role, roles)}`,
    }))
  const missing = roles
    .filter(
      (role) => files[role] !== "optional" && entry.files !== undefined && !(role in Object(entry.files)),
    )
    .map((role) => ({
      path: ["files", role],
      problem: `is missing; ${String(entry.adapter)} needs ${roles.filter((one) => files[one] !== "optional").join(", ")}`,
    }))
  return [...unknown, ...missing]
}

const sourceMistakes = (entry: Written): ReadonlyArray<Mistake> =>
  sourcesOf(entry)
    .filter(([, source]) => source.startsWith(hubScheme) && parseHubFile(source) === undefined)
    .map(([role, source]) => ({
      path: ["files", role, "source"],
      problem: `${JSON.stringify(source.slice(0, 200))} is not hf:owner/repo@commit/file`,
    }))

/** The kind of model that each of these keys is for. */
const keysOfKind = {
  speech: "speech",
  transcription: "transcription",
  conversation: "conversation",
} as const

const kindMistakes = (entry: Written): ReadonlyArray<Mistake> =>
  Object.entries(keysOfKind)
    .filter(
      ([key, kind]) => entry[key] !== undefined && typeof entry.kind === "string" && entry.kind !== kind,
    )
    .map(([key, kind]) => ({
      path: [key],
      atKey: true,
      problem: `is for ${kind === "conversation" ? "entries of kind conversation" : `${kind} models`} only, and kind is ${JSON.stringify(entry.kind)}`,
    }))

const idMistakes = ({ id }: Written): ReadonlyArray<Mistake> =>
  typeof id === "string" && reservedModelIds.includes(id)
    ? [{ path: ["id"], problem: `"${id}" cannot be an id: /v1/models/${id} is another path of the API` }]
    : []

const regionMistakes = ({ regions }: Written, known: ReadonlyArray<string>): ReadonlyArray<Mistake> =>
  (Array.isArray(regions) ? regions : []).flatMap((code: unknown, index) =>
    typeof code !== "string" || code === "*" || known.includes(code)
      ? []
      : [
          {
            path: ["regions", index],
            problem: `${JSON.stringify(code)} is not a region${suggestion(code, known)}`,
          },
        ],
  )

export const entryMistakes = (
  entry: unknown,
  regions: ReadonlyArray<string> | undefined,
): ReadonlyArray<Mistake> => {
  if (!isWritten(entry)) return []
  const facts = factsOf(entry)
  return [
    ...idMistakes(entry),
    ...adapterMistakes(entry),
    ...kindMistakes(entry),
    ...sourceMistakes(entry),
    ...(facts === undefined ? [] : [...optionMistakes(entry, facts), ...roleMistakes(entry, facts)]),
    ...(regions === undefined ? [] : regionMistakes(entry, regions)),
  ]
}

const isFolder = async (path: string): Promise<boolean | undefined> => {
  try {
    return (await stat(path)).isDirectory()
  } catch {
    // A missing path is no mistake of the catalog: the node reports the model as unavailable.
    return undefined
  }
}

/** By entry: folders where a file is needed, and files where a folder is needed. */
export const folderMistakes = async (
  catalogPath: string,
  entries: ReadonlyArray<unknown>,
): Promise<ReadonlyArray<ReadonlyArray<Mistake>>> => {
  const all: Array<ReadonlyArray<Mistake>> = []
  for (const entry of entries) {
    const facts = isWritten(entry) ? factsOf(entry) : undefined
    const found: Array<Mistake> = []
    for (const [role, source] of facts === undefined || !isWritten(entry) ? [] : sourcesOf(entry)) {
      if (source.startsWith(hubScheme) || facts === undefined) continue
      const folder = await isFolder(isAbsolute(source) ? source : join(dirname(catalogPath), source))
      if (folder === undefined || folder === (facts.files[role] === "folder")) continue
      const problem = folder ? "is a folder; name the file in it" : "is a file; a folder is needed here"
      found.push({ path: ["files", role, "source"], problem: `${JSON.stringify(source)} ${problem}` })
    }
    all.push(found)
  }
  return all
}
