// Requests of text endpoints that are refused: the status, and the path at which the detail begins.
import { expect } from "vitest"
import type { TestNode } from "../nodes/TestNode.ts"

export const userSays = (content: string) => ({ role: "user", content })

/** A tool. */
export const fn = (name: unknown, more: object = {}) => ({ type: "function", function: { name, ...more } })

/** `node` is called with each request: a file's node starts after its tests are defined. */
export const refusals = (node: () => TestNode) => {
  /** Fields of a chat, or a whole body as text. */
  const send = async (more: object | string, path = "/v1/chat/completions") => {
    const chat = { model: "fake", messages: [userSays("hi")] }
    const response = await node().fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${node().keys.credit}` },
      body: typeof more === "string" ? more : JSON.stringify({ ...chat, ...more }),
    })
    const { detail = "" } = (await response.json()) as { detail?: string }
    return { status: response.status, detail }
  }
  const expectRefusal = async (more: object | string, start: string, path?: string) => {
    const { detail, status } = await send(more, path)
    expect([status, detail.slice(0, start.length + 2)]).toEqual([400, `${start}: `])
    expect(detail.length).toBeLessThan(300)
  }
  return { send, expectRefusal }
}
