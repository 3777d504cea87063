// The roles of a process in the test's own process: what `serve` runs, on free ports, over a fresh data directory or one
// that another node works on. For tests of the edge alone see TestNode.
import { join } from "node:path"
import { Context, Effect, Exit, Layer, Logger, References, Scope } from "effect"
import { rolesLayer } from "#cli/roles/Roles.ts"
import { Started } from "#cli/roles/Started.ts"
import { load } from "#config/Config.ts"
import type { SettingName } from "#config/Settings.ts"
import type { Role } from "#config/settings/ListenerSettings.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { storeLayer } from "#store/Store.ts"
import { deployments } from "#weights/ModelFiles.ts"
import { uses } from "../groups/Uses.ts"
import { withCompiledCode } from "../process/CompiledCode.ts"
import { unwatchPort, watchBase } from "../wire/WireTap.ts"
import { fakeModel, type TestModel, writeCatalog } from "./TestCatalog.ts"
import { temporaryDir, transport } from "./TestNode.ts"

export interface TestRoles {
  /** Base address of a role that runs; empty for one that does not. */
  readonly base: Readonly<Record<Role, string>>
  readonly dataDir: string
  readonly devKey: string
  /** Administers the accounts of the data directory, as the command line does: beside the node. */
  readonly accounts: <A, E>(use: (accounts: Accounts["Service"]) => Effect.Effect<A, E>) => Promise<A>
  readonly stop: () => Promise<void>
}

export const startRoles = async (
  flags: Partial<Record<SettingName, string>> = {},
  models: ReadonlyArray<TestModel> = [fakeModel],
): Promise<TestRoles> => {
  uses("process", "a listening server")
  const dir = temporaryDir()
  const dataDir = flags.dataDir ?? join(dir.path, "data")
  const catalog = join(dir.path, "catalog.json")
  writeCatalog(catalog, models)
  withCompiledCode(dataDir)
  const given = {
    port: "0",
    authPort: "0",
    routerPort: "0",
    rateLimit: "0",
    metricsAgeMs: "0",
    ...(transport === undefined ? {} : { transport }),
    ...flags,
    dataDir,
    catalog,
  }
  const scope = Scope.makeUnsafe()
  const build = Effect.gen(function* () {
    const config = yield* load(given, {})
    const deployed = config.roles.includes("edge") ? yield* deployments(config) : []
    const quiet = Layer.mergeAll(Logger.layer([]), Layer.succeed(References.MinimumLogLevel, "None"))
    return yield* Layer.buildWithScope(rolesLayer(config, deployed).pipe(Layer.provide(quiet)), scope)
  })
  const { credential, listening } = Context.get(await Effect.runPromise(build), Started)
  const baseOf = (role: Role) => listening.find((each) => each.role === role)?.base ?? ""
  for (const { base, role } of listening) watchBase(base, role)
  let stopped: Promise<void> | undefined
  return {
    base: { edge: baseOf("edge"), auth: baseOf("auth"), router: baseOf("router") },
    dataDir,
    devKey: credential?.key?.apiKey ?? "",
    accounts: (use) =>
      Effect.runPromise(Effect.flatMap(Accounts, use).pipe(Effect.provide(storeLayer({ dataDir })))),
    stop: () => {
      for (const { base } of listening) unwatchPort(Number(new URL(base).port))
      stopped ??= Effect.runPromise(Scope.close(scope, Exit.void)).finally(dir.remove)
      return stopped
    },
  }
}
