// bin/child.js with a made-up program, which ends as a test says: which ends are followed by a restart, and how the command ends.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { root } from "../map/ReadImports.ts"
import { eventually } from "../support/nodes/TestNode.ts"

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "edgewise-restart-"))
  for (const name of ["bin", "src"]) mkdirSync(join(folder, name))
  for (const name of ["edgewise.js", "child.js"]) cpSync(join(root, "bin", name), join(folder, "bin", name))
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** What the program is told at each of its starts, in order. */
const starts = (): ReadonlyArray<{
  readonly log: number
  readonly ports: object
  readonly crash?: object
}> => {
  const file = join(folder, "starts")
  if (!existsSync(file)) return []
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
}

/**
 * Starts the command with a program whose nth start runs the nth of `lives`, or the last one. `listen` reports a port, and
 * then continues.
 */
const launch = (
  lives: ReadonlyArray<string>,
  {
    args = [],
    env = { EDGEWISE_RESTART: "true" },
  }: { args?: Array<string>; env?: Record<string, string> } = {},
) => {
  const file = JSON.stringify(join(folder, "starts"))
  writeFileSync(
    join(folder, "src", "main.ts"),
    `import { appendFileSync, readFileSync, writeSync } from "node:fs"
    appendFileSync(${file}, (process.env.EDGEWISE_LAUNCHER ?? "{}") + "\\n")
    const nth = readFileSync(${file}, "utf8").split("\\n").length - 2
    const listen = () => new Promise((resolve) => process.send({ listening: { edge: 4321 } }, undefined, undefined, resolve))
    const crash = (signal) => { process.kill(process.pid, signal); setInterval(() => {}, 1e6) }
    const lives = [${lives.map((body) => `async () => { ${body} }`).join(", ")}]
    await lives[Math.min(nth, lives.length - 1)]()`,
  )
  const child = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", join(folder, "bin", "edgewise.js"), "serve", ...args],
    { env: { PATH: process.env.PATH ?? "", ...env }, stdio: ["ignore", "pipe", "pipe"] },
  )
  let stderr = ""
  let stdout = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
  })
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text
  })
  const ended = once(child, "close").then(([status]) => ({ status, stderr, stdout }))
  return { child, ended }
}

describe("a crash of a node that has listened", () => {
  it("is followed by a start with the same ports, which is told how the node ended", async () => {
    const { ended } = launch([
      'await listen(); writeSync(2, "FATAL ERROR: first\\nsecond"); crash("SIGSEGV")',
      'await listen(); throw new Error("a defect")',
      "process.exit(0)",
    ])
    const { status, stderr } = await ended
    expect(status).toBe(0)
    expect(stderr).toMatch(/FATAL ERROR: first\nsecond[\s\S]*Error: a defect/)
    const [first, second, third, ...more] = starts()
    expect(more).toEqual([])
    expect(first).toEqual({ log: 4, ports: {} })
    expect(second).toEqual({
      log: 4,
      ports: { edge: 4321 },
      crash: {
        end: "SIGSEGV",
        restarts: 1,
        afterMs: expect.any(Number),
        lines: ["FATAL ERROR: first", "second"],
      },
    })
    expect(third).toMatchObject({ ports: { edge: 4321 }, crash: { end: "exit status 1", restarts: 2 } })
    expect(JSON.stringify(third)).toContain("Error: a defect")
  })

  it("keeps the last lines that it printed, and no more than 40 of 300 characters", async () => {
    const { ended } = launch([
      'await listen(); for (let n = 0; n < 5000; n++) writeSync(2, n + "x".repeat(500) + "\\n"); crash("SIGKILL")',
      "process.exit(0)",
    ])
    const { stderr } = await ended
    expect(stderr.split("\n")).toHaveLength(5001)
    const { lines } = starts()[1]!.crash as { readonly lines: ReadonlyArray<string> }
    expect(lines).toHaveLength(40)
    expect(lines.at(-1)).toBe(`4999${"x".repeat(296)}`)
  })

  it("is not followed by another start after five in a minute: the command ends with a line and the status", async () => {
    const { ended } = launch(['await listen(); crash("SIGKILL")'])
    expect(await ended).toEqual({
      status: 137,
      stdout: "",
      stderr: "edgewise: the node crashed 6 times within 60 s, last with SIGKILL: it is not started again\n",
    })
    expect(starts()).toHaveLength(6)
  })

  it("is retried while the node starts again, but a start that the node refuses is not", async () => {
    const { ended } = launch([
      'await listen(); crash("SIGABRT")',
      'crash("SIGKILL")',
      'writeSync(2, "port 4321 is in use\\n"); process.exit(1)',
    ])
    expect(await ended).toMatchObject({
      status: 1,
      stderr:
        "port 4321 is in use\nedgewise: the node was started again and ended before it listened (exit status 1)\n",
    })
    expect(starts()).toHaveLength(3)
  })
})

