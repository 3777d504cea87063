// What a model's engine is told about CPU threads when it loads: a number from the catalog, or what to choose from.
// Called by Model; knows no process.

import type { Deployment } from "#domain/models/Deployment.ts"
import { placementOf } from "#domain/models/Placement.ts"
import { coreThreads, type MachineCores, threadCounts } from "#domain/threads/MachineCores.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"
import type { EngineSpec } from "#engines/protocol/Engine.ts"
import packageJson from "../../package.json" with { type: "json" }
import { processorName } from "../device/HostProcessor.ts"
import { keyOf, type ThreadResults } from "../threads/KeptThreads.ts"

/**
 * Smaller weights run on one thread, and nothing is measured: a step or a layer of them is over before a second thread
 * has woken up. The built-in demonstration models have 1 to 5 MB; their steps take 0.2 ms. Bytes.
 */
const smallWeights = 16 * 1024 * 1024

interface ThreadTerms {
  readonly spec: Pick<EngineSpec, "threads" | "trial">
  /** Where a result of the engine is kept; undefined where it measures nothing. */
  readonly key: string | undefined
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

/** Everything that the result depends on. */
const keyFor = (
  { entry, files, sizeBytes, versions = {} }: Deployment,
  machine: MachineCores,
  facts: NonNullable<(typeof adapterFacts)[string]["threads"]>,
): string => {
  const { library, measured } = facts
  const host = { processor: processorName(), machine, library: packageJson.dependencies[library] }
  if (measured === "machine") return keyOf({ host })
  const weights = Object.keys(files)
    .sort()
    .map((role) => {
      const version = versions[role]
      return [role, version?.sha256 ?? [version?.sizeBytes, version?.modifiedMs]]
    })
  return keyOf({ host, sizeBytes, weights, options: entry.options })
}

/** `narrows`: whether an ONNX engine may have its weights in memory twice. */
export const threadTerms = (
  deployment: Deployment,
  machine: MachineCores,
  results: ThreadResults,
  narrows = false,
): ThreadTerms => {
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
  const key = keyFor(deployment, machine, facts)
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
