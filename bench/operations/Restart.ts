// How soon a node serves again after its gateway was killed, beside an ordinary start of the same node: the command
// `edgewise serve` with the built-in models, killed once in each round.

import { createServer } from "node:net"
import { Effect, type Scope } from "effect"
import { atMost, besideFloor, type Figure, figure, type Part, readingsOf } from "#harness/report/Figure.ts"
import { type ChildFailed, startChild } from "../support/Child.ts"
import { childrenOf } from "../support/EngineCpu.ts"
import { temporaryFolder } from "../support/Gateway.ts"

const command = new URL("../../bin/edgewise.js", import.meta.url)

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

/** Resolves when `/health` is answered; a bench that waits for ever is ended by hand. */
const healthy = async (port: number): Promise<void> => {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)
    await answer?.arrayBuffer()
    if (answer?.status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** The gateway, which is the only child of the command. Linux only. */
const gatewayOf = (pid: number): number => {
  const [child] = childrenOf(pid)
  if (child === undefined) throw new Error("the command has no gateway")
  return child
}

export const restarts = (rounds: number): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const dataDir = yield* temporaryFolder
    const startMs: Array<number> = []
    const againMs: Array<number> = []
    const spawnMs: Array<number> = []
    // The first round fills the compile cache and is not counted.
    for (let round = 0; round <= rounds; round++) {
      const port = yield* Effect.promise(freePort)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const beganMs = performance.now()
          const child = yield* startChild<never>({
            name: "edgewise serve",
            entry: command,
            args: ["serve", "--roles", "edge", "--port", String(port), "--data-dir", dataDir],
            env: {
              PATH: process.env.PATH,
              HOME: process.env.HOME,
              EDGEWISE_RESTART: "true",
              EDGEWISE_LOG: "json",
            },
          })
          yield* Effect.raceFirst(
            Effect.promise(() => healthy(port)),
            child.died,
          )
          const start = performance.now() - beganMs
          yield* child.line(/try it:/)
          process.kill(gatewayOf(child.pid), "SIGKILL")
          const killedMs = performance.now()
          yield* Effect.raceFirst(
            Effect.promise(() => healthy(port)),
            child.died,
          )
          const again = performance.now() - killedMs
          const delay = /"started_after_ms":([\d.]+)/.exec(yield* child.output)?.[1]
          if (round === 0) return
          startMs.push(start)
          againMs.push(again)
          spawnMs.push(Number(delay ?? Number.NaN))
        }),
      )
    }
    const figures: ReadonlyArray<Figure> = [
      figure("end of the gateway to the start of the next", "ms", spawnMs, atMost(300)),
      ...besideFloor(
        readingsOf("start of the command to /health", "ms", startMs),
        readingsOf("kill -9 of the gateway to /health", "ms", againMs),
        atMost(1.5),
      ),
    ]
    return {
      title: `A gateway that is killed, ${rounds} times`,
      method:
        "`edgewise serve` with the built-in models over one data directory, started and killed once in each round; /health is asked " +
        "every 5 ms. The first figure is that of the node's own log.",
      figures,
    }
  })
