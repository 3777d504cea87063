// What `edgewise prove` cannot do, each in one line: no network, wrong names and files, a hub that breaks off or lies about sums. A
// model that cannot be had does not keep the others from being proven.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { ProofDocument } from "#cli/prove/Document.ts"
import { writeToyLlama } from "../../support/engines/ToyGguf.ts"
import { edgewise } from "../../support/nodes/NodeProcess.ts"
import { temporaryDir } from "../../support/nodes/TestNode.ts"
import { type FakeHub, startHub } from "../../support/servers/FakeHub.ts"

const dir = temporaryDir()
const commit = "abcdef0123456789"
let hub: FakeHub
let runs = 0

beforeAll(async () => {
  const weights = join(dir.path, "toy-Q8_0.gguf")
  writeToyLlama(weights)
  hub = await startHub({ [`acme/toy-GGUF/${commit}/toy-Q8_0.gguf`]: readFileSync(weights) })
})
afterAll(async () => {
  await hub.stop()
  dir.remove()
})
beforeEach(() => hub.reset())

const prove = async (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
  const out = join(dir.path, `proof-${runs}.json`)
  const finished = await edgewise(["prove", "--out", out, "--seconds", "0", ...args], {
    EDGEWISE_DATA_DIR: join(dir.path, `data-${runs++}`),
    HF_ENDPOINT: hub.endpoint,
    ...env,
  })
  return { ...finished, out }
}

const refused = async (
  args: ReadonlyArray<string>,
  words: string,
  env: Readonly<Record<string, string>> = {},
) => {
  const { out, status, stderr, stdout } = await prove(args, env)
  expect([status, stdout, stderr.trimEnd().split("\n").length]).toEqual([1, "", 1])
  expect(stderr).toContain(words)
  expect(existsSync(out)).toBe(false)
}

it("says at once that there is no network", async () => {
  await refused(
    [],
    "127.0.0.1:1 cannot be reached (ECONNREFUSED): edgewise prove needs a network, or HF_ENDPOINT",
    {
      HF_ENDPOINT: "http://127.0.0.1:1",
    },
  )
  await refused([], "HF_HUB_OFFLINE is set: nothing is pulled", { HF_HUB_OFFLINE: "1" })
})

describe("before anything is pulled", () => {
  it("a folder of recordings without transcripts, or none", async () => {
    const folder = join(dir.path, "recordings")
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "one.wav"), "")
    await refused(
      ["--recordings", folder],
      "no recordings; it must have speaker/chapter/*.flac beside *.trans.txt",
    )
    await refused(["--recordings", join(folder, "none")], "--recordings: ")
    expect(hub.seen).toEqual([])
  })

  it("references that are none, and a place where nothing can be written", async () => {
    const file = join(dir.path, "references.json")
    writeFileSync(file, '{"toy": {"tokens": {"texts": []}}}')
    await refused(["--references", file], "--references: ")
    await refused(["--references", join(dir.path, "none.json")], "none.json: there is no such file or folder")
    const { status, stderr } = await edgewise(["prove", "--out", join(dir.path, "none/proof.json")])
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/^--out: .*none: there is no such file or folder\n$/),
    ])
    expect(hub.seen).toEqual([])
  })
})

/** What is printed of each model, none of which was proven. A run looks at the machine for two seconds. */
const linesOf = async (...sources: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const { out, status, stdout } = await prove(sources)
  expect(status).toBe(1)
  const { models } = JSON.parse(readFileSync(out, "utf8")) as ProofDocument
  expect(models.flatMap(({ rows }) => rows.map(({ check, verdict }) => [check, verdict]))).toEqual(
    sources.map(() => ["files", "fail"]),
  )
  return stdout.split("\n").filter((line) => line.includes(", files: "))
}

describe("a model that cannot be had", () => {
  it("an unknown preset, and a licence that restricts the use and is not accepted", async () => {
    hub.behaviour.licence = "gemma"
    expect(await linesOf("qwen3-0.6", "hf:acme/toy-GGUF")).toEqual([
      expect.stringContaining('is no preset; did you mean "qwen3-0.6b"?'),
      expect.stringContaining("its licence (gemma) restricts what the model may be used for"),
    ])
  })

  it("a hub that lies about the sum, and one that refuses", async () => {
    hub.behaviour.content = Buffer.alloc(10_000)
    expect(await linesOf("hf:acme/toy-GGUF")).toHaveLength(1)
    hub.reset()
    hub.behaviour.listStatus = 403
    expect(await linesOf("hf:acme/toy-GGUF")).toEqual([expect.stringContaining("answered 403")])
  })
})
