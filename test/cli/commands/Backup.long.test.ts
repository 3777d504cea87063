// A way back: backups beside a running node, a backup that is killed, the restored directory under a second node, and the one line for
// each thing that can be wrong.
import { execFile } from "node:child_process"
import { existsSync, readdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterAll, beforeAll, expect, it } from "vitest"
import { listener, noise, wavOf } from "../../support/clients/LiveClient.ts"
import { poll, submit, untilDone } from "../../support/clients/TranscriptionClient.ts"
import {
  edgewise,
  type NodeProcess,
  processLoaded,
  startCommand,
  startProcess,
} from "../../support/nodes/NodeProcess.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { mainFile } from "../../support/process/CompiledCode.ts"
import { temporaryDir } from "../../support/process/TemporaryDir.ts"

const models = [fakeModel, listener()]
const dir = temporaryDir()
let node: NodeProcess
beforeAll(async () => {
  node = await startProcess({ models })
  await processLoaded(node, "fake", "listener")
})
afterAll(async () => {
  await node?.dispose()
  dir.remove()
})

const inDir = (dataDir: string, ...args: ReadonlyArray<string>) =>
  edgewise(args, { EDGEWISE_DATA_DIR: dataDir })

const authOf = ({ stdout }: NodeProcess): string => /auth listening on (\S+)/.exec(stdout())?.[1] ?? ""

const get = async (of: NodeProcess, path: string, credential: string) => {
  const response = await fetch(of.base + path, { headers: { authorization: `Bearer ${credential}` } })
  return { status: response.status, body: (await response.json()) as object }
}

/** Adds answers of this size in all, which make the store large. */
const fill = (dataDir: string, megabytes: number): void => {
  const db = new DatabaseSync(join(dataDir, "store.sqlite"))
  db.exec("PRAGMA busy_timeout=10000")
  const insert = db.prepare(
    "INSERT INTO answer_parts (answer_id, part, padding, bytes) VALUES ('filling', ?, '', ?)",
  )
  for (let part = 0; part < megabytes; part++) insert.run(part, Buffer.alloc(1_000_000, part))
  db.close()
}

