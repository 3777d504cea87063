// A node that was started with a given Node and program, and the three requests that use its engines: speech, the
// transcription of that speech, and a typed answer.
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync } from "node:fs"
import { join } from "node:path"
import { expect } from "vitest"

export interface Serving {
  /** Both outputs so far. */
  readonly printed: () => string
  /** Checks that what is spoken is heard. */
  readonly speakAndTranscribe: () => Promise<void>
  /** An object with a boolean `ok`. */
  readonly answerInJson: () => Promise<unknown>
  /** Ends it as a service manager does. @returns its exit status */
  readonly end: () => Promise<unknown>
  readonly kill: () => Promise<void>
}

/** The first match of each pattern in what the process prints. Fails when it ends. */
const firstMatches = (
  process: ChildProcess,
  text: () => string,
  patterns: ReadonlyArray<RegExp>,
): Promise<ReadonlyArray<string>> =>
  new Promise((resolve, reject) => {
    const look = () => {
      const found = patterns.map((pattern) => pattern.exec(text())?.[1])
      if (found.every((one) => one !== undefined)) resolve(found as ReadonlyArray<string>)
    }
    process.stdout?.on("data", look)
    process.stderr?.on("data", look)
    process.once("exit", (code) => reject(new Error(`it ended with ${code}: ${text().slice(-2_000)}`)))
  })

/**
 * @param program arguments of Node before `serve`
 * @param folder for its data directory
 */
export const serveWith = async (
  node: string,
  program: ReadonlyArray<string>,
  folder: string,
): Promise<Serving> => {
  const data = mkdtempSync(join(folder, "data-"))
  const ports = ["--port", "0", "--auth-port", "0", "--router-port", "0"]
  const started = spawn(node, [...program, "serve", "--data-dir", data, ...ports], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  })
  let text = ""
  for (const stream of [started.stdout, started.stderr])
    stream.setEncoding("utf8").on("data", (more: string) => {
      text += more
    })
  const ended = new Promise((resolve) => started.once("exit", resolve))
  const kill = async () => {
    started.kill("SIGKILL")
    await ended
  }
  try {
    const [base = "", key = ""] = await firstMatches(started, () => text, [
      /edge listening on (\S+)/,
      /key: (svc_\w+)/,
    ])
    const send = async (path: string, body: string | FormData): Promise<Response> => {
      const type = typeof body === "string" ? { "content-type": "application/json" } : {}
      const headers = { authorization: `Bearer ${key}`, ...type }
      const reply = await fetch(`${base}${path}`, { method: "POST", headers, body })
      expect(reply.status, await (reply.ok ? "" : reply.text())).toBe(200)
      return reply
    }
    const speakAndTranscribe = async () => {
      const input = "Please open the window."
      const speech = { model: "tts-82m", voice: "af_bella", input, response_format: "mp3" }
      const form = new FormData()
      form.append("file", await (await send("/v1/audio/speech", JSON.stringify(speech))).blob(), "speech.mp3")
      const heard = await send("/v1/audio/transcriptions?model=stt-large-v3-turbo&sync=true", form)
      expect(await heard.json()).toEqual({ text: input })
    }
    const answerInJson = async () => {
      const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] }
      const request = {
        model: "llm-3.5-27b",
        messages: [{ role: "user", content: "Is it open?" }],
        response_format: { type: "json_schema", json_schema: { name: "answer", schema } },
      }
      const reply = await send("/v1/chat/completions", JSON.stringify(request))
      const { choices } = (await reply.json()) as {
        choices: ReadonlyArray<{ message: { content: string } }>
      }
      return JSON.parse(choices[0]?.message.content ?? "") as unknown
    }
    const end = () => {
      started.kill("SIGTERM")
      return ended
    }
    return { printed: () => text, speakAndTranscribe, answerInJson, end, kill }
  } catch (error) {
    await kill()
    throw error
  }
}
