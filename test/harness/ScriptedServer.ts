// A server of the OpenAI API that does exactly what a test says: over real HTTP on a port of 127.0.0.1.
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import type { Target } from "#harness/client/Exchange.ts"
import { startLoopbackServer } from "../support/servers/LoopbackServer.ts"

export type Answer = (request: IncomingMessage, response: ServerResponse, body: Buffer) => unknown

export interface ScriptedServer {
  readonly target: Target
  readonly url: string
  readonly server: Server
  /** Requests so far, by path. */
  readonly asked: Map<string, number>
  readonly close: () => Promise<void>
}

/** @param answers by path; others get 404 */
export const scriptedServer = async (answers: Readonly<Record<string, Answer>>): Promise<ScriptedServer> => {
  const asked = new Map<string, number>()
  const { server, stop, url } = await startLoopbackServer(async (request, response) => {
    const chunks: Array<Buffer> = []
    // A client that leaves is not this server's failure.
    response.on("error", () => {})
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const path = (request.url ?? "").split("?")[0] ?? ""
      asked.set(path, (asked.get(path) ?? 0) + 1)
      const answer = answers[path]
      if (answer === undefined) response.writeHead(404).end()
      else await answer(request, response, Buffer.concat(chunks))
    } catch {
      response.destroy()
    }
  })
  return {
    server,
    url,
    asked,
    target: { base: url, headers: {}, timeoutMs: 20_000 },
    close: stop,
  }
}

export const chunkOf = (delta: object, rest: object = {}): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, ...rest }] })}\n\n`

export const sse = (response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.flushHeaders()
}

/** When a request was read and each token of its reply written; `performance.now()`, which the client in this process reads, too. */
export interface Written {
  readonly askedMs: number
  readonly tokensMs: Array<number>
}

/** Streams tokens: the first after `ttftMs`, the others `itlMs` apart, one of them later by `gapMs`. Adds to `written` what it did. */
export const paced =
  (
    script: {
      readonly ttftMs: number
      readonly itlMs: number
      readonly tokens: number
      readonly gapMs?: number
    },
    written: Array<Written> = [],
  ): Answer =>
  async (_, response) => {
    const askedMs = performance.now()
    const tokensMs: Array<number> = []
    written.push({ askedMs, tokensMs })
    sse(response)
    response.write(chunkOf({ role: "assistant", content: "" }))
    let dueMs = askedMs + script.ttftMs
    for (let nth = 0; nth < script.tokens; nth++) {
      await sleep(Math.max(0, dueMs - performance.now()))
      tokensMs.push(performance.now())
      response.write(chunkOf({ content: `t${nth} ` }))
      dueMs += script.itlMs + (nth === 1 ? (script.gapMs ?? 0) : 0)
    }
    response.end(`${chunkOf({}, { finish_reason: "stop" })}data: [DONE]\n\n`)
  }
