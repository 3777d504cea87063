// Engines that live in the test's own process: the real engine server and the real fake adapter behind the same
// interface as an engine process, without its 100 ms and 100 MB. Messages are serialized as between processes. Ending
// an engine drops its messages.
import { deserialize, serialize } from "node:v8"
import { Deferred, Effect, type Scope } from "effect"
import type { EngineExit, EngineProcess, EngineProcessOptions } from "#actors/engine/EngineProcess.ts"
import { serveEngine } from "#engines/EngineServer.ts"
import { fake } from "#engines/fake/Fake.ts"
import type { AnyFromEngine, AnyToEngine } from "#engines/protocol/EngineProtocol.ts"
import type { EngineKind } from "#engines/protocol/Verbs.ts"

/** An engine of any kind, reduced to how it ends. */
type Ended = Pick<EngineProcess<EngineKind>, "kill" | "exited" | "hasExited">

export interface InProcessEngines {
  /** For `EngineStarter`. */
  readonly start: <K extends EngineKind>(
    options: EngineProcessOptions<K>,
  ) => Effect.Effect<EngineProcess<K>, never, Scope.Scope>
  /** Those that have not ended, oldest first. */
  readonly alive: ReadonlySet<Ended>
  readonly started: () => number
  /** Ends all as a fault in native code does. */
  readonly crash: () => void
}

/** What each says it holds: of this process's own memory it cannot tell which part is an engine's. */
const residentBytes = 100 * 1024 * 1024

const asOfAProcess = (message: AnyFromEngine): AnyFromEngine =>
  "residentBytes" in message ? { ...message, residentBytes } : message

export const inProcessEngines = (): InProcessEngines => {
  const alive = new Set<Ended>()
  const crashes = new Map<Ended, () => void>()
  let started = 0
  const start = <K extends EngineKind>({ onMessage }: EngineProcessOptions<K>): EngineProcess<K> => {
    started++
    const done = Deferred.makeUnsafe<EngineExit>()
    let listener: (message: AnyToEngine) => void = () => {}
    const ended = () => Deferred.isDoneUnsafe(done)
    const end = (exit: EngineExit) => {
      if (ended()) return
      alive.delete(handle)
      crashes.delete(handle)
      // The exit is reported at a later tick, as a process's is.
      setImmediate(() => Deferred.doneUnsafe(done, Effect.succeed(exit)))
    }
    const handle: EngineProcess<K> = {
      pid: undefined,
      send: (message) => {
        setImmediate(() => {
          if (alive.has(handle)) listener(deserialize(serialize(message)))
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
        send: (message: AnyFromEngine) => {
          setImmediate(() => {
            if (alive.has(handle)) onMessage(deserialize(serialize(asOfAProcess(message))))
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
    start: <K extends EngineKind>(options: EngineProcessOptions<K>) =>
      Effect.acquireRelease(
        Effect.sync(() => start(options)),
        (handle) =>
          Effect.gen(function* () {
            if (handle.hasExited()) return
            handle.send({ type: "stop" })
            yield* handle.exited
          }),
      ),
  }
}
