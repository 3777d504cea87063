// `edgewise chat` as a process: one question from an argument or a pipe, and a conversation on a terminal, which the program
// `script` provides.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { needs } from "../../support/groups/Needs.ts"
import { edgewise, startCommand } from "../../support/nodes/NodeProcess.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import {
  eventually,
  startNode,
  type TestNode,
  temporaryDir,
  untilIdle,
} from "../../support/nodes/TestNode.ts"
import { mainFile } from "../../support/process/CompiledCode.ts"

const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="

const dir = temporaryDir()
let node: TestNode
beforeAll(async () => {
  node = await startNode({
    models: [
      fakeModel,
      { ...fakeModel, id: "sees", options: { pictures: { maxPixels: 1_000_000 } } },
      { id: "unpriced", kind: "embedding", adapter: "fake-embedding" },
    ],
  })
})
afterAll(async () => {
  dir.remove()
  await node.stop()
})

const env = () => ({ EDGEWISE_API_KEY: node.keys.dev, EDGEWISE_DATA_DIR: dir.path })
const chat = (...args: ReadonlyArray<string>) => edgewise(["chat", "--url", node.base, ...args], env())
const script = (steps: object) => `fake:${JSON.stringify(steps)}`

describe("one question", () => {
  it("answers on standard output, with a receipt on standard error and no colours", async () => {
    const { status, stderr, stdout } = await chat(script({ tokens: 3, reasoning: "hm" }), "--effort", "low")
    expect([status, stdout]).toEqual([0, " token token token\n"])
    expect(stderr).toMatch(
      /^hm\nfirst token \d+\.\d\d s, 4 tokens in \d+\.\d\d s, [\d.]+ tokens\/s, 0\.\d+ USD, receipt rcpt_\w+\n$/,
    )
  })

  it("from a pipe is answered with --json in one document", async () => {
    const args = ["--disable-warning=ExperimentalWarning", mainFile, "chat", "--url", node.base, "--json"]
    const child = spawn(process.execPath, args, { env: { PATH: process.env.PATH, ...env() } })
    let stdout = ""
    child.stdout.on("data", (data) => {
      stdout += data
    })
    child.stdin.end(`${script({ tokens: 2, text: " \u009b2J" })}\n`)
    await once(child, "close")
    expect(stdout).not.toContain("\u009b")
    expect(JSON.parse(stdout)).toEqual({
      model: "fake",
      text: " \u009b2J \u009b2J",
      finish_reason: "stop",
      prompt_tokens: 2,
      completion_tokens: 2,
      first_token_ms: expect.any(Number),
      total_ms: expect.any(Number),
      micro_dollars: expect.any(Number),
      receipt_id: expect.stringMatching(/^rcpt_/),
    })
  })

  it("shows control characters of the answer instead of obeying them", async () => {
    const { stdout } = await chat(script({ tokens: 1, text: "\u001b]0;owned\u0007\u009b2J" }))
    expect(stdout).toBe("␛]0;owned␇\ufffd2J\n")
  })

  it("takes a picture for a model that sees, and refuses one for a model that does not", async () => {
    const file = join(dir.path, "pixel.png")
    writeFileSync(file, Buffer.from(pixel, "base64"))
    const seen = await chat("what is it?", "--image", file, "--model", "sees")
    expect([seen.status, seen.stdout]).toEqual([0, expect.stringContaining("1x1")])
    const refused = await chat("what is it?", "--image", file)
    expect([refused.status, refused.stderr]).toEqual([1, "fake takes no pictures\n"])
    const wrong = await chat("what is it?", "--image", mainFile, "--model", "sees")
    expect([wrong.status, wrong.stderr]).toEqual([
      1,
      `${mainFile}: is not a PNG, JPEG, WebP, GIF or BMP file\n`,
    ])
  })

  it.each([
    [["hi", "--model", "none"], 1, "Model not loaded (404)"],
    [["hi", "--key", "svc_wrong"], 1, "Invalid API key (401)"],
    [["hi", "--max-tokens", "0"], 1, "max_tokens: "],
    [["  "], 2, "the question is empty (see edgewise chat --help)"],
    [["hi", "--image", "/nowhere"], 1, "/nowhere"],
  ])("%j fails in one line", async (args, status, line) => {
    const failed = await chat(...args)
    expect([failed.status, failed.stdout]).toEqual([status, ""])
    expect(failed.stderr.split("\n")).toEqual([expect.stringContaining(line), ""])
  })

  it("fails where no node is", async () => {
    const { status, stderr } = await edgewise(["chat", "--url", "http://127.0.0.1:1", "hi"], env())
    expect([status, stderr]).toEqual([1, expect.stringContaining("no node answers at http://127.0.0.1:1")])
  })

  it("is cancelled by SIGINT, on the node too", async () => {
    const question = script({ tokens: 100_000, tokenMs: 20 })
    const command = startCommand(["chat", "--url", node.base, question, "--max-tokens", "4096"], env())
    await eventually(() => command.stdout().includes("token"), "the answer has begun")
    command.signal("SIGINT")
    expect((await command.finished).status).toBe(1)
    await untilIdle(node)
  })
})

