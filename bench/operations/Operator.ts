// An operator of a bench's node: a superadmin key made by the command line, and JSON requests with it. Fails if the
// node does not answer as expected.
import { ask } from "../support/Ask.ts"
import type { Gateway } from "../support/Gateway.ts"
import { madeKey } from "../support/Keys.ts"

export const superadminKey = ({ dataDir }: Gateway): Promise<string> => madeKey(dataDir, "ops", "superadmin")

interface Operator {
  readonly load: (model: string) => Promise<void>
  readonly unload: (model: string) => Promise<void>
  /** Purges every model, also those in use. */
  readonly purge: () => Promise<void>
  /** Process id and resident bytes of a model's engine; undefined if it has none. */
  readonly engine: (
    model: string,
  ) => Promise<{ readonly pid: number; readonly residentMb: number } | undefined>
}

interface Status {
  readonly processes: ReadonlyArray<{
    readonly pid: number
    readonly name: string
    readonly memory_mb: number
  }>
}

export const operatorOf = ({ target }: Gateway, key: string): Operator => {
  const operator = { ...target, key }
  const post = (path: string, body: object) => ask<void>(operator, path, body)
  return {
    load: (model) => post("/v1/models/load", { model_name: model }),
    unload: (model) => post("/v1/models/unload", { model_name: model }),
    purge: () => post("/v1/gpu/purge", { force: true }),
    engine: async (model) => {
      const { processes } = await ask<Status>(operator, "/v1/gpu/status")
      const found = processes.find(({ name }) => name === `engine ${model}`)
      return found === undefined ? undefined : { pid: found.pid, residentMb: found.memory_mb }
    },
  }
}
