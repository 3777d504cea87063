// Engines that live in the test's own process: the real engine server and the real fake adapter behind the same
// interface as an engine process, without its 100 ms and 100 MB. Ending one is dropping its messages.
import { Deferred, Effect, type Scope } from "effect"
import type { EngineExit, EngineProcess, EngineProcessOptions } from "#actors/engine/EngineProcess.ts"
import { serveEngine } from "#engines/EngineServer.ts"
import { fake } from "#engines/fake/Fake.ts"
import type { FromEngine, ToEngine } from "#engines/protocol/EngineProtocol.ts"

export interface InProcessEngines {
  /** For `EngineStarter`. */
  readonly start: (options: EngineProcessOptions) => Effect.Effect<EngineProcess, never, Scope.Scope>
  /** Those that have not ended, oldest first. */
  readonly alive: ReadonlySet<EngineProcess>
  readonly started: () => number
  /** Ends all as a fault in native code does. */
  readonly crash: () => void
}

/** What each says it holds: of this process's own memory it cannot tell which part is an engine's. */
const residentBytes = 100 * 1024 * 1024

const asOfAProcess = (message: FromEngine): FromEngine =>
  "residentBytes" in message ? { ...message, residentBytes } : message

export const inProcessEngines = (): InProcessEngines => {
  const alive = new Set<EngineProcess>()
  const crashes = new Map<EngineProcess, () => void>()
  let started = 0
  const start = ({ onMessage }: EngineProcessOptions): EngineProcess => {
    started++
    const done = Deferred.makeUnsafe<EngineExit>()
    let listener: (message: ToEngine) => void = () => {}
    const ended = () => Deferred.isDoneUnsafe(done)
    const end = (exit: EngineExit) => {
      if (ended()) return
      alive.delete(handle)
      crashes.delete(handle)
      // An exit is heard of on a later turn, as a process's is.
      setImmediate(() => Deferred.doneUnsafe(done, Effect.succeed(exit)))
    }
    const handle: EngineProcess = {
      pid: undefined,
      send: (message) => {
        setImmediate(() => {
          if (alive.has(handle)) listener(structuredClone(message))
        })
      },
      kill: () => end({ code: null, signal: "SIGKILL" }),
      exited: Deferred.await(done),
      hasExited: ended,
    }
    alive.add(handle)
    crashes.set(handle, () => end({ code: null, signal: "SIGSEGV" }))
    serveEngine(
      {
        send: (message: FromEngine) => {
          setImmediate(() => {
            if (alive.has(handle)) onMessage(asOfAProcess(message))
          })
        },
        onMessage: (next) => {
          listener = next
        },
        exit: (code) => end({ code, signal: null }),
      },
      () => Promise.resolve(fake),
    )
    return handle
  }
  return {
    alive,
    started: () => started,
    crash: () => {
      for (const crash of [...crashes.values()]) crash()
    },
    start: (options) =>
      Effect.acquireRelease(
        Effect.sync(() => start(options)),
        (handle) =>
          Effect.gen(function* () {
            if (handle.hasExited()) return
            handle.send({ t: "stop" })
            yield* handle.exited
          }),
      ),
  }
}
