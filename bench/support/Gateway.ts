// Starts a node like its users do: `edgewise serve` in a process of its own with a data directory of its own.
// Closing the scope stops it and removes the directory.
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, type Scope } from "effect"
import { type Child, type ChildFailed, startChild } from "./Child.ts"
import type { Target } from "./Connection.ts"
import { engineCpuUs } from "./EngineCpu.ts"
import type { ProbeCommands } from "./Probe.ts"

export interface Gateway {
  readonly child: Child<ProbeCommands>
  readonly target: Target
  readonly dataDir: string
  /** CPU time of its engine processes so far, microseconds; NaN if the system does not provide it. */
  readonly engineCpuUs: Effect.Effect<number>
}

export interface GatewayOptions {
  /** Models as in a catalog file. */
  readonly models: ReadonlyArray<Readonly<Record<string, unknown>>>
  /** Where a CPU profile of the gateway process is written when it stops. */
  readonly profileDir?: string | undefined
  /** Settings besides those that every bench has. */
  readonly settings?: Readonly<Record<`EDGEWISE_${string}`, string>>
  /** Most of its heap, MiB; absent: Node's default. */
  readonly heapMib?: number
  /** Modules that are loaded before the node's own. */
  readonly preload?: ReadonlyArray<URL>
  /** A key of its store. Absent: the development key, which a node on a shared database does not have. */
  readonly key?: string
  /** A folder whose programs are found before those of PATH. */
  readonly programs?: string | undefined
}

/** Not bin/edgewise.js, a parent that could start a crashed gateway again: a bench counts a crash as one. */
const main = new URL("../../src/main.ts", import.meta.url)
const probe = fileURLToPath(new URL("./gatewayProbe.ts", import.meta.url))

/** Removed when its scope closes. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "edgewise-bench-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true })),
)

/** The transport of the nodes of a bench, from its own environment. */
export const benchTransport = process.env.EDGEWISE_TRANSPORT || "auto"

/** The environment without edgewise's settings: they could configure another node. */
const cleanEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("EDGEWISE_")))

export const startGateway = ({
  heapMib,
  key,
  models,
  preload = [],
  profileDir,
  programs,
  settings,
}: GatewayOptions): Effect.Effect<Gateway, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const catalog = join(folder, "catalog.json")
    yield* Effect.promise(() => writeFile(catalog, JSON.stringify({ models })))
    const dataDir = join(folder, "data")
    const profile = profileDir === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileDir}`]
    const child = yield* startChild<ProbeCommands>({
      name: "edgewise serve",
      entry: main,
      args: ["serve", "--port", "0", "--catalog", catalog, "--data-dir", dataDir],
      nodeFlags: [probe, ...preload.map((module) => fileURLToPath(module))]
        .flatMap((module) => ["--import", module])
        .concat(profile)
        .concat(heapMib === undefined ? [] : [`--max-old-space-size=${heapMib}`]),
      env: {
        EDGEWISE_FAKE_ENGINES: "true",
        ...cleanEnvironment(),
        ...(programs === undefined ? {} : { PATH: `${programs}${delimiter}${process.env.PATH ?? ""}` }),
        EDGEWISE_ROLES: "edge",
        EDGEWISE_TRANSPORT: benchTransport,
        EDGEWISE_RATE_LIMIT: "0",
        EDGEWISE_DRAIN_SECONDS: "1",
        EDGEWISE_LOG: "json",
        EDGEWISE_LOG_LEVEL: "warn",
        ...settings,
      },
    })
    const [, port] = yield* child.line(/edge listening on http:\/\/[^\s]+:(\d+)/)
    const own = key ?? (yield* child.line(/development API key: (\S+)\n/))[1]
    return {
      child,
      target: { port: Number(port), key: own ?? "" },
      dataDir,
      engineCpuUs: Effect.sync(() => engineCpuUs(child.pid)),
    }
  })
