// Warnings at the start, which `check` reports too: a system clock that cannot be right (session tokens, receipts and
// signing keys carry its time), a memory budget in which no model fits, and a machine with one CPU thread.
import { Clock, Effect } from "effect"
import { readCores } from "#actors/threads/ReadCores.ts"
import { type Config, settings } from "#config/Settings.ts"
import { type MachineCores, mostThreads } from "#domain/threads/MachineCores.ts"
import { signingKeysIn } from "#store/signing/SigningKeyFile.ts"

/**
 * Before the first version of edgewise: a clock that is earlier is wrong, as on machines without a battery-backed
 * clock. 2026-01-01 UTC.
 */
const oldestMs = Date.UTC(2026, 0, 1)

/** Keys of another process may be this much newer than this clock, because clocks differ. */
const toleranceMs = 60_000

const shown = (ms: number): string =>
  Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString().replace(/\.\d+Z$/, "Z") : String(ms)

/** What is wrong with the clock, if anything. Reads the signing keys of the data directory, if there are some. */
export const clockProblem = ({ dataDir, databaseUrl }: Config): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const nowMs = yield* Clock.currentTimeMillis
    if (nowMs < oldestMs)
      return `the system clock is wrong: it says ${shown(nowMs)}, before edgewise was made`
    if (databaseUrl !== "") return undefined
    const holder = signingKeysIn(dataDir)
    // An unreadable file is reported when the keys are opened.
    const keys = yield* Effect.orElseSucceed(holder.read, () => [])
    const youngestMs = Math.max(0, ...keys.map(({ createdAtMs }) => createdAtMs))
    return youngestMs > nowMs + toleranceMs
      ? `the system clock was set back: it says ${shown(nowMs)}, and a key in ${holder.place} was made at ${shown(youngestMs)}`
      : undefined
  })

const megabyte = 1024 * 1024

/** What is wrong with the memory setting, if anything: the node's own process already uses the whole budget. */
export const memoryProblem = ({ memoryMb }: Config): string | undefined => {
  const ownMb = Math.round(process.memoryUsage.rss() / megabyte)
  if (memoryMb === 0 || memoryMb > ownMb) return undefined
  return `${settings.memoryMb.variable}: ${memoryMb} MB is less than this process has without any model; no model can be loaded`
}

/** A warning for a machine or container with one CPU thread. Everything works on it. */
const processorProblem = (machine: MachineCores): string | undefined => {
  if (mostThreads(machine) > 1) return undefined
  const { hardwareThreads, quota } = machine
  const why =
    hardwareThreads === 1
      ? "this process may use one CPU thread"
      : `the CPU limit of this container is ${(quota ?? 1).toFixed(2)} processors`
  return `${why}: every model runs on one thread, and models that work at the same time slow each other down`
}

/** All warnings as sentences for the log. */
export const startWarnings = (config: Config): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(clockProblem(config), (clock) =>
    [clock, memoryProblem(config), processorProblem(readCores())].filter((problem) => problem !== undefined),
  )
