// `edgewise bench` as users start it: results and reports of a stock server without a key, and one sentence for each mistake.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readResult } from "#harness/report/Result.ts"
import { allRequests, clientPart } from "#harness/report/Summarize.ts"
import { figuresIn } from "../../harness/report/SectionFigures.ts"
import { paced, type ScriptedServer, scriptedServer } from "../../harness/ScriptedServer.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { edgewise, edgewiseProcess } from "../../support/nodes/NodeProcess.ts"
import { temporaryDir } from "../../support/process/TemporaryDir.ts"

const dir = temporaryDir()
let server: ScriptedServer
let closed: ScriptedServer
let asked = ""

beforeAll(async () => {
  server = await scriptedServer({
    "/v1/models": (request, r) => {
      asked = String(request.headers.authorization)
      r.end('{"object":"list","data":[{"id":"kokoro"},{"id":"whisper-1"},{"id":"qwen"}]}')
    },
    "/v1/chat/completions": (request, response, body) =>
      // Like a server that does not know `stream_options`.
      body.includes("stream_options")
        ? response.writeHead(400).end('{"error":{"message":"unknown field"}}')
        : paced({ ttftMs: 5, itlMs: 1, tokens: 4 })(request, response, body),
    "/closed/v1/models": (_, response) => response.writeHead(401).end('{"error":{"message":"no key given"}}'),
  })
  closed = await scriptedServer({})
  await closed.close()
})
afterAll(async () => {
  await server.close()
  dir.remove()
})

const bench = (...args: ReadonlyArray<string>) =>
  edgewiseProcess(["bench", ...args], { EDGEWISE_DATA_DIR: join(dir.path, "none") })
const short = ["--duration", "1", "--warmup", "0.2"]

