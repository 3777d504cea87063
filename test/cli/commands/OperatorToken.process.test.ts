// Operators' commands without a key, where the data directory of the running node can be read: what they do, and what they say
// where that does not help.
import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { operatorAccess } from "#cli/shared/NodeClient.ts"
import { edgewise, type NodeProcess, processLoaded, startProcess } from "../../support/nodes/NodeProcess.ts"

let node: NodeProcess
let env: Readonly<Record<string, string>>
let file: string

beforeAll(async () => {
  node = await startProcess({})
  await processLoaded(node, "fake")
  file = join(node.dataDir, "operator-token")
  env = {
    EDGEWISE_DATA_DIR: node.dataDir,
    EDGEWISE_CATALOG: node.catalog,
    EDGEWISE_PORT: String(node.port),
  }
})
afterAll(() => node.dispose())

it.each([
  [["tree"], /models/],
  [["tree", "--json"], /"children"/],
  [["models", "status"], /^fake +loaded/m],
  [["models", "list"], /^fake +text .* loaded$/m],
  [["models", "unload", "fake"], /^fake is unloaded/],
  [["models", "load", "fake"], /^fake is loaded/],
  [["models", "unload", "--all"], /^unloaded fake$/m],
  [["models", "load", "fake", "--force-reload", "--json"], /"success"/],
  [["logs", "fake"], /model ready/],
  [["reload"], /^1 unchanged$/m],
] as const)("edgewise %s needs no key", async (args, output) => {
  const { status, stderr, stdout } = await edgewise(args, env)
  expect([status, stderr]).toEqual([0, ""])
  expect(stdout).toMatch(output)
})

it("a pull by the node gets as far as with a key", async () => {
  const { status, stderr } = await edgewise(["models", "pull", "unknown", "--node"], env)
  expect([status, stderr]).toEqual([1, "Model not loaded (404)\n"])
})

it("a key that is given is used, and its refusal says what to do", async () => {
  const hint =
    "Requires the superadmin scope; leave out --key and EDGEWISE_API_KEY where the node's data directory can be read, or give --key with a superadmin key (edgewise keys create --org ops --scope superadmin makes one) (403)\n"
  for (const finished of await Promise.all([
    edgewise(["tree", "--key", node.devKey], env),
    edgewise(["tree"], { ...env, EDGEWISE_API_KEY: node.devKey }),
  ]))
    expect([finished.status, finished.stderr]).toEqual([1, hint])
})

it("the token is sent to its node's port alone", async () => {
  const other = await edgewise(["tree"], { ...env, EDGEWISE_PORT: "1" })
  expect([other.status, other.stderr]).toEqual([
    1,
    expect.stringMatching(
      new RegExp(
        `^\\S+operator-token is for a node at port ${node.port}, not 1: set EDGEWISE_PORT=[^\\n]+\\n$`,
      ),
    ),
  ])
  // Not to another machine: the development key is what is left.
  const access = await Effect.runPromise(
    operatorAccess({
      url: Option.some(`http://192.0.2.1:${node.port}`),
      key: Option.none(),
      dataDir: Option.some(node.dataDir),
    }),
  )
  expect(access.key).toBe(node.devKey)
})

it("speaking and transcribing use the development key", async () => {
  const { stderr } = await edgewise(["speak", "hi", "--model", "fake", "--out", "-"], env)
  expect(stderr).not.toContain("operator")
})

it("a token of an earlier start is refused with what to do", async () => {
  const token = readFileSync(file, "utf8")
  const earlier = token.replace(/_[^_]*\n$/, `_${"0".repeat(43)}\n`)
  try {
    writeFileSync(file, earlier)
    const { status, stderr } = await edgewise(["tree"], env)
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^Invalid operator token; [^\n]+ \(401\)\n$/)])
  } finally {
    writeFileSync(file, token)
  }
})

it("a token that this user may not read is named, with what to do", async () => {
  const token = readFileSync(file, "utf8")
  // The superuser reads every file: it becomes another user for the moment.
  const isRoot = process.geteuid?.() === 0
  chmodSync(file, 0)
  if (isRoot) process.seteuid?.(65_534)
  try {
    const refused = await Effect.runPromise(
      Effect.flip(
        operatorAccess({
          url: Option.some(node.base),
          key: Option.none(),
          dataDir: Option.some(node.dataDir),
        }),
      ),
    )
    expect(refused.message).toBe(
      `${file}: this user may not read it; run the command as the user that the node runs as, or give --key with a superadmin key (edgewise keys create --org ops --scope superadmin makes one)`,
    )
  } finally {
    if (isRoot) process.seteuid?.(0)
    chmodSync(file, 0o600)
  }
  expect(readFileSync(file, "utf8")).toBe(token)
})

it("without a node there is no token, and the command says which credentials there are", async () => {
  const token = readFileSync(file, "utf8")
  rmSync(file)
  rmSync(join(node.dataDir, "dev-key"))
  const { status, stderr } = await edgewise(["tree"], env)
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^no API key: [^\n]+\n$/)])
  writeFileSync(file, token, { mode: 0o600 })
})

it("a node that was killed leaves a token that opens nothing any more", async () => {
  const token = readFileSync(file, "utf8").trim()
  node.signal("SIGKILL")
  await node.exited
  expect(readFileSync(file, "utf8").trim()).toBe(token)
  const gone = await edgewise(["tree"], env)
  expect([gone.status, gone.stderr]).toEqual([1, expect.stringContaining("no node answers")])
  const again = await startProcess({ env: { EDGEWISE_DATA_DIR: node.dataDir } })
  try {
    const headers = { authorization: `Bearer ${token}` }
    expect((await fetch(`${again.base}/v1/node/tree`, { headers })).status).toBe(401)
    expect(readFileSync(file, "utf8").trim()).not.toBe(token)
    expect((await edgewise(["tree"], { ...env, EDGEWISE_PORT: String(again.port) })).status).toBe(0)
  } finally {
    // Not killed: its engine would still write into the data directory while that is removed.
    again.signal("SIGTERM")
    await again.exited
    await again.dispose()
  }
})
