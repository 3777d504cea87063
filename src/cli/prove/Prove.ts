// The course of `edgewise prove`: pulls published weights as `edgewise models add` would, without writing a catalog entry; checks the
// files with the product's own readers; then runs the models on doctor's private node, checks their answers there and measures them.
import { Clock, Effect, Result } from "effect"
import { privateBytesOf } from "#actors/device/ResidentMemory.ts"
import { claimOf, processBytes } from "#actors/model/MemoryClaim.ts"
import type { HubSettings } from "#config/OtherVariables.ts"
import type { Config } from "#config/Settings.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import { parseHubFile } from "#domain/models/HubFile.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import type { Clip } from "#harness/data/Clip.ts"
import { probeHub } from "#weights/found/HubFolder.ts"
import { locate } from "#weights/ModelFiles.ts"
import type { PulledFile } from "#weights/PullModel.ts"
import { weightsDir } from "#weights/Weights.ts"
import { type LoadClient, loadClient } from "../doctor/load/LoadClient.ts"
import { machineFacts } from "../doctor/machine/MachineFacts.ts"
import { loaded, measureModel, oneLine, unloaded } from "../doctor/measure/MeasureModel.ts"
import { type PrivateNode, privateNode } from "../doctor/measure/PrivateNode.ts"
import type { Machine, ModelReport } from "../doctor/report/Document.ts"
import { counted } from "../doctor/report/Words.ts"
import { contextBytesOf } from "../models/CheckModels.ts"
import { decodedEntry, licenceOf, planned, requireAccepted } from "../models/PlannedModel.ts"
import { hubHere, pullEntry, pullSettingsOf } from "../models/PullHere.ts"
import { localFailure } from "../shared/NodeClient.ts"
import type { ProgressLine } from "../shared/ProgressLine.ts"
import { commit, version } from "../shared/Version.ts"
import { anonymous, type ProofDocument, type ProvenModel, type Row, row, schemaName } from "./Document.ts"
import { fileRows, sumsRow } from "./FileChecks.ts"
import { answerRows, recordingsRow, speechRows, transcriptRow } from "./NodeChecks.ts"
import type { Reference } from "./Reference.ts"

interface Asked {
  readonly config: Config
  /** Presets, or anything else that `models add` takes. */
  readonly sources: ReadonlyArray<string>
  readonly references: Readonly<Record<string, Reference>>
  readonly recordings: ReadonlyArray<Clip>
  /** Time for the figures of each model; 0 leaves them out. */
  readonly seconds: number
  /** Whether licences that restrict the use of a model are accepted. */
  readonly accept: boolean
  readonly progress: ProgressLine
}

/** One model whose files are here. */
interface Subject {
  readonly name: string
  readonly source: string
  readonly licence: string | null
  readonly reference: Reference
  readonly deployment: Deployment
  readonly files: ReadonlyArray<PulledFile>
}

const unreached = (hub: HubSettings, problem: string) =>
  localFailure(
    `${new URL(hub.endpoint).host} cannot be reached (${problem}): edgewise prove needs a network, or HF_ENDPOINT of a hub that answers`,
  )

/** A model that got no further: its only row says why. */
const stopped = (name: string, problem: string): ProvenModel => ({
  name,
  source: "",
  licence: null,
  adapter: null,
  files: [],
  rows: [row("files", "fail", oneLine(problem))],
  figures: null,
})

const isRemote = (sources: ReadonlyArray<string>): boolean => sources.some((source) => !/^[./~]/.test(source))

