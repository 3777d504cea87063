// Signals to processes that may have ended in the meantime, and the processes below another one.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { expect, it } from "vitest"
import { descendants, signalIfRunning } from "./ChildProcesses.ts"

it("a signal reaches a running process, and one that has ended is no error", async () => {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"], { stdio: "ignore" })
  const exited = once(child, "exit")
  expect(signalIfRunning(child.pid!, "SIGKILL")).toBe(true)
  await exited
  expect(signalIfRunning(child.pid!, "SIGKILL")).toBe(false)
})

it("a process is below those that have started it and what started it", async () => {
  const child = spawn("sh", ["-c", "sleep 1000 & echo $!; wait"], { stdio: ["ignore", "pipe", "ignore"] })
  const exited = once(child, "exit")
  const grandchild = Number(String((await once(child.stdout, "data"))[0]))
  expect(descendants(child.pid)).toEqual([grandchild])
  expect(descendants()).toEqual(expect.arrayContaining([child.pid, grandchild]))
  for (const pid of [grandchild, child.pid!]) signalIfRunning(pid, "SIGKILL")
  await exited
  expect(descendants(child.pid)).toEqual([])
})