/** A chat on a terminal of its own. */
const onTerminal = (more: Readonly<Record<string, string>> = {}) => {
  const command = `${process.execPath} --disable-warning=ExperimentalWarning ${mainFile} chat --url ${node.base}`
  const child = spawn("script", ["-qfec", command, "/dev/null"], {
    env: { PATH: process.env.PATH, TERM: "xterm", SHELL: "/bin/sh", ...env(), ...more },
  })
  let shown = ""
  child.stdout.on("data", (data) => {
    shown += data
  })
  const ended = once(child, "close").then(([status]) => status as number)
  /** Waits until new output holds `text`, and returns that output. */
  const until = async (text: string): Promise<string> => {
    await eventually(() => shown.includes(text), `the terminal shows ${text} behind ${shown}`)
    const before = shown.slice(0, shown.indexOf(text) + text.length)
    shown = shown.slice(before.length)
    return before
  }
  return { type: (keys: string) => void child.stdin.write(keys), until, ended, rest: () => shown }
}

describe("a conversation", () => {
  it("remembers, obeys its commands, stops at Ctrl-C and ends at two", needs("script"), async () => {
    const { ended, rest, type, until } = onTerminal()
    expect(await until("> ")).toContain(`fake at ${node.base}; /help shows the commands`)
    type("/model\r")
    expect(await until("  sees (takes pictures)")).toContain("* fake")
    type("/system be brief\r")
    await until("system: be brief")
    type(`${script({ tokens: 2, reasoning: "hm", text: " \u001b[31m" })}\r`)
    // Nothing of the answer is obeyed; only the notes are dimmed.
    expect(await until("receipt")).toContain(" ␛[31m ␛[31m")
    type(`${script({ tokens: 4_000, tokenMs: 20 })}\r`)
    await until("token token")
    type("\u0003")
    await until("stopped after")
    await untilIdle(node)
    // The commands wait while an answer runs; the saved conversation holds what was shown of the stopped one.
    const file = join(dir.path, "saved.json")
    type(`/save ${file}\r`)
    await until(`saved in ${file}`)
    const saved = JSON.parse(readFileSync(file, "utf8")) as ReadonlyArray<{ role: string; content: string }>
    expect(saved.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user", "assistant"])
    expect(saved[4]?.content).toMatch(/^( token)+$/)
    type(`/save ${file}\r`)
    await until("EEXIST")
    type("/clear\r")
    await until("the conversation is forgotten")
    type("/nothing\r")
    await until("/nothing is no command; /help shows them")
    type("\u0003")
    await until("Ctrl-C again, or Ctrl-D, ends the chat")
    type("\u0003")
    expect(await ended).toBe(0)
    expect(rest()).not.toContain("Error")
    expect(existsSync(file)).toBe(true)
  })

  it("goes on after a refusal, without colours where NO_COLOR is set", needs("script"), async () => {
    const { ended, type, until } = onTerminal({ NO_COLOR: "1" })
    await until("> ")
    type(`${script({ refuses: { field: "messages", detail: "is refused" } })}\r`)
    await until("messages: is refused (400)")
    type(`${script({ tokens: 1, request: true })}\r`)
    expect(await until("receipt")).not.toContain("\u001b[2m")
    type("/exit\r")
    expect(await ended).toBe(0)
  })
})
