// The code that the playground shows, run as it stands: curl in a shell, Python, and TypeScript by Node.
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type CodeRequest, liveSnippets, type Snippets, snippetsOf } from "../../../src/web/api/Snippets.js"
import { talkSnippets } from "../../../src/web/api/TalkSnippets.js"
import { clipBytes, clipSamples, clips } from "../../support/audio/SpeechClips.ts"
import { wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { needs, pythonPath } from "../../support/groups/Needs.ts"
import { builtInModel } from "../../support/nodes/BuiltInModels.ts"
import { startNode, type TestNode, temporaryDir, untilLoaded } from "../../support/nodes/TestNode.ts"

const clip = clips.find(({ seconds }) => seconds > 3)!
const folder = temporaryDir()

let node: TestNode
beforeAll(async () => {
  const ids = ["llm-3.5-27b", "tts-82m", "stt-large-v3-turbo"]
  node = await startNode({ models: ids.map((id) => builtInModel(id)) })
  await untilLoaded(node, ...ids)
})
afterAll(async () => {
  await node.stop()
  folder.remove()
})

/** Runs a program in a new folder with the audio files that the code reads. */
const run = async (
  program: string,
  args: ReadonlyArray<string>,
  code: string,
  file: string,
  pcm = new Uint8Array(clipSamples(clip).buffer),
) => {
  const cwd = mkdtempSync(join(folder.path, "run-"))
  writeFileSync(join(cwd, file), code)
  writeFileSync(join(cwd, "speech.wav"), clipBytes(clip))
  writeFileSync(join(cwd, "speech.pcm"), pcm)
  const env = { ...process.env, EDGEWISE_API_KEY: node.keys.dev, NODE_NO_WARNINGS: "1" }
  const child = spawn(program, [...args, file], { cwd, env })
  let output = ""
  let errors = ""
  child.stdout.on("data", (data: Buffer) => {
    output += data.toString()
  })
  child.stderr.on("data", (data: Buffer) => {
    errors += data.toString()
  })
  const status = await new Promise((resolve) => child.once("exit", resolve))
  expect([status, errors.replaceAll(/^ *%.*$|^.*[\d:-]+$/gm, "").trim()]).toEqual([0, ""])
  return { cwd, output }
}

const programs: Readonly<
  Record<keyof Snippets, (code: string, pcm?: Uint8Array<ArrayBuffer>) => ReturnType<typeof run>>
> = {
  curl: (code) => run("sh", [], code.replace("curl", "curl -sS"), "request.sh"),
  python: (code, pcm) => run(pythonPath, [], code, "request.py", pcm),
  typescript: (code, pcm) => run(process.execPath, [], code, "request.mts", pcm),
}
const languages = [
  ["curl", needs("curl")],
  ["python", needs("pythonClients")],
  ["typescript", {}],
] as const

const requestOf = (path: string, more: Omit<CodeRequest, "base" | "path" | "method">): CodeRequest => ({
  method: "POST",
  base: `${node.base}/`,
  path,
  ...more,
})

describe.each(languages)("%s", (language, needed) => {
  it("chats", needed, async () => {
    const messages = [{ role: "user", content: "What is the capital of Italy? It's \"Rome\", isn't it?" }]
    const json = { model: "llm-3.5-27b", temperature: 0, stream: true, messages }
    const code = snippetsOf(requestOf("/v1/chat/completions", { json, answer: "events" }))[language]
    expect((await programs[language](code)).output).toMatch(/content/)
  })

  it("speaks", needed, async () => {
    const json = {
      model: "tts-82m",
      voice: "af_bella",
      input: "Good morning.",
      stream: true,
      response_format: "pcm",
    }
    const request = requestOf("/v1/audio/speech", { json, answer: "audio", saveAs: "good morning.pcm" })
    const { cwd } = await programs[language](snippetsOf(request)[language])
    expect(readFileSync(join(cwd, "good morning.pcm")).length).toBeGreaterThan(24_000)
  })

  it.each(["&stream=true", "&sync=true"])("transcribes a file with %s", needed, async (mode) => {
    const answer = mode === "&stream=true" ? "events" : "json"
    const path = `/v1/audio/transcriptions?model=stt-large-v3-turbo${mode}`
    const { output } = await programs[language](
      snippetsOf(requestOf(path, { file: "speech.wav", answer }))[language],
    )
    // As JSON, or as Python and Node print an object.
    const texts = [...output.matchAll(/\btext["']?: ?["'](.*?)["'](?=,|\s*\})/g)]
    const heard = texts.at(-1)?.[1] ?? ""
    expect(wordErrorRate([{ reference: clip.text, heard }])).toBeLessThan(0.35)
  })
})

/** Python's takes 15 s to be done. */
const liveLanguages = [
  ["python", { ...needs("pythonClients") }],
  ["typescript", {}],
] as const

// One after the other: a machine with one core has room for one live session at a time.
describe.each(liveLanguages)("%s", (language, needed) => {
  it("captions live", needed, async () => {
    const code = liveSnippets(`${node.base}/`, "/v1/audio/transcriptions/ws?model=stt-large-v3-turbo")
    const { output } = await programs[language](code[language])
    const heard = output.trim().split("\n").at(-1)!.replace("transcript.text.done ", "")
    expect(wordErrorRate([{ reference: clip.text, heard }])).toBeLessThan(0.35)
  })

  it("converses", needed, async () => {
    const headers = { authorization: `Bearer ${node.keys.dev}`, "content-type": "application/json" }
    const body = JSON.stringify({
      model: "tts-82m",
      voice: "af_bella",
      input: "What is the capital of Italy?",
    })
    const spoken = await node.fetch("/v1/audio/speech", { method: "POST", headers, body })
    const speech = Buffer.concat([Buffer.from(await spoken.arrayBuffer()), Buffer.alloc(48_000)])
    const code = talkSnippets(`${node.base}/`, "/v1/realtime?model=llm-3.5-27b", {})
    const { cwd, output } = await programs[language](code[language], Uint8Array.from(speech))
    expect(output).toMatch(/^0\.\d+ +\w+/)
    expect(readFileSync(join(cwd, "answer.pcm")).length).toBeGreaterThan(24_000)
  })
})