/** The model's files in the data directory, as its entry would name them. */
const fetched = ({ accept, config, references }: Asked, name: string) =>
  Effect.gen(function* () {
    const { entry, source } = yield* planned(config, {
      id: undefined,
      aliases: [],
      file: undefined,
      source: name,
    })
    yield* requireAccepted(source, accept)
    const decoded = yield* decodedEntry(entry)
    const settings = yield* pullSettingsOf(config.dataDir)
    const files = yield* pullEntry(config.catalog, decoded, settings)
    const deployment = yield* locate(config.catalog, decoded, weightsDir(config.dataDir))
    const revision = files.map((file) => parseHubFile(file.source)?.revision).find((one) => one !== undefined)
    const { preset, repository } = source
    const known = references[name] ?? (preset === undefined ? undefined : references[preset.name])
    const sums = preset?.sums && {
      from: "the hub's own declarations, in several public records",
      files: preset.sums,
    }
    return {
      name: preset?.name ?? entry.id,
      source: revision === undefined ? "local" : `${repository.source.replace(/^hf:/, "")}@${revision}`,
      licence: licenceOf(source) ?? null,
      reference: { ...(sums === undefined ? {} : { sums }), ...known },
      deployment,
      files,
    } satisfies Subject
  })

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1024 ** 2)} MB`

/**
 * The memory of the process against what the node claims before it loads the model, and, of a text model, what full contexts take on
 * top. llama.cpp maps its weights; other engines have them in memory of their own. Mapped code of Node is shared by all processes.
 */
const memoryRow = ({ deployment }: Subject, own: number | null) =>
  Effect.map(contextBytesOf(deployment), (contexts = 0) => {
    const { cacheBytes = 0, processBytes: ofProcess, weightBytes } = claimOf(deployment, processBytes)
    const claimed = weightBytes + ofProcess + cacheBytes + contexts
    const what = `${megabytes(claimed)} claimed${contexts === 0 ? "" : " with full contexts"}`
    if (own === null) return row("memory", "none", `${what}; the process was not measured`)
    const held = own + (deployment.entry.kind === "text" ? weightBytes : 0)
    const reference = "the catalog's claim: weights, process and caches, as `models check` prints them"
    return held <= claimed
      ? row("memory", "pass", `${megabytes(held)} of ${what}`, { reference })
      : row("memory", "fail", `${megabytes(held)} held`, { expected: `at most ${what}`, reference })
  })

/** Of the engine's process, after everything that it did. */
const privateBytesNow = ({ registry }: PrivateNode, id: string): number | null => {
  const pid = registry.find(id)?.host?.gauges().pid
  return pid === undefined ? null : privateBytesOf(pid)
}

const speedRow = ({ kind, reason, speech, text, transcription }: ModelReport): Row => {
  const rtf = speech?.real_time_factor ?? transcription?.real_time_factor ?? null
  const rate = text?.levels[0]?.reply_tokens_per_second ?? null
  if (kind === "text" && rate !== null)
    return row("speed", "none", `${rate} reply tokens a second, one stream`)
  if (rtf !== null) return row("speed", "none", `real-time factor ${rtf}`)
  return row("speed", "none", reason ?? "not measured")
}

interface Stage {
  readonly asked: Asked
  readonly hub: HubSettings
  readonly node: PrivateNode
  readonly client: LoadClient
  /** A model that has transcribed the public recording. */
  readonly listener: string | undefined
}

const answerChecks = (
  { asked, hub, listener, node: { target } }: Stage,
  { deployment, reference }: Subject,
) => {
  const { entry } = deployment
  switch (entry.kind) {
    case "transcription":
      return Effect.gen(function* () {
        const rows = [yield* transcriptRow(target, entry.id, hub, reference.recording)]
        if (asked.recordings.length > 0) rows.push(yield* recordingsRow(target, entry.id, asked.recordings))
        return rows
      })
    case "text":
      return answerRows(target, entry.id, reference.questions)
    case "speech":
      return speechRows(target, entry, listener)
    case "embedding":
    case "detection":
      return Effect.succeed([row("answers", "none", `${entry.kind} models are loaded and measured only`)])
  }
}

/** Longest load. */
const loadMs = 600_000

const proven = (stage: Stage, subject: Subject): Effect.Effect<ProvenModel> =>
  Effect.gen(function* () {
    const { asked, client, node } = stage
    const { deployment, files, licence, name, reference, source } = subject
    const { entry } = deployment
    const kept = files.flatMap((file) => {
      const path = parseHubFile(file.source)?.path
      return path === undefined ? [] : [{ path, size_bytes: file.sizeBytes, sha256: file.sha256 }]
    })
    const rows: Array<Row> = []
    if (kept.length > 0)
      rows.push(row("files", "pass", `${counted(kept.length, "file")} with the sums that the hub declares`))
    rows.push(...sumsRow(kept, reference))
    const load = yield* Effect.result(loaded(node, entry, loadMs))
    const about = { name, source, licence, adapter: entry.adapter, files: kept }
    if (Result.isFailure(load)) {
      rows.push(row("load", "fail", load.failure.problem))
      return { ...about, rows, figures: null }
    }
    rows.push(row("load", "pass", load.success.facts.summary))
    rows.push(...(yield* fileRows(deployment, reference)))
    rows.push(...(yield* answerChecks(stage, subject)))
    const endMs = (yield* monotonicMs) + asked.seconds * 1000
    const figures =
      asked.seconds === 0 ? null : yield* measureModel({ node, client, deployment, left: 1, endMs })
    rows.push(yield* memoryRow(subject, privateBytesNow(node, entry.id)))
    if (figures !== null) rows.push(speedRow(figures))
    // What transcribes is used once more, by the models that speak.
    if (entry.kind !== "transcription") yield* unloaded(node, entry.id)
    return { ...about, rows, figures }
  })

/** Transcription first: what speaks is transcribed by it. */
const order = { transcription: 0, speech: 1, text: 2, embedding: 3, detection: 4 } as const

const machineOf = ({
  busy_percent,
  cores,
  cpu,
  memory_bytes,
  node,
  system,
}: Machine): ProofDocument["machine"] => ({
  cpu,
  cores,
  memory_bytes,
  // Without the kernel's release, which may name its builder.
  system: system.replace(/ \S+ /, " "),
  node,
  busy_percent,
})

const passes = ({ rows }: ProvenModel): boolean => rows.every(({ verdict }) => verdict !== "fail")

/** Everything that it starts ends with the scope. */
export const prove = (asked: Asked) =>
  Effect.gen(function* () {
    const { config, progress, sources } = asked
    const hub = yield* hubHere
    if (isRemote(sources)) yield* Effect.mapError(probeHub(hub), ({ problem }) => unreached(hub, problem))
    progress.show("the machine", undefined)
    const machine = yield* machineFacts
    const subjects: Array<Subject> = []
    const models = new Map<string, ProvenModel>()
    for (const name of sources) {
      progress.show(name, undefined)
      const result = yield* Effect.result(fetched(asked, name))
      if (Result.isFailure(result)) {
        models.set(name, stopped(name, result.failure.message))
        continue
      }
      const { problem } = result.success.deployment
      if (problem === undefined) subjects.push(result.success)
      else
        models.set(result.success.name, {
          ...stopped(result.success.name, problem),
          source: result.success.source,
        })
    }
    if (subjects.length > 0) {
      const node = yield* privateNode(
        config,
        subjects.map(({ deployment }) => deployment),
      )
      const client = yield* loadClient(node.target)
      let listener: string | undefined
      const sorted = subjects.toSorted(
        (a, b) => order[a.deployment.entry.kind] - order[b.deployment.entry.kind],
      )
      for (const subject of sorted) {
        progress.show(subject.name, models.size / sources.length)
        const model = yield* proven({ asked, hub, node, client, listener }, subject)
        models.set(subject.name, model)
        const isRight = model.rows.some(({ check, verdict }) => check === "transcript" && verdict === "pass")
        if (isRight) listener ??= subject.deployment.entry.id
      }
    }
    const all = [...models.values()]
    return anonymous({
      schema: schemaName,
      version,
      commit: commit(),
      date: new Date(yield* Clock.currentTimeMillis).toISOString().slice(0, 10),
      ok: all.every(passes),
      hub: new URL(hub.endpoint).host === "huggingface.co" ? "huggingface.co" : "another",
      machine: machineOf(machine),
      models: all,
    } satisfies ProofDocument)
  })
