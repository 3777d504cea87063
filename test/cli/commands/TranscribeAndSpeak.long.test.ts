// `edgewise transcribe` and `edgewise speak` as real programs against a real node: what they print and write where,
// where they find their key, and the one line they print when something is wrong.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import { lineOf, progressLine } from "#cli/shared/ProgressLine.ts"
import { parseSrt, parseVtt } from "../../support/audio/Captions.ts"
import { clipPath, clips, sparseWav } from "../../support/audio/SpeechClips.ts"
import { wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import {
  metered,
  model,
  post,
  untilNoUploads,
  uploads,
  whisper,
} from "../../support/clients/TranscriptionClient.ts"
import { edgewise, edgewiseProcess, startCommand } from "../../support/nodes/NodeProcess.ts"
import { fakeVoice, presetModel } from "../../support/nodes/SpeechNode.ts"
import { eventually, startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-cli-audio-"))
const clip = clips[1]!
const file = clipPath(clip)
/** Its jobs end only by being cancelled: a call takes it longer than any test. */
const stuck = listener({ callMs: 100_000 }, { id: "stuck-listener" })
let node: TestNode
let heard = ""
/** Flags that find the node, and a directory without a key. */
let there: ReadonlyArray<string> = []
const nowhere = { EDGEWISE_DATA_DIR: join(folder, "nowhere") }

beforeAll(async () => {
  node = await startNode({ models: [whisper, presetModel, fakeVoice, stuck] })
  there = ["--url", node.base, "--key", node.keys.dev]
  const response = await post(node, readFileSync(file) as Uint8Array<ArrayBuffer>, {
    query: { model, sync: "1" },
  })
  heard = ((await response.json()) as { text: string }).text
})
afterAll(async () => {
  await node.stop()
  rmSync(folder, { recursive: true, force: true })
})

const ran = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = nowhere) =>
  edgewise(args, env)

describe("edgewise transcribe", () => {
  it("prints the text and nothing else, and leaves nothing on the node", async () => {
    const right = { status: 0, stdout: `${heard}\n`, stderr: "" }
    expect(await edgewiseProcess(["transcribe", file, ...there], nowhere)).toEqual(right)
    await untilNoUploads(node.dataDir)
  })

  it("prints every format", async () => {
    const as = async (format: string) => {
      const { status, stderr, stdout } = await ran(["transcribe", file, "--format", format, ...there])
      expect([status, stderr]).toEqual([0, ""])
      return stdout
    }
    const [json, verbose, srt, vtt] = await Promise.all(["json", "verbose_json", "srt", "vtt"].map(as))
    expect(JSON.parse(json!)).toEqual({ text: heard })
    expect(JSON.parse(verbose!)).toMatchObject({ text: heard, language: "en", segments: expect.any(Array) })
    expect(JSON.parse(verbose!)).not.toHaveProperty("job_id")
    const said = (cues: ReadonlyArray<{ readonly text: string }>) => cues.map(({ text }) => text).join(" ")
    expect(said(parseSrt(srt!))).toBe(heard)
    expect(said(parseVtt(vtt!))).toBe(heard)
  })

  it("prints words as they are transcribed", async () => {
    const { status, stderr, stdout } = await ran(["transcribe", file, "--stream", ...there])
    expect([status, stderr, stdout]).toEqual([0, "", `${heard}\n`])
  })

  it("finds its key in the environment, or in the node's data directory", async () => {
    const env = { ...nowhere, EDGEWISE_API_KEY: node.keys.credit }
    expect((await ran(["transcribe", file, "--url", node.base], env)).stdout).toBe(`${heard}\n`)
    expect((await metered(node, "credit")).requests).toBe(1)
    writeFileSync(join(node.dataDir, "dev-key"), `${node.keys.dev}\n`)
    const home = { EDGEWISE_DATA_DIR: node.dataDir, EDGEWISE_PORT: String(node.port) }
    expect((await ran(["transcribe", file], home)).stdout).toBe(`${heard}\n`)
    expect(await ran(["transcribe", file, "--url", node.base])).toEqual({
      status: 1,
      stdout: "",
      stderr: expect.stringMatching(/^no API key: [^\n]+\n$/),
    })
  })

  const wrong: ReadonlyArray<readonly [string, number, RegExp, () => ReadonlyArray<string>]> = [
    [
      "no such file",
      1,
      /none\.wav: there is no such file or folder$/,
      () => ["transcribe", join(folder, "none.wav"), ...there],
    ],
    ["no audio", 1, /^file: .*is not MP3/, () => ["transcribe", join(folder, "text"), ...there]],
    [
      "an unknown model",
      1,
      /^Model not loaded \(404\)$/,
      () => ["transcribe", file, "--model", "x", ...there],
    ],
    ["a bad language", 1, /^language: /, () => ["transcribe", file, "--language", "xx", ...there]],
    [
      "a bad key",
      1,
      /^Invalid API key \(401\)$/,
      () => ["transcribe", file, "--url", node.base, "--key", `svc_${"A".repeat(32)}`],
    ],
    [
      "no node there",
      1,
      /^no node answers at http:\/\/127\.0\.0\.1:1;/,
      () => ["transcribe", file, "--url", "http://127.0.0.1:1", "--key", "k"],
    ],
    ["no address", 1, /is not an address/, () => ["transcribe", file, "--url", "ftp://x", "--key", "k"]],
    ["an unknown format", 2, /format/, () => ["transcribe", file, "--format", "xml", ...there]],
    [
      "a stream of captions",
      2,
      /--stream prints text/,
      () => ["transcribe", file, "--stream", "--format", "srt", ...there],
    ],
    ["no file", 2, /FILE/i, () => ["transcribe", ...there]],
  ]
  it.each(wrong)("%s", async (_, status, line, args) => {
    writeFileSync(join(folder, "text"), "Once upon a time")
    const done = await ran(args())
    expect([done.status, done.stdout]).toEqual([status, ""])
    expect(done.stderr).toMatch(/^[^\n]+\n$/)
    expect(done.stderr.trim()).toMatch(line)
  })

  it("that is broken off cancels its job", async () => {
    const long = join(folder, "long.wav")
    writeFileSync(long, sparseWav(20))
    const command = startCommand(["transcribe", long, "--model", stuck.id, ...there], nowhere)
    await eventually(
      () => uploads(node.dataDir).length === 1 && node.gauges(stuck.id).open > 0,
      "the job is at work",
    )
    command.signal("SIGINT")
    expect(await command.finished).toMatchObject({ status: 1, stdout: "", stderr: "interrupted\n" })
    await untilNoUploads(node.dataDir)
  })
})

describe("edgewise speak", () => {
  it.each([
    ["wav", "RIFF", []],
    ["mp3", "\u00ff", []],
    ["ogg", "OggS", []],
    ["bin", "OggS", ["--format", "opus"]],
  ] as const)("writes a .%s file", async (extension, magic, more) => {
    const out = join(folder, `spoken.${extension}`)
    const args = ["speak", clip.text, "--out", out, "--voice", "am_adam", "--speed", "1.1", ...more, ...there]
    const done = await ran(args)
    expect(done).toEqual({ status: 0, stdout: expect.stringMatching(/bytes of/), stderr: "" })
    const bytes = readFileSync(out)
    expect(bytes.subarray(0, magic.length).toString("latin1")).toBe(magic)
    expect(existsSync(`${out}.part`)).toBe(false)
  })

  it("and transcribe understand each other", async () => {
    const out = join(folder, "there-and-back.wav")
    const reference = "Your appointment with the dentist is on Monday at nine thirty."
    expect((await ran(["speak", reference, "--out", out, ...there])).status).toBe(0)
    const { stdout } = await ran(["transcribe", out, ...there])
    expect(wordErrorRate([{ reference, heard: stdout }])).toBeLessThan(0.4)
  })

  it.each([
    ["an unknown voice", 1, /\(502\)$/, ["--voice", "unknown"]],
    ["a bad speed", 1, /^speed: /, ["--speed", "9"]],
    ["no number", 2, /speed/, ["--speed", "fast"]],
  ] as const)("%s leaves one line and no file", async (_, status, line, more) => {
    const target = join(folder, "empty")
    mkdirSync(target, { recursive: true })
    const done = await ran(["speak", "Hello.", "--out", join(target, "x.wav"), ...more, ...there])
    expect([done.status, done.stdout]).toEqual([status, ""])
    expect(done.stderr.trim()).toMatch(line)
    expect(readdirSync(target)).toEqual([])
  })

  it("a missing folder is reported before speech is requested", async () => {
    const done = await ran(["speak", "Hello.", "--out", join(folder, "none", "x.wav"), ...there])
    expect(done).toMatchObject({
      status: 1,
      stdout: "",
      stderr: `${join(folder, "none")}: there is no such folder\n`,
    })
  })
})

describe("the progress line", () => {
  it("is a bar where the end is known, and a clock where it is not", () => {
    expect(lineOf("sending", 0.5, 3)).toBe(`sending        ${"█".repeat(12)}${"░".repeat(12)}  50 %`)
    expect(lineOf("sending", 1, 3)).toBe(`sending        ${"█".repeat(24)} 100 %`)
    expect(lineOf("transcribing", undefined, 61.9)).toBe("transcribing   61 s")
  })

  it.effect("is drawn on terminals alone, and wiped at the end", () =>
    Effect.gen(function* () {
      const watch = Effect.fnUntraced(function* (isTTY: boolean) {
        const written: Array<string> = []
        const terminal = { isTTY, columns: 30, write: (text: string) => void written.push(text) }
        const scope = yield* Scope.make()
        const line = yield* Scope.provide(progressLine(terminal), scope)
        line.show("sending", 0.25)
        yield* TestClock.adjust(250)
        yield* Scope.close(scope, Exit.void)
        return written
      })
      expect(yield* watch(false)).toEqual([])
      const drawn = yield* watch(true)
      expect(drawn).toHaveLength(3)
      expect(drawn.at(-1)).toBe("\r\u001b[K")
      for (const text of drawn) expect(text.replace("\r\u001b[K", "").length).toBeLessThan(30)
    }),
  )
})
