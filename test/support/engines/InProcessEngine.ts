// Engines in the test's own process: the real engine server and the fake adapter with the interface of an engine process, without
// the 100 ms and 100 MB of a process. Messages are serialized as between processes. When an engine is ended, its messages are dropped.
import { deserialize, serialize } from "node:v8"
import { Deferred, Effect, type Scope } from "effect"
import type { EngineExit, EngineProcess, EngineProcessOptions } from "#actors/engine/EngineProcess.ts"
import { serveEngine } from "#engines/EngineServer.ts"
import { fake } from "#engines/fake/Fake.ts"
import type { AnyFromEngine, AnyToEngine } from "#engines/protocol/EngineProtocol.ts"
import type { EngineKind } from "#engines/protocol/Verbs.ts"

/** The part of an engine of any kind that ends it and shows its end. */
type Ended = Pick<EngineProcess<EngineKind>, "kill" | "exited" | "hasExited">

export interface InProcessEngines {
  /** Provide it as `EngineStarter`. */
  readonly start: <K extends EngineKind>(
    options: EngineProcessOptions<K>,
  ) => Effect.Effect<EngineProcess<K>, never, Scope.Scope>
  /** Engines that have not ended, oldest first. */
  readonly alive: ReadonlySet<Ended>
  readonly started: () => number
  /** Ends all engines like a crash in native code. */
  readonly crash: () => void
}

/** The memory that each engine reports. A constant, because the share of an engine in this process's memory is unknown. */
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
      // The exit is reported at a later tick, like that of a process.
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