it("a backup that is killed leaves no file, and the next one becomes a second node with everything", async () => {
  const target = { base: node.base, key: node.devKey }
  const answer = await fetch(`${node.base}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${node.devKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "fake", messages: [{ role: "user", content: "hi" }] }),
  })
  expect(answer.status).toBe(200)
  const job = await submit(target, wavOf(noise(3)), { model: "listener" })
  const done = await untilDone(target, job)
  expect(done.status).toBe(200)
  const session = await fetch(`${authOf(node)}/v1/auth/session`, {
    method: "POST",
    headers: { authorization: `Bearer ${node.devKey}` },
  })
  const { session_token: token } = (await session.json()) as { session_token: string }
  fill(node.dataDir, 30)

  const file = join(dir.path, "backup.tar")
  const copy = join(`${file}.partial`, "store.sqlite")
  /** Whether the command was killed while it made the copy. On a busy machine it may be done before. */
  const wasKilled = async (): Promise<boolean> => {
    const killed = startCommand(["backup", file], { EDGEWISE_DATA_DIR: node.dataDir })
    await eventually(
      () => existsSync(file) || (statSync(copy, { throwIfNoEntry: false })?.size ?? 0) > 1_000_000,
      "the copy has begun",
    )
    killed.signal("SIGKILL")
    const { status, stdout } = await killed.finished
    if (status === 0) rmSync(file)
    else expect(stdout).toBe("")
    return status !== 0
  }
  while (!(await wasKilled()));
  expect(existsSync(file)).toBe(false)
  expect((await get(node, "/v1/models", node.devKey)).status).toBe(200)

  const made = await inDir(node.dataDir, "backup", file)
  expect(made).toMatchObject({ status: 0, stderr: "" })
  expect([statSync(file).mode & 0o777, readdirSync(dir.path)]).toEqual([0o600, ["backup.tar"]])
  const usage = await get(node, "/v1/usage", node.devKey)

  // A key that is revoked after the backup is known again: the restored store does not know better.
  const { key_id } = JSON.parse(
    (await inDir(node.dataDir, "keys", "create", "--org", "later", "--json")).stdout,
  ) as { key_id: string }
  expect((await inDir(node.dataDir, "keys", "revoke", key_id)).status).toBe(0)

  const restored = join(dir.path, "restored")
  const said = await inDir(restored, "restore", file)
  expect(said).toMatchObject({ status: 0, stderr: "" })
  expect(said.stdout).toMatch(/^\S+restored: restored as node_\w+ from the backup of node_\w+ of 20/)
  const second = await startProcess({ models, env: { EDGEWISE_DATA_DIR: restored } })
  try {
    await processLoaded(second, "fake", "listener")
    expect(second.devKey).toBe(node.devKey)
    expect(await get(second, "/v1/usage", node.devKey)).toEqual(usage)
    expect(await poll({ base: second.base, key: node.devKey }, job)).toEqual(done)
    expect((await get(second, "/v1/models", token)).status).toBe(200)
    expect((await inDir(restored, "keys", "list", "--org", "later")).stderr).toBe("no organization later\n")
    // The old node goes on beside it.
    expect((await get(node, "/v1/usage", token)).body).toEqual(usage.body)

    // Its tokens end with the signing keys that were restored.
    expect((await inDir(restored, "sessions", "rotate", "--end-all")).status).toBe(0)
    await eventually(async () => (await get(second, "/v1/models", token)).status === 401, "the token ends")
    expect((await get(node, "/v1/models", token)).status).toBe(200)

    const running = await inDir(restored, "restore", file)
    expect(running).toEqual({
      status: 1,
      stdout: "",
      stderr: `${restored}: a node or another restore uses it; name an empty data directory (EDGEWISE_DATA_DIR)\n`,
    })
    expect((await get(second, "/v1/models", node.devKey)).status).toBe(200)
  } finally {
    await second.dispose()
  }
})

/** Runs a command where no file may grow over this many blocks of 512 bytes. */
const limited = (blocks: number, dataDir: string, ...args: ReadonlyArray<string>) =>
  new Promise<{ readonly status: number; readonly stderr: string }>((resolve) => {
    const program = ["--disable-warning=ExperimentalWarning", mainFile, ...args]
    execFile(
      "sh",
      ["-c", `ulimit -f ${blocks}; exec "$@"`, "sh", process.execPath, ...program],
      { env: { ...process.env, EDGEWISE_DATA_DIR: dataDir, EDGEWISE_DATABASE_URL: "" } },
      (error, _, stderr) => resolve({ status: error === null ? 0 : Number(error.code), stderr }),
    )
  })

it("a disk that is full ends a backup and a restore with one line, and leaves nothing", async () => {
  const dataDir = join(dir.path, "small")
  expect((await inDir(dataDir, "keys", "create", "--org", "acme")).status).toBe(0)
  await Promise.all(
    [4, 100, 300].map(async (blocks) => {
      const small = join(dir.path, `small-${blocks}.tar`)
      const { status, stderr } = await limited(blocks, dataDir, "backup", small)
      expect([status, stderr]).toEqual([1, expect.stringMatching(/^\S+small-\d+.tar: no space is left.*\n$/)])
      expect([existsSync(small), existsSync(`${small}.partial`)]).toEqual([false, false])
    }),
  )
  const file = join(dir.path, "small.tar")
  expect((await inDir(dataDir, "backup", file)).status).toBe(0)
  const target = join(dir.path, "small-restored")
  const full = await limited(100, target, "restore", file)
  expect(full).toEqual({
    status: 1,
    stderr: expect.stringMatching(/^\S+small-restored: no space is left.*\n$/),
  })
  expect(existsSync(target)).toBe(false)
  expect((await inDir(target, "restore", file)).status).toBe(0)
})

it("with a Postgres database both name its own tools", async () => {
  for (const [command, tool] of [
    ["backup", "pg_dump"],
    ["restore", "pg_restore"],
  ] as const) {
    const refused = await edgewise([command, "x.tar"], {
      EDGEWISE_DATABASE_URL: "postgres://u:p@127.0.0.1:1/d",
    })
    expect(refused).toEqual({
      status: 1,
      stdout: "",
      stderr: `EDGEWISE_DATABASE_URL: is set, so the store is a Postgres database: use ${tool} (docs/backup.md)\n`,
    })
  }
})
