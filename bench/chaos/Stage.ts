// The processes of the chaos suite, started once: a node with an engine of every kind, and the clients.
import { Effect, type Scope } from "effect"
import { ask, asked } from "../support/Ask.ts"
import { type Child, ChildFailed, startChild } from "../support/Child.ts"
import type { Target } from "../support/Connection.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import { createKey } from "../support/Keys.ts"
import type { CrowdCommands } from "./crowdMain.ts"
import { type Kind, kinds, models } from "./Models.ts"

export interface Stage {
  readonly gateway: Gateway
  readonly crowd: Child<CrowdCommands>
  readonly operator: Target
}

const call = <A = void>(target: Target, path: string, body?: object): Effect.Effect<A, ChildFailed> =>
  asked(() => ask<A>(target, path, body))

/** Unloads and loads a model as an operator does, which also resets its count of restarts. Milliseconds. */
export const reload = ({ operator }: Stage, kind: Kind): Effect.Effect<number, ChildFailed> =>
  Effect.gen(function* () {
    yield* call(operator, "/v1/models/unload", { model_name: kind })
    const beganMs = performance.now()
    yield* call(operator, "/v1/models/load", { model_name: kind })
    return performance.now() - beganMs
  })

interface Status {
  readonly processes: ReadonlyArray<{ readonly pid: number; readonly name: string }>
}

/** Process id of a model's engine, from the operators' endpoints. */
export const enginePid = ({ operator }: Stage, kind: Kind): Effect.Effect<number, ChildFailed> =>
  Effect.flatMap(call<Status>(operator, "/v1/gpu/status"), ({ processes }) => {
    const pid = processes.find(({ name }) => name === `engine ${kind}`)?.pid
    if (pid !== undefined) return Effect.succeed(pid)
    return Effect.fail(new ChildFailed({ child: `engine ${kind}`, detail: "has no process" }))
  })

/** @param warmUps requests of each kind before the first fault: models are loaded with the first, times are steady with the last */
export const startStage = (
  profileDir?: string,
  warmUps = 20,
): Effect.Effect<Stage, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const gateway = yield* startGateway({ models, profileDir })
    const crowd = yield* startChild<CrowdCommands>({
      name: "crowd",
      entry: new URL("./crowdMain.ts", import.meta.url),
    })
    const operator = {
      port: gateway.target.port,
      key: yield* createKey(gateway.dataDir, "operators", "superadmin"),
    }
    for (let time = 0; time < warmUps; time++) {
      for (const kind of kinds) yield* crowd.ask("ask", { kind, target: gateway.target })
    }
    return { gateway, crowd, operator }
  })
