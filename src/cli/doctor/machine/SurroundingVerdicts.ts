// Rates readings of the environment as ok, warning or failure, with advice. Pure.
import { Result } from "effect"
import { digits, shown } from "#harness/report/Format.ts"
import { type ChoiceFacts, preferredTransport, transportLine } from "#transport/server/TransportChoice.ts"
import type { Machine, Surrounding } from "../report/Document.ts"
import { bytesShown, counted } from "../report/Words.ts"
import { disturbance } from "./MachineFacts.ts"

export const ok = (name: string, detail: string): Surrounding => ({
  name,
  verdict: "ok",
  detail,
  advice: null,
})
const warning = (name: string, detail: string, advice: string): Surrounding => ({
  name,
  verdict: "warning",
  detail,
  advice,
})
export const failure = (name: string, detail: string, advice: string): Surrounding => ({
  name,
  verdict: "failure",
  detail,
  advice,
})

/** The version that `npm ci` installs and that the tests run on. */
const nodeMajor = 22

export const nodeVerdict = (version: string): Surrounding => {
  const major = Number(/^v(\d+)\./.exec(version)?.[1])
  return major === nodeMajor
    ? ok("node", version)
    : warning(
        "node",
        `${version}; edgewise is made for Node ${nodeMajor}`,
        "start it with `npm start` or `npm run -s edgewise`, which use the Node of the packages",
      )
}

/** `problem` is why the module does not load. Undefined if it does. */
export const moduleVerdict = (name: string, detail: string, problem: string | undefined): Surrounding =>
  problem === undefined
    ? ok(name, detail)
    : failure(
        name,
        problem,
        "run `npm ci` on this machine; if the problem remains, the package has no binary for this processor or system",
      )

/** uWebSockets.js, and which library the listeners of these settings have. It may be missing where that is the other one. */
export const transportVerdict = (facts: ChoiceFacts, uws: Surrounding): Surrounding => {
  const preferred = preferredTransport(facts)
  if (preferred.name === "node" || uws.verdict === "ok")
    return ok(uws.name, `${uws.detail}; listeners have ${transportLine(preferred)}`)
  if (facts.transport === "uws")
    return { ...uws, advice: "set EDGEWISE_TRANSPORT=auto: Node's own server serves instead" }
  const slower =
    "nothing has to be done; a request takes more CPU time than with uWebSockets.js (docs/transports.md)"
  return warning(uws.name, `${uws.detail}; Node's own server serves instead`, slower)
}

/** What decodes audio files, or what to install. */
export const decoderVerdict = (
  found: Result.Result<{ readonly line: string }, { readonly detail: string }>,
): Surrounding =>
  Result.match(found, {
    onFailure: ({ detail }) =>
      failure(
        "decoder",
        detail,
        "without a decoder, transcription of files and reference clips of voices are refused",
      ),
    onSuccess: ({ line }) => ok("decoder", line),
  })

/** @param installed kinds of llama.cpp's libraries for GPUs */
export const gpuLibrariesVerdict = (installed: ReadonlyArray<string>, hasNvidia: boolean): Surrounding => {
  const detail = installed.length === 0 ? "none installed" : `installed: ${installed.join(", ")}`
  return hasNvidia && installed.length === 0
    ? warning(
        "gpu libraries",
        `${detail}; this machine has an NVIDIA GPU`,
        "`edgewise setup cuda`, and `gpu` in the catalog entry",
      )
    : ok("gpu libraries", detail)
}

export const confinementVerdict = (line: string, wanted: boolean): Surrounding =>
  !wanted
    ? warning(
        "confinement",
        "switched off",
        "set EDGEWISE_CONFINE=true; false is only for finding out why an engine does not load",
      )
    : line.includes("not in force")
      ? warning("confinement", line, "docs/security.md says what each mechanism needs")
      : ok("confinement", line)

const gibibyte = 1024 ** 3

