// What the gateway makes of a decoder process's messages, with a child that sends what the test says.
import type { ChildProcess } from "node:child_process"
import { EventEmitter } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "@effect/vitest"
import { DecoderProcess } from "#audio/DecoderProcess.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-decoder-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const path = join(folder, "upload")
writeFileSync(path, "audio")

const end = { t: "end", totals: { samples: 0 } }

const started = () => {
  const child = Object.assign(new EventEmitter(), {
    pid: undefined,
    connected: true,
    send: () => true,
    kill: () => true,
  })
  return {
    child,
    decoder: new DecoderProcess(
      () => {},
      () => child as unknown as ChildProcess,
    ),
  }
}

it("is given another file after its end", async () => {
  const { child, decoder } = started()
  decoder.decode({ path } as never, () => {})
  expect(decoder.reusable).toBe(false)
  child.emit("message", end)
  expect(decoder.reusable).toBe(true)
  await decoder.takeBack()
  child.emit("exit", 0, null)
})

it("is given no other file once it was killed, even if its end arrives after that", async () => {
  const { child, decoder } = started()
  decoder.decode({ path } as never, () => {})
  decoder.detach()
  decoder.kill()
  // It stood in the pipe already.
  child.emit("message", end)
  expect(decoder.reusable).toBe(false)
  await decoder.takeBack()
  child.emit("exit", null, "SIGKILL")
})
