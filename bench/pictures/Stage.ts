// The processes of the pictures suite: a node with two models that take pictures, and the load client.
import { Effect, type Scope } from "effect"
import type { ChildFailed } from "../support/Child.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import { type LoadClient, startLoadClient } from "../support/LoadClient.ts"
import { pictureModel } from "./Models.ts"

export interface Stage {
  readonly gateway: Gateway
  readonly client: LoadClient
}

export const startStage = (profileDir?: string): Effect.Effect<Stage, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const models = yield* Effect.promise(() =>
      Promise.all([pictureModel("smol-256m"), pictureModel("toy-idefics3")]),
    )
    const gateway = yield* startGateway({ models, profileDir })
    const client = yield* startLoadClient
    return { gateway, client }
  })
