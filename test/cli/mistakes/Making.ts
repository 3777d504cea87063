// Makes operators' mistakes with the real program, each in a world of its own, and tests what it prints and its exit
// status.
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { mountNeedsRoot, onlyWhere } from "../../support/groups/Needs.ts"
import { edgewiseProcess, startCommand } from "../../support/nodes/NodeProcess.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { databasePassword, type PostgresServer } from "../../support/servers/PostgresServer.ts"
import { catalogText, type OperatorMistake, type World, writeCatalogText } from "./World.ts"

/** A disk of 64 KiB in a folder of its own. */
const smallDisk = (folder: string) => {
  mkdirSync(folder)
  const isMounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]).status === 0
  return {
    folder,
    isMounted,
    /** With a file of twice its size: should the mount be gone, no other disk is filled. */
    fill: () =>
      spawnSync("dd", ["if=/dev/zero", `of=${join(folder, "filler")}`, "bs=4096", "count=32"], {
        stdio: "ignore",
      }),
    end: () => spawnSync("umount", ["-l", folder]),
  }
}

/** What the mistakes of one file share. Not of this module: files that share a worker share its modules. */
const stageOf = () => {
  // Goes with the run (OneTemporaryFolder).
  const root = mkdtempSync(join(tmpdir(), "edgewise-mistakes-"))
  return {
    root,
    disk: smallDisk(join(root, "full-disk")),
    taken: createServer(),
    postgres: undefined as Pick<PostgresServer, "freshUrl" | "port"> | undefined,
    outcomes: new Map<OperatorMistake, Outcome>(),
  }
}
type Stage = ReturnType<typeof stageOf>

interface Outcome {
  readonly status: number | null | "serves"
  readonly stdout: string
  /** Lines of standard error, with DIR and PORT for what differs between machines. */
  readonly lines: ReadonlyArray<string>
}

const canBeMade = ({ disk }: Stage, { needs }: OperatorMistake): boolean =>
  needs !== "a full disk" || disk.isMounted

const worldOf = async ({ disk, postgres, root, taken }: Stage, name: string): Promise<World> => {
  const dir = join(root, name)
  mkdirSync(dir)
  const address = taken.address()
  const world: World = {
    dir,
    dataDir: join(dir, "data"),
    takenPort: typeof address === "object" && address !== null ? address.port : 0,
    postgresUrl: await postgres?.freshUrl(),
    fullDisk: disk.isMounted ? disk.folder : undefined,
  }
  writeFileSync(join(dir, "weights.gguf"), "GGUF")
  writeCatalogText(world, catalogText({}))
  return world
}

const masked = ({ disk, postgres }: Stage, text: string, { dir, takenPort }: World): ReadonlyArray<string> =>
  text
    .replaceAll(dir, "DIR")
    .replaceAll(disk.folder, "DIR")
    .replaceAll(String(takenPort), "PORT")
    .replaceAll(String(postgres?.port ?? "none"), "PORT")
    .split("\n")
    // A process that may use one core says so whatever else is wrong.
    .filter((line) => line !== "" && !line.includes("this process may use one CPU thread"))

interface LogEntry {
  readonly message: string
  readonly annotations?: { readonly model?: string; readonly reason?: string }
}

/** The text of a log line, with the model and the reason that it names. */
const messageOf = (line: string): string => {
  if (!line.startsWith("{") || !line.endsWith("}")) return line
  const entry: unknown = JSON.parse(line)
  const { annotations, message } = entry as LogEntry
  const { model, reason } = annotations ?? {}
  return [message, model, reason].filter((part) => part !== undefined).join(": ")
}

const outcomeOf = async (stage: Stage, mistake: OperatorMistake, index: number): Promise<Outcome> => {
  const world = await worldOf(stage, String(index))
  const { args = ["serve"], env } = mistake.make(world)
  const variables = {
    EDGEWISE_DATA_DIR: world.dataDir,
    EDGEWISE_CATALOG: join(world.dir, "catalog.json"),
    EDGEWISE_PORT: "0",
    EDGEWISE_AUTH_PORT: "0",
    EDGEWISE_ROUTER_PORT: "0",
    EDGEWISE_LOG_LEVEL: "warn",
    ...env,
  }
  if (mistake.status !== "serves") {
    const { status, stderr, stdout } = await edgewiseProcess(args, variables)
    return { status, stdout, lines: masked(stage, stderr, world) }
  }
  const running = startCommand(args, variables)
  try {
    await eventually(() => running.stdout().includes("router listening on"), "the node serves", 60_000)
    const warned = () => masked(stage, running.stderr(), world).map(messageOf).includes(mistake.line)
    // The test reports a missing line.
    await eventually(warned, "the node warns", 60_000).catch(() => {})
  } finally {
    running.signal("SIGKILL")
    await running.finished
  }
  const lines = masked(stage, running.stderr(), world).map(messageOf)
  return { status: "serves", stdout: running.stdout(), lines }
}

/** Two at a time, because each has a process of its own, which takes a core for a second. */
const makeAll = async (stage: Stage, mistakes: ReadonlyArray<OperatorMistake>): Promise<void> => {
  const waiting = mistakes
    .map((mistake, index) => ({ mistake, index }))
    .filter(({ mistake }) => canBeMade(stage, mistake))
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      stage.outcomes.set(next.mistake, await outcomeOf(stage, next.mistake, next.index))
    }
  }
  await Promise.all([worker(), worker()])
}

/** Defines a test of each of these mistakes; `startServer` gives those that need a PostgreSQL server theirs. */
export const testMistakes = (
  mistakes: ReadonlyArray<OperatorMistake>,
  startServer?: () => Promise<Pick<PostgresServer, "freshUrl" | "port">>,
): void => {
  const stage = stageOf()
  const { disk, outcomes, taken } = stage
  beforeAll(async () => {
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve))
    if (disk.isMounted) disk.fill()
    stage.postgres = await startServer?.()
    await makeAll(stage, mistakes)
  }, 600_000)
  afterAll(async () => {
    taken.close()
    if (disk.isMounted) disk.end()
  })

  describe.each(mistakes.map((mistake) => [`${mistake.category}: ${mistake.mistake}`, mistake] as const))(
    "%s",
    (_, mistake) => {
      it(`prints its line, ${mistake.status}`, onlyWhere(canBeMade(stage, mistake), mountNeedsRoot), () => {
        const outcome = outcomes.get(mistake)
        // A node that serves may print more lines, e.g. about consequences of the mistake.
        const lines = outcome?.lines ?? []
        if (mistake.status === "serves") expect(lines).toContain(mistake.line)
        else expect(lines).toEqual([mistake.line])
        expect(outcome?.status).toBe(mistake.status)
        if (mistake.status !== "serves") expect(outcome?.stdout).toBe("")
        const all = [...lines, outcome?.stdout].join("\n")
        expect(all).not.toMatch(/ {4}at |\bsecret\b|hf_ abc/)
        expect(all).not.toContain(databasePassword)
      })
    },
  )
}
