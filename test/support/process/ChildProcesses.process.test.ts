// Signals to processes that may have ended in the meantime.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { expect, it } from "vitest"
import { signalIfRunning } from "./ChildProcesses.ts"

it("a signal reaches a running process, and one that has ended is no error", async () => {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"], { stdio: "ignore" })
  const exited = once(child, "exit")
  expect(signalIfRunning(child.pid!, "SIGKILL")).toBe(true)
  await exited
  expect(signalIfRunning(child.pid!, "SIGKILL")).toBe(false)
})
