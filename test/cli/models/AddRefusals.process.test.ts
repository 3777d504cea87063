// What `edgewise models add` refuses, each in one sentence that says what to do. The catalog stays as it was, and what has arrived of a
// broken pull is used by the next one.
import { existsSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { writeToyLlama } from "../../support/engines/ToyGguf.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { edgewise, edgewiseProcess, type Finished, startCommand } from "../../support/nodes/NodeProcess.ts"
import { fakeModel, llamaModel, writeCatalog } from "../../support/nodes/TestCatalog.ts"
import { eventually, temporaryDir } from "../../support/nodes/TestNode.ts"
import { type FakeHub, type Seen, sha256, startHub } from "../../support/servers/FakeHub.ts"

const dir = temporaryDir()
const weights = join(dir.path, "toy-Q8_0.gguf")
const repo = "acme/toy-GGUF"
const commit = "abcdef0123456789"
const source = `hf:${repo}@${commit}/toy-Q8_0.gguf`
let hub: FakeHub
let toy: Buffer
/** A port where nothing listens. */
const nowhere = "1"
let runs = 0
let dataDir = ""
const added = () => join(dataDir, "models.jsonc")

const named = (architecture: string): Buffer => {
  const file = Buffer.from(toy)
  const at = file.indexOf("llama")
  // The length of the text stands before it: names of five letters only.
  file.write(architecture, at, "latin1")
  return file
}

beforeAll(async () => {
  writeToyLlama(weights)
  toy = readFileSync(weights)
  hub = await startHub({
    [`${repo}/${commit}/toy-Q8_0.gguf`]: toy,
    [`acme/other-GGUF/${commit}/other-Q8_0.gguf`]: named("llamx"),
    [`acme/cut-GGUF/${commit}/cut-Q8_0.gguf`]: toy.subarray(0, toy.length - 5_000),
    [`acme/torch/${commit}/model.safetensors`]: Buffer.alloc(2_000),
    [`acme/parts-GGUF/${commit}/big-Q8_0-00001-of-00002.gguf`]: toy,
    [`acme/seq2seq/${commit}/config.json`]: Buffer.from('{"model_type":"marian"}'),
    [`acme/seq2seq/${commit}/onnx/encoder_model.onnx`]: Buffer.alloc(2_000),
    [`acme/whisper/${commit}/config.json`]: Buffer.from('{"model_type":"whisper"}'),
    [`acme/whisper/${commit}/onnx/encoder_model.onnx`]: Buffer.alloc(2_000),
  })
})
afterAll(async () => {
  await hub.stop()
  dir.remove()
})
beforeEach(() => {
  hub.reset()
  dataDir = join(dir.path, `data-${runs++}`)
})

const environment = () => ({
  EDGEWISE_DATA_DIR: dataDir,
  EDGEWISE_PORT: nowhere,
  HF_ENDPOINT: hub.endpoint,
})

const models = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  edgewise(["models", ...args], { ...environment(), ...env })

const refused = ({ status, stderr, stdout }: Finished, ...words: ReadonlyArray<string>) => {
  const lines = stderr
    .trimEnd()
    .split("\n")
    .filter((line) => !/\d %|; attempt \d/.test(line))
  expect([status, stdout, lines.length], stderr).toEqual([1, "", 1])
  for (const word of words) expect(lines[0]).toContain(word)
  expect(existsSync(added())).toBe(false)
}

describe("before anything is pulled", () => {
  it.each<[ReadonlyArray<string>, ...ReadonlyArray<string>]>([
    [["qwen3-0.6"], "is no preset", 'did you mean "qwen3-0.6b"?'],
    [["hf:acme"], "is not hf:owner/repo"],
    [["./nowhere.gguf"], "there is no such file or folder"],
    [["hf:acme/none"], "answered 404: no such repository", "check the name"],
    [["hf:acme/toy-GGUF@v9"], "answered 404"],
    [["hf:acme/torch"], "has safetensors, which edgewise does not read", "look for a repository"],
    [
      ["hf:acme/other-GGUF"],
      "has the architecture llamx, which the built-in llama.cpp does not know",
      "choose another",
    ],
    [["hf:acme/cut-GGUF"], "is cut short: it has", "choose another file, or get it again"],
    [["hf:acme/parts-GGUF"], "has only models in several parts"],
    [["hf:acme/seq2seq"], "is an ONNX export of marian, which no adapter reads", "Whisper"],
    [["hf:acme/whisper"], "looks like Whisper and has no decoder_model_merged.onnx"],
    [["hf:acme/toy-GGUF/none.gguf"], "has no none.gguf; it has toy-Q8_0.gguf"],
    [["hf:acme/toy-GGUF", "--file", "Q4_K_M"], "has no Q4_K_M; it has toy-Q8_0.gguf"],
    [["hf:acme/toy-GGUF", "--id", "a b"], "is not allowed"],
  ])("%j", async (args, ...words) => {
    refused(await models(["add", ...args]), ...words)
    const isWhole = ({ at, headers, url }: Seen) =>
      at === "storage" && headers.range === undefined && !url.includes(".json")
    expect(hub.seen.filter(isWhole)).toEqual([])
    expect(existsSync(join(dataDir, "weights"))).toBe(false)
  })

  it("a gated repository names the token, and its terms", async () => {
    hub.behaviour.listStatus = 401
    refused(await models(["add", `hf:${repo}`]), "answered 401", "set HF_TOKEN")
    hub.behaviour.listStatus = 403
    refused(
      await models(["add", `hf:${repo}`], { HF_TOKEN: "hf_x" }),
      "may not read",
      "terms may have to be accepted",
    )
  })

  it("a licence that restricts the use, until it is accepted", async () => {
    hub.behaviour.licence = "gemma"
    refused(
      await models(["add", `hf:${repo}`]),
      `toy: its licence (gemma) restricts what the model may be used for: read it at the publisher's (hf:${repo})`,
      "then repeat the command with --accept",
    )
    const dry = await models(["add", `hf:${repo}`, "--dry-run"])
    expect(dry.stdout).toContain("\nlicence: gemma, which restricts what the model may be used for\n")
    const { status, stdout } = await models(["add", `hf:${repo}`, "--accept", "--json"])
    expect([status, JSON.parse(stdout)]).toMatchObject([0, { licence: "gemma", restricts_use: true }])
  })

  it("a free licence is printed", async () => {
    const { status, stdout } = await models(["add", `hf:${repo}`])
    expect(status).toBe(0)
    expect(stdout).toContain("\nlicence: apache-2.0\n")
  })

  it("a hub that sends no listing, and one that must not be asked", async () => {
    hub.behaviour.listing = "<html>"
    refused(await models(["add", `hf:${repo}`]), "does not send a list of files")
    refused(await models(["add", `hf:${repo}`], { HF_HUB_OFFLINE: "1" }), "HF_HUB_OFFLINE is set")
  })

  // It is asked for four times, with pauses.
  it("a hub that does not answer", inLong, async () => {
    refused(
      await models(["add", `hf:${repo}`], { HF_ENDPOINT: "http://127.0.0.1:1" }),
      "ECONNREFUSED, after 4 attempts; run the command again",
    )
  })

  it("a model that does not fit", async () => {
    refused(
      await models(["add", `hf:${repo}`], { EDGEWISE_MEMORY_MB: "100" }),
      "toy: is too large: it needs",
      "choose a smaller model",
    )
  })

  it("a local file that is cut short", async () => {
    const path = join(dir.path, "short.gguf")
    writeFileSync(path, toy)
    truncateSync(path, toy.length - 100)
    refused(await models(["add", path]), "is cut short: it has", "get it again")
  })
})

describe("while it is pulled", () => {
  it("a hub that lies about the size, in the listing or on the way", async () => {
    hub.behaviour.listedSizes = { "toy-Q8_0.gguf": toy.length + 10 }
    refused(
      await models(["add", `hf:${repo}`]),
      `the hub has ${toy.length} bytes, ${toy.length + 10} were expected`,
    )
    hub.reset()
    hub.behaviour.linkedSize = toy.length - 1
    refused(
      await models(["add", `hf:${repo}`]),
      "the hub says",
      "its storage",
      "set HF_ENDPOINT to another hub",
    )
  })

  it("a hub that lies about the sum: what has arrived is deleted", async () => {
    const wrong = Buffer.from(toy)
    wrong[wrong.length - 1]! ^= 1
    hub.behaviour.content = wrong
    refused(
      await models(["add", `hf:${repo}`]),
      `has SHA-256 ${sha256(wrong)}, the catalog says ${sha256(toy)}`,
      "pull again",
    )
    hub.reset()
    const { status } = await models(["add", `hf:${repo}`])
    expect(status).toBe(0)
    expect(readFileSync(join(dataDir, `weights/hf/${repo}/${commit}/toy-Q8_0.gguf`)).equals(toy)).toBe(true)
  })

  it("a connection that breaks in the middle is continued within the same command", async () => {
    hub.behaviour.cutAfter = [100_000]
    // The header is read first; only whole files are cut.
    hub.behaviour.cutWhole = true
    const { status, stderr } = await models(["add", `hf:${repo}`])
    expect([status, stderr]).toEqual([0, expect.stringContaining("attempt 2")])
    expect(readFileSync(join(dataDir, `weights/hf/${repo}/${commit}/toy-Q8_0.gguf`)).equals(toy)).toBe(true)
  })

  it("an add that is killed leaves the catalog as it was, and the next one continues", async () => {
    hub.behaviour.holdAfter = 120_000
    hub.behaviour.pieceBytes = 20_000
    const killed = startCommand(["models", "add", `hf:${repo}`], environment())
    const part = join(dataDir, `weights/pull/hf/${repo}/${commit}/toy-Q8_0.gguf.part`)
    await eventually(
      () => (statSync(part, { throwIfNoEntry: false })?.size ?? 0) > 100_000,
      "some of it has come",
    )
    killed.signal("SIGKILL")
    await killed.finished
    expect(existsSync(added())).toBe(false)
    hub.reset()
    const { status, stdout } = await models(["add", `hf:${repo}`, "--json"])
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      id: "toy",
      node: "none",
      files: [{ source, sha256: sha256(toy) }],
    })
    const whole = hub.seen.find(
      ({ at, headers }) => at === "storage" && /^bytes=\d+-$/.test(headers.range ?? ""),
    )
    expect(Number(/\d+/.exec(whole?.headers.range ?? "")?.[0])).toBeGreaterThan(100_000)
  })

  it("two at once write both entries; the same one twice is added once", async () => {
    const both = await Promise.all(
      ["one", "two", "two"].map((id) =>
        edgewiseProcess(["models", "add", `hf:${repo}`, "--id", id, "--json"], environment()),
      ),
    )
    const right = both.filter(({ status }) => status === 0)
    expect(right.length).toBeGreaterThanOrEqual(2)
    const text = readFileSync(added(), "utf8")
    for (const id of ["one", "two"]) expect(text.split(`"id": "${id}"`)).toHaveLength(2)
    expect(
      hub.seen.filter(({ at, headers }) => at === "storage" && headers.range === undefined),
    ).toHaveLength(1)
  })
})