export const memoryVerdict = (availableBytes: number, neededBytes: number): Surrounding => {
  const detail = `${bytesShown(availableBytes)} available; the models of a start have weights of ${bytesShown(neededBytes)}`
  return availableBytes < neededBytes + gibibyte / 2
    ? warning("memory", detail, "close other programs, or load fewer models at the start (`runtime.load`)")
    : ok("memory", detail)
}

/** Problems of the data directory come as one line, as in `edgewise check`. */
export const diskVerdict = (freeBytes: number | undefined, problem: string | undefined): Surrounding => {
  if (problem !== undefined)
    return failure("data directory", problem, "name another one with EDGEWISE_DATA_DIR")
  if (freeBytes === undefined) return ok("data directory", "can be written; free space is unknown")
  const detail = `${bytesShown(freeBytes)} free`
  return freeBytes < gibibyte
    ? warning(
        "data directory",
        detail,
        "free some space: uploads, receipts and pulled weights are kept there",
      )
    : ok("data directory", detail)
}

/** Open files other than connections: database, logs, engines' pipes. */
const otherFiles = 256

/** `limit` is undefined if there is none or the system does not report it. */
export const openFilesVerdict = (limit: number | undefined, connections: number): Surrounding => {
  if (limit === undefined) return ok("open files", "no limit is known")
  return limit < connections + otherFiles
    ? warning(
        "open files",
        `at most ${limit}, fewer than the ${connections} connections of a listener need`,
        "raise the hard limit (`ulimit -Hn`, LimitNOFILE of systemd) or lower EDGEWISE_MAX_CONNECTIONS",
      )
    : ok("open files", `at most ${limit}`)
}

export const coresVerdict = ({
  cores,
  hardware_threads,
  processors,
  quota_cores,
}: Pick<Machine, "cores" | "hardware_threads" | "processors" | "quota_cores">): Surrounding => {
  const detail = `${counted(cores, "core")}, ${counted(hardware_threads, "hardware thread")}`
  if (quota_cores !== null && quota_cores < hardware_threads) {
    return warning(
      "processor",
      `${detail}; the container allows ${digits(quota_cores)} cores`,
      "raise the container's CPU limit, or expect stalls when it is used up",
    )
  }
  return hardware_threads < processors
    ? warning(
        "processor",
        `${detail} of ${processors} may be used`,
        "widen the CPU affinity (taskset, cpuset)",
      )
    : ok("processor", detail)
}

/** Rates the median duration of a timer of 1 ms. */
export const timersVerdict = (medianMs: number): Surrounding => {
  const detail = `a timer of 1 ms takes ${shown(medianMs, "ms")}`
  return medianMs > 5
    ? warning(
        "timers",
        detail,
        "streams are paced less evenly; check for a busy machine or coarse kernel timers",
      )
    : ok("timers", detail)
}

export const loopbackVerdict = (medianMs: number | undefined): Surrounding => {
  if (medianMs === undefined) {
    return failure(
      "loopback",
      "no connection over 127.0.0.1",
      "check the firewall and the loopback interface",
    )
  }
  const detail = `a round trip over 127.0.0.1 takes ${shown(medianMs, "ms")}`
  return medianMs > 2
    ? warning("loopback", detail, "check for a busy machine or a filter on loopback")
    : ok("loopback", detail)
}

export const clockVerdict = (problem: string | undefined): Surrounding =>
  problem === undefined
    ? ok("clock", "plausible")
    : failure("clock", problem, "set the system clock; tokens and receipts carry its time")

/** `node` is the address of a node that answers at the address of `serve`. */
export const quietVerdict = (machine: Machine, node: string | undefined): Surrounding => {
  const other = node === undefined ? undefined : `something answers at ${node}, perhaps a running node`
  const reasons = [disturbance(machine), other].filter((reason) => reason !== undefined)
  return reasons.length === 0
    ? ok("other work", `load ${machine.load_1m}, ${machine.busy_percent ?? "?"} % in use`)
    : warning("other work", reasons.join("; "), "stop other work and run doctor again for figures that hold")
}
