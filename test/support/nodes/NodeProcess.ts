// The product as a separate process, as an operator starts it: for tests of signals, exit statuses and the command
// line. For other tests TestNode is faster and shows more.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { CommandHost, type Finished } from "../process/CommandHost.ts"
import { compiledEnvironment, mainFile, withCompiledCode } from "../process/CompiledCode.ts"
import { type WireRole, watchBase } from "../wire/WireTap.ts"
import { fakeModel, type TestModel, writeCatalog } from "./TestCatalog.ts"
import { eventually, parseMetrics, temporaryDir, transport } from "./TestNode.ts"

export type { Finished } from "../process/CommandHost.ts"

const environmentOf = (env: Readonly<Record<string, string>>) => ({
  ...(process.env.PATH === undefined ? {} : { PATH: process.env.PATH }),
  ...(process.env.HOME === undefined ? {} : { HOME: process.env.HOME }),
  EDGEWISE_FAKE_ENGINES: "true",
  ...(transport === undefined ? {} : { EDGEWISE_TRANSPORT: transport }),
  ...compiledEnvironment(),
  ...env,
})

const start = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
  program = mainFile,
): ChildProcess =>
  spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program, ...args], {
    // Settings of the machine that runs the tests must not take effect.
    env: environmentOf(env),
    stdio: ["ignore", "pipe", "pipe"],
  })

/** Output of a process on one stream so far. */
const collect = (stream: ChildProcess["stdout"]): (() => string) => {
  let text = ""
  stream?.setEncoding("utf8").on("data", (more: string) => {
    text += more
  })
  return () => text
}

/** Starts one command line without waiting for its end. */
export const startCommand = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
): {
  readonly finished: Promise<Finished>
  readonly signal: (signal: NodeJS.Signals) => void
  /** Its output so far. */
  readonly stdout: () => string
  readonly stderr: () => string
} => {
  const child = start(args, env)
  const stdout = collect(child.stdout)
  const stderr = collect(child.stderr)
  const finished = once(child, "close").then(([status]) => ({
    status: status as number | null,
    stdout: stdout(),
    stderr: stderr(),
  }))
  return { finished, signal: (signal) => void child.kill(signal), stdout, stderr }
}

/** Runs one command line to its end, in a process of its own. */
export const edgewiseProcess = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> => startCommand(args, env).finished

/** Processes for the commands of this worker's tests. They end with the worker. */
const hosts: Array<{ readonly host: CommandHost; running: number }> = []
/** Two commands can run at the same time. */
const mostHosts = 2

/**
 * Runs one command line to its end, in a process that keeps the product's modules for the next one (CommandHost.ts), because starting
 * one takes a second. For a command that does not end by itself, for signals and for standard input there is `startCommand`.
 */
export const edgewise = async (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> => {
  const idle = hosts.find(({ running }) => running === 0)
  const fresh =
    hosts.length < mostHosts ? { host: new CommandHost(environmentOf({})), running: 0 } : undefined
  if (idle === undefined && fresh !== undefined) hosts.push(fresh)
  const chosen = idle ?? fresh ?? hosts.reduce((one, other) => (other.running < one.running ? other : one))
  chosen.running++
  try {
    return await chosen.host.run({ args, env: environmentOf(env) })
  } finally {
    chosen.running--
  }
}

export interface NodeProcess {
  readonly base: string
  readonly port: number
  readonly devKey: string
  readonly dataDir: string
  /** The catalog file it was started with, for tests that edit it. */
  readonly catalog: string
  readonly pid: number
  /** Its standard output so far. */
  readonly stdout: () => string
  readonly stderr: () => string
  readonly signal: (signal: NodeJS.Signals) => void
  /** Exit status, and the signal if one ended it; all that it has printed is read then. */
  readonly exited: Promise<readonly [status: number | null, signal: NodeJS.Signals | null]>
  /** Kills the process if it still runs and removes its files. */
  readonly dispose: () => Promise<void>
}

/** `edgewise serve` over a fresh data directory; resolves once it listens. */
export const startProcess = async (options: {
  readonly models?: ReadonlyArray<TestModel>
  readonly env?: Readonly<Record<string, string>>
  /** `src/main.ts` of another copy of the product. */
  readonly main?: string
}): Promise<NodeProcess> => {
  const dir = temporaryDir()
  const catalog = join(dir.path, "catalog.json")
  writeCatalog(catalog, options.models ?? [fakeModel])
  const dataDir = join(dir.path, "data")
  withCompiledCode(dataDir)
  const child = start(
    ["serve"],
    {
      EDGEWISE_DATA_DIR: dataDir,
      EDGEWISE_CATALOG: catalog,
      EDGEWISE_PORT: "0",
      EDGEWISE_AUTH_PORT: "0",
      EDGEWISE_ROUTER_PORT: "0",
      EDGEWISE_RATE_LIMIT: "0",
      EDGEWISE_METRICS_AGE_MS: "0",
      ...options.env,
    },
    options.main,
  )
  const closed = once(child, "close")
  // Its output is read then, unless a process that it has left behind still writes.
  const exited = (once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>).then(
    async (ended) => {
      await Promise.race([closed, setTimeout(10_000, undefined, { ref: false })])
      return ended
    },
  )
  const stdout = collect(child.stdout)
  const stderr = collect(child.stderr)
  const said = new Promise<void>((resolve, reject) => {
    child.stdout?.on("data", () => {
      if (/try it:\n.+\n/.test(stdout())) resolve()
    })
    exited.then(([status]) => reject(new Error(`ended with ${status} before it listened: ${stderr()}`)))
  })
  const dispose = async () => {
    child.kill("SIGKILL")
    await exited
    dir.remove()
  }
  try {
    await said
  } catch (error) {
    dir.remove()
    throw error
  }
  const baseOf = (role: WireRole) => new RegExp(`${role} listening on (\\S+)`).exec(stdout())?.[1] ?? ""
  for (const role of ["edge", "auth", "router"] as const) watchBase(baseOf(role), role)
  const base = baseOf("edge")
  return {
    base,
    port: Number(new URL(base).port),
    devKey: /svc_[0-9A-Za-z]+/.exec(stdout())?.[0] ?? "",
    dataDir,
    catalog,
    pid: child.pid!,
    stdout,
    stderr,
    signal: (signal) => void child.kill(signal),
    exited,
    dispose,
  }
}

/** Completes when the node has loaded these models. */
export const processLoaded = (
  node: Pick<NodeProcess, "base">,
  ...models: ReadonlyArray<string>
): Promise<void> =>
  eventually(async () => {
    const metrics = parseMetrics(await (await fetch(`${node.base}/metrics`)).text())
    return models.every((model) => metrics.get(`edgewise_model_loaded{model="${model}"}`) === 1)
  }, `${models} are loaded`)