describe("a catalog of the operator's own", () => {
  const path = join(dir.path, "own/catalog.json")
  const own = `// Mine.\n{\n\t"models": [\n\t\t${JSON.stringify({
    kind: "text",
    adapter: "fake",
    ownedBy: "me",
    created: 1,
    files: {},
    price: {},
    ...fakeModel,
  })} // the only one\n\t]\n}\n`
  const here = (args: ReadonlyArray<string>) => models(args, { EDGEWISE_CATALOG: path })
  beforeEach(() => {
    mkdirSync(join(dir.path, "own"), { recursive: true })
    writeFileSync(path, own, { mode: 0o640 })
  })

  it("is written, with its comments; removing gives the same bytes; the mode stays", async () => {
    const { status, stdout } = await here(["add", weights, "--json"])
    expect([status, JSON.parse(stdout)]).toMatchObject([0, { id: "toy", catalog: path }])
    const text = readFileSync(path, "utf8")
    expect(text).toContain("}, // the only one\n\t\t{\n")
    expect(statSync(path).mode & 0o777).toBe(0o640)
    const listed = JSON.parse((await here(["list", "--json"])).stdout) as {
      models: ReadonlyArray<{ id: string }>
    }
    expect(listed.models.map(({ id }) => id)).toEqual(["fake", "toy"])
    const checked = await here(["check", "toy", "--json"])
    expect([checked.status, JSON.parse(checked.stdout)]).toMatchObject([
      0,
      { ok: true, models: [{ id: "toy", from: path, weights: "here", context_bytes: expect.any(Number) }] },
    ])
    expect((await here(["remove", "toy"])).status).toBe(0)
    expect(readFileSync(path, "utf8")).toBe(own)
  })

  it("keeps its model: another file under the same id, or its id as a further name, is refused", async () => {
    const lines = async (...args: ReadonlyArray<string>) => (await here(["add", weights, ...args])).stderr
    expect(await lines("--id", "fake")).toContain("already has a model fake; remove it first")
    expect(await lines("--as", "fake")).toContain("fake already names fake")
    expect(readFileSync(path, "utf8")).toBe(own)
    const unknown = await here(["remove", "nothing"])
    expect([unknown.status, unknown.stderr]).toEqual([1, expect.stringContaining("has no model nothing")])
  })

  it("with a mistake in it is not touched", async () => {
    writeCatalog(path, [{ ...fakeModel, options: { slotz: 1 } }])
    const before = readFileSync(path, "utf8")
    const { status, stderr } = await here(["add", weights])
    expect([status, stderr]).toEqual([2, expect.stringContaining(`${path}:1:`)])
    expect(readFileSync(path, "utf8")).toBe(before)
  })
})

