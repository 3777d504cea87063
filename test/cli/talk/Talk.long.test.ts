// `edgewise talk` as a process, with a server whose answers are known. Its tests wait, so they run at the same time.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { bytesToS16, s16ToBytes } from "#domain/audio/Audio.ts"
import { atRealtimeRate } from "#harness/client/RealtimeRate.ts"
import {
  clipOf,
  type ScriptedConversation,
  scriptedConversation,
} from "../../harness/conversation/ScriptedConversation.ts"
import { edgewise } from "../../support/nodes/NodeProcess.ts"
import { temporaryDir } from "../../support/nodes/TestNode.ts"
import { compiledEnvironment, mainFile } from "../../support/process/CompiledCode.ts"

const dir = temporaryDir()
const clip = clipOf("a", 300)
const file = join(dir.path, "a.wav")
let server: ScriptedConversation

beforeAll(async () => {
  server = await scriptedConversation({ delayMs: () => 50, answerMs: () => 400 })
  writeFileSync(file, clip.bytes)
})
afterAll(async () => {
  await server.close()
  dir.remove()
})

interface Ended {
  readonly status: number | null
  readonly stdout: Buffer
  readonly stderr: string
}

const settings = { EDGEWISE_API_KEY: "k", EDGEWISE_DATA_DIR: dir.path }

const commandLine = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const given = (flag: string) => args.includes(flag)
  const usual = [
    ...(given("--url") ? [] : ["--url", server.url]),
    ...(given("--silence") ? [] : ["--silence", "200"]),
  ]
  return ["talk", ...usual, ...args]
}

const talk = async (args: ReadonlyArray<string>, input?: Uint8Array): Promise<Ended> => {
  const child = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", mainFile, ...commandLine(args)],
    { env: { PATH: process.env.PATH, ...compiledEnvironment(), ...settings } },
  )
  const out: Array<Buffer> = []
  let stderr = ""
  child.stdout.on("data", (data: Buffer) => out.push(data))
  child.stderr.on("data", (data) => {
    stderr += data
  })
  child.stdin.on("error", () => {})
  child.stdin.end(input ?? new Uint8Array(0))
  const [status] = (await once(child, "close")) as [number | null]
  return { status, stdout: Buffer.concat(out), stderr }
}

const loudestOf = (samples: Int16Array): number =>
  samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)

describe.concurrent("files", () => {
  it("are said one after the other; the answers are written in real time", async () => {
    const out = join(dir.path, "out.wav")
    const { status, stderr, stdout } = await talk([file, file, "--out", out])
    expect([status, stderr]).toEqual([0, ""])
    const turn =
      /you {5}…\nyou {5}one two\n {8}transcript \d+ ms, answer \d+ ms, audio \d+ ms after the turn\n {8}voice to voice \d+ ms\n/
    expect(String(stdout)).toMatch(new RegExp(`^(${turn.source}){2}$`))
    const bytes = readFileSync(out)
    expect(bytes.readUInt32LE(40)).toBe(bytes.length - 44)
    expect(bytes.readUInt32LE(4)).toBe(bytes.length - 8)
    const samples = bytesToS16(bytes.subarray(44))
    // Both answers of 400 ms, whole; 2 of 80 samples of the tone are 0.
    const loud = samples.filter((sample) => Math.abs(sample) > 0).length
    expect(loud / 24).toBe(780)
  })

  it("interrupt the answer after a time", async () => {
    const long = await scriptedConversation({
      delayMs: () => 50,
      answerMs: (turn) => (turn === 0 ? 30_000 : 400),
    })
    const { status, stdout } = await talk([
      "--url",
      long.url,
      file,
      file,
      "--interrupt-after",
      "300",
      "--json",
    ])
    await long.close()
    expect(status).toBe(0)
    const documents = String(stdout)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(documents.filter(({ type }) => type === "answer").map(({ status: how }) => how)).toEqual([
      "cancelled",
      "completed",
    ])
  })
})

describe.concurrent("a pipe", () => {
  const sound = () => s16ToBytes(atRealtimeRate(clip.samples))

  it("is the microphone; what is played goes to standard output, what is said to standard error", async () => {
    const { status, stderr, stdout } = await talk(["--out", "-"], sound())
    expect(status).toBe(0)
    expect(stderr).toMatch(/^you {5}…\nyou {5}one two\n {8}transcript/)
    expect(loudestOf(bytesToS16(stdout))).toBeGreaterThan(10_000)
  })

  it("without speech ends in one sentence", async () => {
    const { status, stderr } = await talk([], new Uint8Array(48_000))
    expect([status, stderr]).toEqual([1, "no speech was heard in the sound of the pipe\n"])
  })
})

describe.concurrent("one sentence, and exit status", () => {
  it.each([
    ["1 for a file that is not there", ["none.wav"], 1, /none\.wav: there is no such file/],
    ["1 for a file that is no sound", [mainFile], 1, /not MP3, WAV/],
    ["2 for an interruption of nothing", [file, "--interrupt-after", "5"], 2, /needs two FILEs/],
    ["2 for a silence of 1 ms", [file, "--silence", "1"], 2, /20 to 10000/],
    ["1 for a folder that is not there", [file, "--out", "/none/out.wav"], 1, /no such file/],
    ["1 for a server that is not there", ["--url", "http://127.0.0.1:9", file], 1, /ECONNREFUSED/],
  ] as const)("%s", async (_, args, status, why) => {
    // These need no sound on standard input, and so no process of their own.
    const ended = await edgewise(commandLine(args), settings)
    expect(ended.status).toBe(status)
    expect(ended.stderr).toMatch(why)
    expect(ended.stderr.trim().split("\n")).toHaveLength(1)
  })
})
