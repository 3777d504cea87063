// What a model's engine is told about the machine when it loads: a number of CPU threads from the catalog, or what to choose from, and
// what was measured after earlier loads. Called by Model; knows no process.

import type { Deployment } from "#domain/models/Deployment.ts"
import { placementOf } from "#domain/models/Placement.ts"
import type { CallCosts } from "#domain/threads/CallCosts.ts"
import { coreThreads, type MachineCores, threadCounts } from "#domain/threads/MachineCores.ts"
import type { ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"
import type { EngineSpec } from "#engines/protocol/Engine.ts"
import packageJson from "../../package.json" with { type: "json" }
import { processorName } from "../device/HostProcessor.ts"
import { type KeptResults, keyOf } from "../threads/KeptResults.ts"

/**
 * Smaller weights run on one thread, and nothing is measured: a step or a layer of them is over before a second thread
 * has woken up. The built-in demonstration models have 1 to 5 MB; their steps take 0.2 ms. Bytes.
 */
const smallWeights = 16 * 1024 * 1024

/** What was measured after earlier loads. */
export interface Kept {
  readonly threads: KeptResults<ThreadChoice>
  readonly costs: KeptResults<CallCosts>
}

interface ThreadTerms {
  readonly spec: Pick<EngineSpec, "costs" | "threads" | "trial">
  /** Where a choice of the engine is kept; undefined where it measures no threads. */
  readonly key: string | undefined
  /** Where durations of calls are kept; undefined for engines that do not measure them. */
  readonly costsKey: string | undefined
  /** Why the catalog's number is not used, in words for operators. */
  readonly problem: string | undefined
}

/** Whether second sessions would be of use: see SecondSession. */
export const wantsSecond = ({ entry, sizeBytes }: Deployment, machine: MachineCores): boolean =>
  entry.runtime.threads === "auto" &&
  adapterFacts[entry.adapter]?.threads?.measured === "machine" &&
  placementOf(entry) === "host" &&
  sizeBytes >= smallWeights &&
  coreThreads(machine) > 1

type MeasuredFacts = NonNullable<(typeof adapterFacts)[string]["threads"]>

const hostFacts = (machine: MachineCores, { library }: MeasuredFacts) => ({
  processor: processorName(),
  machine,
  library: packageJson.dependencies[library],
})

const weightFacts = ({ entry, files, sizeBytes, versions = {} }: Deployment) => ({
  sizeBytes,
  weights: Object.keys(files)
    .sort()
    .map((role) => {
      const version = versions[role]
      return [role, version?.sha256 ?? [version?.sizeBytes, version?.modifiedMs]]
    }),
  options: entry.options,
})

/** Everything that the choice of threads depends on. */
const threadsKey = (deployment: Deployment, machine: MachineCores, facts: MeasuredFacts): string => {
  const host = hostFacts(machine, facts)
  return keyOf(facts.measured === "machine" ? { host } : { host, ...weightFacts(deployment) })
}

/** Everything that the durations of native calls depend on; undefined for engines that do not measure them. */
const costsKeyOf = (deployment: Deployment, machine: MachineCores): string | undefined => {
  const facts = adapterFacts[deployment.entry.adapter]?.threads
  if (facts?.measured !== "weights") return undefined
  const { threads } = deployment.entry.runtime
  return keyOf({ host: hostFacts(machine, facts), ...weightFacts(deployment), threads })
}

/** `narrows`: whether an ONNX engine may have its weights in memory twice. */
export const threadTerms = (
  deployment: Deployment,
  machine: MachineCores,
  results: Kept,
  narrows = false,
): ThreadTerms => {
  const costsKey = costsKeyOf(deployment, machine)
  const costs = costsKey === undefined ? undefined : results.costs.find(costsKey)
  const { spec, ...terms } = threadsOnly(deployment, machine, results.threads, narrows)
  return { ...terms, costsKey, spec: costs === undefined ? spec : { ...spec, costs } }
}

const threadsOnly = (
  deployment: Deployment,
  machine: MachineCores,
  results: Kept["threads"],
  narrows: boolean,
): Omit<ThreadTerms, "costsKey"> => {
  const { entry, sizeBytes } = deployment
  const wanted = entry.runtime.threads
  const { hardwareThreads } = machine
  if (wanted !== "auto") {
    const problem =
      wanted > hardwareThreads
        ? `runtime.threads: ${wanted}, and this process may use ${hardwareThreads} CPU thread${hardwareThreads === 1 ? "" : "s"}; ${hardwareThreads} will be used`
        : undefined
    return { spec: { threads: Math.min(wanted, hardwareThreads) }, key: undefined, problem }
  }
  const facts = adapterFacts[entry.adapter]?.threads
  const cores = coreThreads(machine)
  const { gpu = "off" } = entry.options
  // What a GPU computes does not depend on them; what is left to the processor is not worth a measurement.
  const onHost = placementOf(entry) === "host" && gpu === "off"
  if (facts === undefined || !onHost || sizeBytes < smallWeights) {
    const threads = facts === undefined || sizeBytes < smallWeights ? 1 : cores
    return {
      spec: { threads, trial: { counts: [threads], otherwise: threads } },
      key: undefined,
      problem: undefined,
    }
  }
  const counts = threadCounts(machine)
  const key = threadsKey(deployment, machine, facts)
  const kept = results.find(key)
  const trial = {
    counts,
    otherwise: cores,
    ...(narrows ? { narrows } : {}),
    ...(kept === undefined ? {} : { kept: { ...kept, source: "kept" as const } }),
  }
  return {
    spec: { threads: counts.at(-1) ?? 1, trial },
    key: kept === undefined ? key : undefined,
    problem: undefined,
  }
}