it("--dry-run and --no-pull: nothing is pulled; the built-in models cannot be removed", async () => {
  const dry = await models(["add", `hf:${repo}`, "--dry-run"])
  expect([dry.status, existsSync(added())]).toEqual([0, false])
  expect(dry.stdout).toContain(`"source": "${source}"`)
  const later = await models(["add", `hf:${repo}`, "--no-pull", "--json"])
  expect([later.status, JSON.parse(later.stdout)]).toMatchObject([
    0,
    { entry: { files: { weights: { sha256: sha256(toy), sizeBytes: toy.length } } }, files: [] },
  ])
  const checked = await models(["check", "toy"])
  expect([checked.status, checked.stdout]).toEqual([
    1,
    expect.stringContaining("toy: it is not pulled: edgewise models pull toy"),
  ])
  // The same again: it is pulled now, and the entry is left as it is.
  const again = await models(["add", `hf:${repo}`])
  expect([again.status, again.stdout]).toEqual([0, expect.stringContaining("has it already")])
  expect((await models(["check", "toy", "--sums"])).status).toBe(0)
  writeFileSync(
    join(dataDir, `weights/hf/${repo}/${commit}/toy-Q8_0.gguf`),
    Buffer.from(toy).fill(0, toy.length - 9),
  )
  const damaged = await models(["check", "toy", "--sums"])
  expect([damaged.status, damaged.stdout]).toEqual([
    1,
    expect.stringContaining("has changed since it arrived"),
  ])
  const builtIn = await models(["remove", "tts-82m"])
  expect([builtIn.status, builtIn.stderr]).toEqual([
    1,
    expect.stringContaining("tts-82m is built in and cannot be removed"),
  ])
})