describe("no other start follows", () => {
  it("an end before the first listener, whatever it is", async () => {
    expect(await launch(["process.exit(2)"]).ended).toEqual({ status: 2, stdout: "", stderr: "" })
    expect(await launch(['crash("SIGSEGV")']).ended).toEqual({ status: 139, stdout: "", stderr: "" })
    expect(starts()).toHaveLength(2)
  })

  it("and all that a refused start printed arrives, however slowly it is read", async () => {
    const file = JSON.stringify(join(folder, "ended"))
    const { child, ended } = launch([
      `process.on("exit", () => appendFileSync(${file}, "")); process.stderr.write("x".repeat(2e6), () => process.exit(2))`,
    ])
    // The pipe is full when the program ends.
    child.stderr.pause()
    await eventually(() => existsSync(join(folder, "ended")), "the program has ended")
    child.stderr.resume()
    const { status, stderr } = await ended
    expect([status, stderr.length]).toEqual([2, 2_000_000])
  })

  it("exit status 0, and any end of a node that was told to stop", async () => {
    expect((await launch(["await listen(); process.exit(0)"]).ended).status).toBe(0)
    // It was told by a signal to itself, and says so.
    const stopped = ['await listen(); process.send({ stopping: true }, () => crash("SIGKILL"))']
    expect((await launch(stopped).ended).status).toBe(137)
    expect(starts()).toHaveLength(2)
  })

  it.each(["SIGTERM", "SIGINT"] as const)("%s while the node starts again", async (signal) => {
    const { child, ended } = launch([
      'await listen(); crash("SIGKILL")',
      'process.stdout.write("second\\n"); setInterval(() => {}, 1e6)',
    ])
    child.stdout.on("data", () => child.kill(signal))
    const { status, stderr, stdout } = await ended
    expect({ status, stderr, stdout }).toEqual({
      status: signal === "SIGTERM" ? 143 : 130,
      stderr: "",
      stdout: "second\n",
    })
    expect(starts()).toHaveLength(2)
  })
})

describe("whether there is a restart", () => {
  const crashing = [
    'if (process.send === undefined) process.exit(9); await listen(); crash("SIGKILL")',
    "process.exit(process.send === undefined ? 9 : 0)",
  ]
  it("is decided by the flag, then the variable", async () => {
    const statusOf = async (env: Record<string, string>, ...args: Array<string>) =>
      (await launch(crashing, { env, args }).ended).status
    expect(await statusOf({ EDGEWISE_RESTART: "false" })).toBe(9)
    expect(await statusOf({ EDGEWISE_RESTART: "true" }, "--restart", "false")).toBe(9)
    expect(await statusOf({ EDGEWISE_RESTART: "false" }, "--restart=true")).toBe(0)
  })

  it("is no by default under systemd and in a container", async () => {
    for (const name of ["INVOCATION_ID", "NOTIFY_SOCKET", "container", "KUBERNETES_SERVICE_HOST"])
      expect((await launch(crashing, { env: { [name]: "x" } }).ended).status).toBe(9)
  })
})
