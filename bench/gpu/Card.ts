// The NVIDIA card of this machine as `nvidia-smi` describes it, read by the bench itself and not by the node that it measures.
import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { promisify } from "node:util"
import { Effect } from "effect"
import { ChildFailed } from "../support/Child.ts"

export interface Card {
  readonly index: number
  readonly uuid: string
  readonly name: string
  readonly driver: string
  readonly totalMib: number
}

const ask = async (query: string): Promise<ReadonlyArray<ReadonlyArray<string>>> => {
  const { stdout } = await promisify(execFile)("nvidia-smi", [query, "--format=csv,noheader,nounits"])
  return stdout
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => line.split(",").map((field) => field.trim()))
}

const columns = "--query-gpu=index,uuid,name,driver_version,memory.total"

/** All cards; empty if `nvidia-smi` is missing or fails. */
export const cards: Effect.Effect<ReadonlyArray<Card>> = Effect.promise(async () => {
  const rows = await ask(columns).catch(() => [])
  return rows.map(([index, uuid = "", name = "", driver = "", total]) => ({
    index: Number(index),
    uuid,
    name,
    driver,
    totalMib: Number(total),
  }))
})

/** What the driver counts as used on the first card, MiB. NaN if it does not say. */
export const usedMib: Effect.Effect<number> = Effect.promise(async () => {
  const [row] = await ask("--query-gpu=memory.used").catch(() => [])
  return Number(row?.[0] ?? Number.NaN)
})

/** What the driver counts for a process, MiB. NaN if it does not list the process or does not say. */
export const usedByMib = (pid: number): Effect.Effect<number> =>
  Effect.promise(async () => {
    const rows = await ask("--query-compute-apps=pid,used_gpu_memory").catch(() => [])
    return Number(rows.find(([each]) => Number(each) === pid)?.[1] ?? Number.NaN)
  })

export const described = ({ driver, name, totalMib }: Card): string =>
  `${name}, ${totalMib} MiB, driver ${driver}`

/** The first card, which the sections use. */
export const theCard: Effect.Effect<Card | undefined> = Effect.map(cards, ([first]) => first)

/** Waits until the driver counts at most `mib` as used; it notices the end of a process late. Milliseconds, NaN after 30 s. */
export const untilUsedAtMost = (mib: number): Effect.Effect<number> =>
  Effect.gen(function* () {
    const startedMs = performance.now()
    while (performance.now() - startedMs < 30_000) {
      if ((yield* usedMib) <= mib) return performance.now() - startedMs
      yield* Effect.sleep(50)
    }
    return Number.NaN
  })

/** Where the command looks programs up. */
export const pathOf = (program: string): string | undefined =>
  (process.env.PATH ?? "")
    .split(":")
    .map((folder) => `${folder}/${program}`)
    .find((path) => existsSync(path))

export const failed = (detail: string): ChildFailed => new ChildFailed({ child: "bench gpu", detail })
