// What serve warns of at the start and check reports: a system clock that cannot be right (session tokens, receipts and signing
// keys carry its time), a memory budget in which no model fits, and a machine with one CPU thread.
import { Clock, Effect } from "effect"
import { readCores } from "#actors/threads/ReadCores.ts"
import { type Config, settings } from "#config/Config.ts"
import { type MachineCores, mostThreads } from "#domain/threads/MachineCores.ts"
import { signingKeysIn } from "#store/signing/SigningKeyFile.ts"

/** No edgewise is older: a clock that is behind it is wrong, as on machines that start without one. 2026-01-01 UTC. */
const oldestMs = Date.UTC(2026, 0, 1)

/** Keys of another process may be this much younger than this clock: clocks differ. */
const toleranceMs = 60_000

const shown = (ms: number): string =>
  Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString().replace(/\.\d+Z$/, "Z") : String(ms)

/** What speaks against the clock, or undefined. Reads the signing keys of the data directory where there are some. */
export const clockProblem = ({ dataDir, databaseUrl }: Config): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const nowMs = yield* Clock.currentTimeMillis
    if (nowMs < oldestMs)
      return `the system clock is wrong: it says ${shown(nowMs)}, before edgewise was made`
    if (databaseUrl !== "") return undefined
    const holder = signingKeysIn(dataDir)
    // A file that cannot be read is reported where the keys are opened.
    const keys = yield* Effect.orElseSucceed(holder.read, () => [])
    const youngestMs = Math.max(0, ...keys.map(({ createdAtMs }) => createdAtMs))
    return youngestMs > nowMs + toleranceMs
      ? `the system clock was set back: it says ${shown(nowMs)}, and a key in ${holder.place} was made at ${shown(youngestMs)}`
      : undefined
  })

const megabyte = 1024 * 1024

/** What speaks against the memory setting, or undefined: a budget that the node's own process fills already. */
export const memoryProblem = ({ memoryMb }: Config): string | undefined => {
  const ownMb = Math.round(process.memoryUsage.rss() / megabyte)
  if (memoryMb === 0 || memoryMb > ownMb) return undefined
  return `${settings.memoryMb.variable}: ${memoryMb} MB is less than this process has without any model; no model can be loaded`
}

/** What there is to say of a machine or container with one CPU thread, or undefined. Everything works on it. */
export const processorProblem = (machine: MachineCores): string | undefined => {
  if (mostThreads(machine) > 1) return undefined
  const { hardwareThreads, quota } = machine
  const why =
    hardwareThreads === 1
      ? "this process may use one CPU thread"
      : `the CPU limit of this container is ${(quota ?? 1).toFixed(2)} processors`
  return `${why}: every model runs on one thread, and models that work at the same time slow each other down`
}

/** All of them, in words for the log. */
export const startWarnings = (config: Config): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(clockProblem(config), (clock) =>
    [clock, memoryProblem(config), processorProblem(readCores())].filter((problem) => problem !== undefined),
  )
