// Runs a few lines of JavaScript as a confined process would run them, and returns the outcome of each attempt.
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { launch } from "#confine/Launch.ts"
import type { Confinement } from "#domain/process/Confinement.ts"

/** Each is the body of an async function. */
type Attempts = Readonly<Record<string, string>>

const koffi = fileURLToPath(import.meta.resolve("koffi"))

/** `system` makes a system call by its number, with numbers and strings as arguments. */
const program = (attempts: Attempts): string => `
  const fs = require("node:fs"), net = require("node:net"), dgram = require("node:dgram")
  const child = require("node:child_process"), workers = require("node:worker_threads")
  const failed = (emitter, good) => new Promise((resolve, reject) => emitter.once("error", reject).once(good, resolve))
  const os = require("node:os"), util = require("node:util")
  const system = (number, ...given) => {
    const koffi = require(${JSON.stringify(koffi)})
    const call = koffi.load("libc.so.6").func("long syscall(long number, ...)")
    const typed = given.flatMap((each) => [typeof each === "number" ? "long" : typeof each === "string" ? "str" : "void *", each])
    if (Number(call(number, ...typed)) === -1)
      throw Object.assign(new Error("refused"), { code: util.getSystemErrorName(-koffi.errno()) })
  }
  const attempts = { ${Object.entries(attempts)
    .map(([name, body]) => `${JSON.stringify(name)}: async () => { ${body} }`)
    .join(", ")} }
  ;(async () => {
    const outcomes = {}
    for (const [name, attempt] of Object.entries(attempts)) {
      try { outcomes[name] = (await attempt()) ?? "done" } catch (cause) { outcomes[name] = cause.info?.code ?? cause.code ?? cause.message }
    }
    process.stdout.write(JSON.stringify(outcomes), () => process.exit(0))
  })()`

/** Name of each attempt → its result, "done", or the system's error code. */
export const attempt = (confinement: Confinement, attempts: Attempts): Readonly<Record<string, unknown>> => {
  const { env, execArgv, execPath } = launch(confinement, [])
  const { status, stderr, stdout } = spawnSync(execPath, [...execArgv, "-e", program(attempts)], {
    env: { ...env },
    encoding: "utf8",
    timeout: 100_000,
  })
  if (status !== 0) throw new Error(`the confined script ended with ${status}: ${stderr}`)
  return JSON.parse(stdout) as Record<string, unknown>
}