it("contexts that would not fit once they are full are found before they are", async () => {
  const path = join(dir.path, "long.json")
  const long = join(dir.path, "long.gguf")
  writeToyLlama(long, { contextTokens: 8_192 })
  const model = { ...llamaModel, id: "long", files: { weights: { source: long } } }
  const check = async (slots: number) => {
    writeCatalog(path, [{ ...model, options: { contextTokens: 8_192, slots } }])
    return models(["check", "--memory-mb", "200"], { EDGEWISE_CATALOG: path })
  }
  expect((await check(4)).status).toBe(0)
  const full = await check(256)
  expect([full.status, full.stdout]).toEqual([
    1,
    expect.stringContaining("long: with full contexts it takes"),
  ])
})

it("presets says what of it fits on this machine", async () => {
  const presets = async (memory: string) => {
    const { stdout } = await models(["presets", "--json"], { EDGEWISE_MEMORY_MB: memory })
    return (JSON.parse(stdout) as { presets: ReadonlyArray<{ name: string; fits_here: boolean }> }).presets
  }
  const small = (await presets("1000")).filter(({ fits_here }) => fits_here).map(({ name }) => name)
  expect(small).toContain("whisper-base")
  expect(small).not.toContain("qwen3-8b")
  expect((await presets("8000")).find(({ name }) => name === "qwen3-8b")?.fits_here).toBe(true)
  expect((await models(["presets"])).stdout).toContain("whisper-base")
})

it("the machine's memory decides the check of all models", async () => {
  const { status, stdout } = await models(["check", "--memory-mb", "300"])
  expect(status).toBe(1)
  expect(stdout).toContain("the models that load at the start need")
})
