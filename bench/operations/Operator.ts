// An operator of a bench's node: a superadmin key made by the command line, and JSON requests with it. Fails if the
// node does not answer as expected.
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import type { Gateway } from "../support/Gateway.ts"

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url))

export const superadminKey = async ({ dataDir }: Gateway): Promise<string> => {
  const args = ["keys", "create", "--org", "ops", "--scope", "superadmin", "--json"]
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", main, ...args],
    { env: { PATH: process.env.PATH, EDGEWISE_DATA_DIR: dataDir } },
  )
  return (JSON.parse(stdout) as { readonly api_key: string }).api_key
}

export interface Operator {
  readonly load: (model: string) => Promise<void>
  readonly unload: (model: string) => Promise<void>
  /** Purges every model, also those in use. */
  readonly purge: () => Promise<void>
  /** Process id and resident bytes of a model's engine; undefined if it has none. */
  readonly engine: (
    model: string,
  ) => Promise<{ readonly pid: number; readonly residentMb: number } | undefined>
}

export const operatorOf = ({ target }: Gateway, key: string): Operator => {
  const base = `http://127.0.0.1:${target.port}`
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const post = async (path: string, body: object) => {
    const response = await fetch(base + path, { method: "POST", headers, body: JSON.stringify(body) })
    const said = await response.text()
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${said}`)
  }
  return {
    load: (model) => post("/v1/models/load", { model_name: model }),
    unload: (model) => post("/v1/models/unload", { model_name: model }),
    purge: () => post("/v1/gpu/purge", { force: true }),
    engine: async (model) => {
      const response = await fetch(`${base}/v1/gpu/status`, { headers })
      const { processes } = (await response.json()) as {
        readonly processes: ReadonlyArray<{
          readonly pid: number
          readonly name: string
          readonly memory_mb: number
        }>
      }
      const found = processes.find(({ name }) => name === `engine ${model}`)
      return found === undefined ? undefined : { pid: found.pid, residentMb: found.memory_mb }
    },
  }
}