it("measures a stock server without a key, and compares results", async () => {
  const [out, html] = [join(dir.path, "a.json"), join(dir.path, "a.html")]
  const target = ["--target", `${server.url}/v1/`]
  const ran = await bench("text", ...target, ...short, "--rate", "40", "--out", out, "--html", html)
  expect([ran.status, ran.stderr]).toEqual([0, ""])
  expect(asked).toBe("undefined")
  expect(ran.stdout).toContain("ttft")
  const result = readResult(readFileSync(out, "utf8"), out)
  const all = figuresIn(result.sections[0], allRequests)
  expect(all.failed!.median).toBe(0)
  expect(all.requests!.median).toBeGreaterThan(15)
  expect(result.settings).toMatchObject({ text: { model: "qwen" } })
  expect(result.target).toMatchObject({
    url: server.url,
    reported: { models: ["kokoro", "whisper-1", "qwen"] },
  })
  expect(figuresIn(result.sections[0], clientPart)["processor time of a request"]!.median).toBeGreaterThan(0)
  const page = readFileSync(html, "utf8")
  expect(page).toContain("time to first token")
  // One file that fetches nothing.
  expect(page.replaceAll(server.url, "")).not.toMatch(/https?:|<script|@import|url\(/)

  const compared = await bench("compare", out, out, "--json")
  const { differences, ratios } = JSON.parse(compared.stdout) as {
    readonly differences: ReadonlyArray<string>
    readonly ratios: ReadonlyArray<{ readonly differs: boolean; readonly ratio: { readonly value: number } }>
  }
  // A busy machine is named.
  const others = differences.filter((each) => !each.includes("the client limited this result"))
  expect([compared.status, others]).toEqual([0, []])
  expect(ratios.length).toBeGreaterThan(10)
  for (const { differs, ratio } of ratios) expect([ratio.value, differs]).toEqual([1, false])
})

it("prints one document with --json, and is 1 where every request failed", async () => {
  const ran = await bench("speech", "--target", server.url, ...short, "--json")
  expect(ran.status).toBe(1)
  expect(ran.stderr).toContain("the first speech request failed: status 404 (404)")
  const printed = await bench("text", "--target", server.url, ...short, "--requests", "3", "--json")
  expect(JSON.parse(printed.stdout)).toMatchObject({ form: "edgewise-result", version: 1 })
})

describe("a server that limits requests", () => {
  const limited = (title: string) =>
    scriptedServer({
      "/v1/models": (_, r) => r.writeHead(200, { "x-ratelimit-limit": "120" }).end('{"data":[{"id":"a"}]}'),
      "/openapi.json": (_, r) => r.end(JSON.stringify({ info: { title } })),
      "/v1/chat/completions": paced({ ttftMs: 1, itlMs: 1, tokens: 2 }),
    })
  const run = async (title: string, ...load: ReadonlyArray<string>) => {
    const target = await limited(title)
    const ran = await edgewise(["bench", "text", "--target", target.url, ...short, ...load])
    await target.close()
    expect(ran.status).toBe(0)
    return ran.stderr
  }

  it("is named before the run, with what to set", async () => {
    expect(await run("edgewise", "--concurrency", "1", "--requests", "2")).toBe(
      "this node answers 120 requests a minute of one user and refuses more with 429, which count as failures: start it with EDGEWISE_RATE_LIMIT=0 to measure it, or stay below with --rate 2\n",
    )
    expect(await run("another", "--rate", "20")).toMatch(
      /^the server says that it limits requests \(120\); .*--rate\n$/,
    )
  })

  it("is not named where the load stays within it", inLong, async () => {
    expect(await run("edgewise", "--rate", "2")).toBe("")
  })
})

/** Without a process for each. */
const mistaken = (...args: ReadonlyArray<string>) =>
  edgewise(["bench", ...args], { EDGEWISE_DATA_DIR: join(dir.path, "none") })

describe("one sentence, and exit status 2 for", () => {
  const target = () => ["--target", server.url]
  it.each<readonly [string, () => ReadonlyArray<string>, string]>([
    ["a wrong suite", () => ["tekst", ...target()], "tekst"],
    [
      "a wrong objective",
      () => ["text", ...target(), "--objective", "tftt<1s"],
      '--objective: "tftt<1s": no figure tftt',
    ],
    ["a ramp without one", () => ["text", ...target(), "--ramp"], "--ramp needs an --objective"],
    ["two loads", () => ["text", ...target(), "--rate", "1", "--concurrency", "1"], "exclude each other"],
    ["no address", () => ["text", "--target", "localhost"], "--target: localhost is not an address"],
    [
      "a password in the address",
      () => ["text", "--target", "http://a:b@localhost"],
      "give --key or --header",
    ],
    ["a rate of 0", () => ["text", ...target(), "--rate", "0"], "a number from 0.001"],
    ["a header without a value", () => ["text", ...target(), "--header", "x"], "NAME:VALUE"],
    ["a field without a value", () => ["text", ...target(), "--field", "x"], "NAME=JSON"],
    [
      "data that is not there",
      () => ["text", ...target(), "--data", "/nowhere"],
      "--data: /nowhere: there is no such file or folder",
    ],
    ["a mix of nothing", () => ["mixed", ...target(), "--mix", "tekst=1"], '--mix: "tekst" is none of'],
    [
      "a folder that is not there",
      () => ["text", ...target(), "--out", "/nowhere/a.json"],
      "/nowhere: there is no such file or folder",
    ],
    [
      "a comparison with something else",
      () => ["compare", noResult(), noResult()],
      "is no result: it has another form than edgewise-result",
    ],
  ])("%s", async (_, args, message) => {
    const ran = await mistaken(...args())
    expect([ran.status, ran.stdout]).toEqual([2, ""])
    expect(ran.stderr).toContain(message)
    expect(ran.stderr.trimEnd().split("\n").length).toBe(1)
  })
})

const noResult = (): string => {
  const path = join(dir.path, "b.json")
  writeFileSync(path, "{}")
  return path
}

describe("one sentence, and exit status 1 for", () => {
  it.each<readonly [string, () => ReadonlyArray<string>, () => string]>([
    [
      "a port where nothing listens",
      () => ["text", "--target", closed.url],
      () => `nothing listens at ${closed.url}`,
    ],
    [
      "a refused key",
      () => ["text", "--target", `${server.url}/closed`],
      () =>
        "the server refused the key (401): no key given; give --key; edgewise keys create --org NAME makes one for a node of edgewise",
    ],
  ])("%s", async (_, args, message) => {
    const ran = await mistaken(...args())
    expect([ran.status, ran.stdout]).toEqual([1, ""])
    expect(ran.stderr).toBe(`${message()}\n`)
  })
})
