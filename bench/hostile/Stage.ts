// What the hostile suite measures with: a node without limits on rates, a key for the attacker and one for the honest clients,
// and readings of the node.
import { readFile, writeFile } from "node:fs/promises"
import { Effect, type Scope } from "effect"
import { childrenRunning } from "../../test/support/process/ChildProcesses.ts"
import { asked, askText } from "../support/Ask.ts"
import { type Child, ChildFailed, startChild } from "../support/Child.ts"
import type { Target } from "../support/Connection.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import { createKey } from "../support/Keys.ts"
import type { HonestCommands, HonestOrder } from "./honestMain.ts"
import { models } from "./Models.ts"

export interface Stage {
  readonly gateway: Gateway
  readonly attacker: Target
  readonly honest: Child<HonestCommands>
}

const noLimits = { EDGEWISE_ANONYMOUS_RATE: "0", EDGEWISE_AUTH_FAILURE_LIMIT: "0" }

/** A node that limits no requests limits no audio. So many are never sent. */
const audioLimits = { EDGEWISE_RATE_LIMIT: "1000000" }

/** Time until models have loaded and compilers are done, seconds. */
const defaultWarmUpSeconds = 4

export const startStage = (
  options: {
    readonly models?: ReadonlyArray<Readonly<Record<string, unknown>>>
    readonly others?: boolean
    readonly converses?: boolean
    /** No honest client sends anything. */
    readonly idle?: boolean
    readonly whenFull?: HonestOrder["whenFull"]
    readonly warmUpSeconds?: number
    /** Limits on requests without a credential and on wrong credentials; `off`, so that inputs reach handlers. */
    readonly limits?: "off" | "as delivered"
    readonly preload?: ReadonlyArray<URL>
    readonly profileDir?: string | undefined
    /** Of the gateway; absent: Node's default. */
    readonly heapMib?: number
  } = {},
): Effect.Effect<Stage, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const gateway = yield* startGateway({
      models: options.models ?? models,
      settings: options.limits === "as delivered" ? audioLimits : noLimits,
      preload: options.preload ?? [],
      profileDir: options.profileDir,
      ...(options.heapMib === undefined ? {} : { heapMib: options.heapMib }),
    })
    const { dataDir, target } = gateway
    const attacker = { ...target, key: yield* createKey(dataDir, "attackers", "read-write") }
    const honest = yield* startChild<HonestCommands>({
      name: "honest clients",
      entry: new URL("./honestMain.ts", import.meta.url),
    })
    yield* loaded(gateway)
    if (options.idle === true) return { gateway, attacker, honest }
    yield* honest.ask("start", {
      target,
      others: options.others ?? true,
      converses: options.converses ?? false,
      whenFull: options.whenFull ?? "fail",
    })
    yield* Effect.sleep((options.warmUpSeconds ?? defaultWarmUpSeconds) * 1000)
    yield* honest.ask("take")
    return { gateway, attacker, honest }
  })

const get = ({ target }: Gateway, path: string): Effect.Effect<string, ChildFailed> =>
  asked(() => askText(target, path, undefined, 10_000))

/** Whether the same process still answers /health with 200. */
export const isHealthy = (gateway: Gateway): Effect.Effect<boolean> =>
  gateway.child
    .ask("cpu")
    .pipe(
      Effect.andThen(get(gateway, "/health")),
      Effect.match({ onFailure: () => false, onSuccess: () => true }),
    )

/** Waits until every model answers; the bench's models load at the node's start. */
const loaded = (gateway: Gateway): Effect.Effect<void, ChildFailed> =>
  Effect.gen(function* () {
    for (let tries = 0; tries < 240; tries++) {
      const health = JSON.parse(yield* get(gateway, "/health")) as { readonly status: string }
      if (health.status === "healthy") return
      yield* Effect.sleep(250)
    }
    return yield* Effect.fail(
      new ChildFailed({ child: "edgewise serve", detail: "models do not load in a minute" }),
    )
  })

/** Engine processes that were started in place of ended ones, since the node's start. */
export const engineRestarts = (gateway: Gateway): Effect.Effect<number, ChildFailed> =>
  Effect.map(get(gateway, "/metrics"), (text) =>
    [...text.matchAll(/^edgewise_engine_restarts_total\S* (\d+)$/gm)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    ),
  )

/** Process ids of the node's decoders. */
export const decoderPids = (gateway: Gateway): ReadonlyArray<number> =>
  childrenRunning("decoderMain", gateway.child.pid)

/** Memory of a process that no other process shares with it through a mapped file (RssAnon), bytes; 0 where it has ended. */
export const ownBytes = async (pid: number): Promise<number> => {
  const text = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "")
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024
}

/** Resident memory of a process now and its peak since `forgetPeak`, bytes; 0 where it has ended or the system does not tell. */
export const resident = async (pid: number): Promise<{ readonly now: number; readonly peak: number }> => {
  const text = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "")
  const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024
  return { now: of("VmRSS"), peak: of("VmHWM") }
}

/** Sets a process's peak to what is resident now (proc(5)). */
export const forgetPeak = (pid: number): Promise<void> =>
  writeFile(`/proc/${pid}/clear_refs`, "5").catch(() => {})
