// Creates API keys of a bench's node with the operators' command, for suites whose clients are several users.
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { ChildFailed } from "./Child.ts"

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url))

type Scope = "read-write" | "superadmin"

/** Creates a key in the store of `dataDir`, or in a shared database, and the organization if it does not exist. */
export const madeKey = async (
  dataDir: string,
  org: string,
  scope: Scope,
  databaseUrl = "",
): Promise<string> => {
  const args = ["keys", "create", "--org", org, "--scope", scope, "--json"]
  const env = { PATH: process.env.PATH, EDGEWISE_DATA_DIR: dataDir, EDGEWISE_DATABASE_URL: databaseUrl }
  const flags = ["--disable-warning=ExperimentalWarning", main]
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, ...args], { env })
  return (JSON.parse(stdout) as { readonly api_key: string }).api_key
}

export const createKey = (dataDir: string, org: string, scope: Scope): Effect.Effect<string, ChildFailed> =>
  Effect.tryPromise({
    try: () => madeKey(dataDir, org, scope),
    catch: (cause) => new ChildFailed({ child: "edgewise keys create", detail: String(cause) }),
  })
