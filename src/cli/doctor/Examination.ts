// The course of `edgewise doctor`: machine, environment checks, then each model of the catalog on a private node,
// within the given time. Models that a node loads at its start stay loaded until the end, as on a real node; others are
// unloaded again.
import { Clock, Effect } from "effect"
import type { Config } from "#config/Settings.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { rounded } from "#harness/report/Figure.ts"
import type { ProgressLine } from "../shared/ProgressLine.ts"
import { version } from "../shared/Version.ts"
import { loadClient } from "./load/LoadClient.ts"
import { machineFacts } from "./machine/MachineFacts.ts"
import { surroundings } from "./machine/Surroundings.ts"
import { emptyReport, measureModel, unloaded } from "./measure/MeasureModel.ts"
import { groupsOf } from "./measure/Plan.ts"
import { type PrivateNode, privateNode } from "./measure/PrivateNode.ts"
import { type Document, type Machine, type Memory, type ModelReport, schemaName } from "./report/Document.ts"
import { limitsOf } from "./report/Limits.ts"

interface Asked {
  readonly config: Config
  readonly deployed: ReadonlyArray<Deployment>
  /** Time limit of the models' measurements. The checks before take some seconds more. */
  readonly seconds: number
  readonly progress: ProgressLine
}

const memoryOf = ({ device }: PrivateNode): Memory => {
  const { budgetBytes, claimedBytes } = device.host()
  const nodeBytes = process.memoryUsage.rss()
  return {
    budget_bytes: budgetBytes,
    node_bytes: nodeBytes,
    models_bytes: claimedBytes,
    left_bytes: Math.max(0, budgetBytes - nodeBytes - claimedBytes),
  }
}

/** Models that stay loaded come first, so that the others are measured beside them, as on a node that has started. */
const inOrder = (deployed: ReadonlyArray<Deployment>) =>
  groupsOf(deployed).toSorted(
    (a, b) =>
      Number(b.measured.entry.runtime.load === "start") - Number(a.measured.entry.runtime.load === "start"),
  )

const examineModels = Effect.fnUntraced(function* (
  { config, deployed, progress }: Asked,
  machine: Machine,
  endMs: number,
) {
  const node = yield* privateNode(config, deployed)
  const client = yield* loadClient(node.target)
  const groups = inOrder(deployed)
  const reports: Array<ModelReport> = []
  for (const [at, { measured, same }] of groups.entries()) {
    const { id, runtime } = measured.entry
    progress.show(id, at / groups.length)
    const asked = { node, client, deployment: measured, left: groups.length - at, endMs }
    const report = yield* measureModel(asked)
    if (runtime.load !== "start") yield* unloaded(node, id)
    reports.push({ ...report, limits: limitsOf(machine, report) })
    for (const other of deployed.filter(({ entry }) => same.includes(entry.id)))
      reports.push(emptyReport(other, { status: "same", same_as: id }))
  }
  return { reports, memory: memoryOf(node) }
})

/** Runs the examination. The node, its engines, the load client and the temporary folder end with the scope. */
export const examine = (asked: Asked) =>
  Effect.gen(function* () {
    const { config, deployed, progress, seconds } = asked
    const beganMs = yield* monotonicMs
    const startedAt = new Date(yield* Clock.currentTimeMillis).toISOString()
    progress.show("the machine", undefined)
    const machine = yield* machineFacts
    const around = yield* surroundings(config, machine, deployed)
    const endMs = (yield* monotonicMs) + seconds * 1000
    const { memory, reports } = yield* Effect.scoped(examineModels(asked, machine, endMs))
    return {
      schema: schemaName,
      version,
      started_at: startedAt,
      took_seconds: rounded(((yield* monotonicMs) - beganMs) / 1000),
      seconds,
      ok: reports.every(({ status }) => status !== "failed" && status !== "skipped"),
      machine,
      surroundings: around,
      memory,
      models: reports,
    } satisfies Document
  })
