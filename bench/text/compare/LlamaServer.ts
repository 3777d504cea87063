// llama.cpp's own server as a process beside a node, for comparisons that are run by hand. Its binary is not part of this
// project. It runs with its defaults except for threads, sequences and context.
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { Effect } from "effect"
import { contextTokens, slots } from "../sized/Models.ts"

interface LlamaServer {
  /** Path of the binary. */
  readonly server: string
  /** GGUF file. */
  readonly weights: string
  readonly threads: number
}

/** A port that is free now. */
const freePort = async (): Promise<number> => {
  const listener = createServer().listen(0, "127.0.0.1")
  await once(listener, "listening")
  const address = listener.address()
  listener.close()
  await once(listener, "close")
  if (address === null || typeof address === "string") throw new Error("no free port")
  return address.port
}

/** Milliseconds in which weights of two gigabytes load. A guess. */
const loadMs = 60_000

const answersHealth = async (port: number): Promise<void> => {
  const untilMs = performance.now() + loadMs
  while (performance.now() < untilMs) {
    const status = await fetch(`http://127.0.0.1:${port}/health`).then(
      (response) => response.status,
      () => 0,
    )
    if (status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error("llama-server does not answer")
}

/** Flags of llama-server besides the model and the port. */
export const serverFlags = (threads: number): ReadonlyArray<string> =>
  [
    ["--threads", String(threads)],
    ["--threads-batch", String(threads)],
    ["--parallel", String(slots)],
    ["--ctx-size", String(contextTokens * slots)],
  ].flat()

/** Listens on 127.0.0.1. Closing the scope ends it. */
export const startLlamaServer = ({ server, threads, weights }: LlamaServer) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const port = await freePort()
      const address = ["--model", weights, "--host", "127.0.0.1", "--port", String(port)]
      const child = spawn(server, [...address, ...serverFlags(threads)], { stdio: "ignore" })
      const ended = once(child, "exit")
      await Promise.race([
        answersHealth(port),
        ended.then(() => Promise.reject(new Error("llama-server ended"))),
      ])
      return { child, ended, port }
    }),
    ({ child, ended }) =>
      Effect.promise(async () => {
        child.kill("SIGTERM")
        await ended
      }),
  )

/** It prints its version to standard error. */
export const versionOf = (server: string): string => {
  const { stderr, stdout } = spawnSync(server, ["--version"], { encoding: "utf8" })
  return `${stdout ?? ""}${stderr ?? ""}`.replaceAll(/\s+/g, " ").trim()
}
