// The memory limit of an engine, set on a real process: memory that it has stays, and growth beyond the bound is refused.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { dataBytesOf, limitMemory } from "#actors/engine/EngineMemoryLimit.ts"
import { needs } from "../../support/groups/Needs.ts"

const mib = 1024 ** 2

/** For each input line allocates and fills that many MiB, and answers with a line. */
const program = `
  const held = []
  console.log("begun")
  require("node:readline").createInterface({ input: process.stdin }).on("line", (mib) => {
    try {
      held.push(Buffer.alloc(Number(mib) * ${mib}, 1))
      console.log("given")
    } catch (error) {
      console.log("refused " + error.name)
    }
  })`

/** Its memory does not change until `SIGCONT`: the test and the limit read the same. */
const stopped = async (child: ChildProcess): Promise<{ readonly pid: number; readonly loaded: number }> => {
  const pid = child.pid ?? 0
  child.kill("SIGSTOP")
  const states = () =>
    readdirSync(`/proc/${pid}/task`).map(
      (thread) => /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8"))?.[1],
    )
  // Each thread stops by itself, a busy one when it has a processor again.
  await expect.poll(() => [...new Set(states())]).toEqual(["T"])
  return { pid, loaded: dataBytesOf(pid) ?? 0 }
}

it("lets a loaded process grow by a bound and no further", needs("rlimits"), async () => {
  const child = spawn(process.execPath, ["-e", program], { stdio: ["pipe", "pipe", "inherit"] })
  try {
    const answer = async (): Promise<string> => String((await once(child.stdout, "data"))[0]).trim()
    const ask = (size: number): Promise<string> => {
      child.stdin.write(`${size}\n`)
      return answer()
    }
    expect(await answer()).toBe("begun")
    const { loaded, pid } = await stopped(child)
    limitMemory(pid, { growthBytes: 512 * mib })
    await expect
      .poll(() => readFileSync(`/proc/${pid}/limits`, "utf8"))
      .toMatch(new RegExp(`Max data size\\s+${loaded + Math.max(512 * mib, loaded)}\\s`))
    child.kill("SIGCONT")
    expect(await ask(256)).toBe("given")
    expect(await ask(2_048)).toBe("refused RangeError")
    expect(await ask(16)).toBe("given")
  } finally {
    child.kill("SIGKILL")
  }
})

it("counts the weights again where they may be opened a second time", needs("rlimits"), async () => {
  const child = spawn(process.execPath, ["-e", program], { stdio: ["pipe", "pipe", "inherit"] })
  try {
    await once(child.stdout, "data")
    const { loaded, pid } = await stopped(child)
    limitMemory(pid, { growthBytes: 512 * mib, secondCopy: true })
    await expect
      .poll(() => readFileSync(`/proc/${pid}/limits`, "utf8"))
      .toMatch(new RegExp(`Max data size\\s+${2 * loaded + Math.max(512 * mib, loaded)}\\s`))
  } finally {
    child.kill("SIGKILL")
  }
})

it("does nothing for a process that has ended", () => {
  expect(dataBytesOf(2 ** 22 + 1)).toBeUndefined()
  limitMemory(2 ** 22 + 1)
})
