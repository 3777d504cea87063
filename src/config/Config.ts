// Reads the settings from flags and environment. A bad value stops the start with a line that names the variable, the
// value and what is allowed; so does an unknown variable that looks like a setting.
import { resolve } from "node:path"
import { Effect } from "effect"
import { type BadRegions, regionCodesInForce } from "#store/files/RegionsFile.ts"
import { BadSetting } from "./BadSetting.ts"
import { unknownVariables } from "./Environment.ts"
import { otherVariables } from "./OtherVariables.ts"
import { type Config, type SettingName, settings } from "./Settings.ts"
import { portSettings } from "./settings/ListenerSettings.ts"
import { builtInCatalog } from "./settings/NodeSettings.ts"

type Flags = Partial<Record<SettingName, string>>

/** A node's region must be one of the regions file in force. */
const checkRegion = ({ region, regions }: Config): Effect.Effect<void, BadSetting | BadRegions> =>
  Effect.gen(function* () {
    if (region === settings.region.fallback) return
    const codes = yield* regionCodesInForce(regions)
    if (codes.includes(region)) return
    const where = regions === "" ? "" : ` of ${regions}`
    const allowed = `allowed is a region code${where}: ${codes.join(", ")}`
    return yield* new BadSetting({ variable: settings.region.variable, value: region, allowed })
  })

/** Two roles of a process cannot listen on the same port. */
const checkPorts = (config: Config): Effect.Effect<void, BadSetting> => {
  const used = new Map<number, string>()
  for (const role of config.roles) {
    const { variable } = settings[portSettings[role]]
    const port = config[portSettings[role]]
    const other = used.get(port)
    if (other !== undefined && port !== 0) {
      const allowed = `it is the port of ${other} too; each role needs its own`
      return Effect.fail(new BadSetting({ variable, value: String(port), allowed }))
    }
    used.set(port, variable)
  }
  return Effect.void
}

/** Jobs of other nodes are known from the database only. */
const checkUploads = ({ databaseUrl, uploads }: Config): Effect.Effect<void, BadSetting> =>
  uploads === "" || databaseUrl !== ""
    ? Effect.void
    : Effect.fail(
        new BadSetting({
          variable: settings.uploads.variable,
          value: uploads,
          allowed: `it is for nodes that share a database, set ${settings.databaseUrl.variable} too`,
        }),
      )

/** Settings by flag (undefined if not given), then environment, then default. */
export const load = (
  flags: Flags,
  env: NodeJS.ProcessEnv = process.env,
): Effect.Effect<Config, BadSetting | BadRegions> =>
  Effect.gen(function* () {
    const values: Record<string, unknown> = {}
    const wrong: Array<BadSetting> = []
    for (const [name, setting] of Object.entries(settings)) {
      const text = flags[name as SettingName] ?? env[setting.variable]
      if (text === undefined || (text === "" && flags[name as SettingName] === undefined)) {
        values[name] = setting.fallback
        continue
      }
      const value = setting.parse(text)
      values[name] = value
      if (value === undefined) {
        const shown = "shown" in setting ? setting.shown(text) : text
        const allowed = `allowed is ${setting.allowed}`
        wrong.push(new BadSetting({ variable: setting.variable, value: shown.slice(0, 200), allowed }))
      }
    }
    const [first, ...others] = wrong
    if (first !== undefined) {
      const { allowed, value, variable } = first
      return yield* new BadSetting({ variable, value, allowed, others: others.map(({ message }) => message) })
    }
    const config = values as Config
    yield* checkPorts(config)
    yield* checkRegion(config)
    yield* checkUploads(config)
    return { ...config, dataDir: resolve(config.dataDir), catalog: resolve(config.catalog) }
  })

/** One line for each environment variable that looks like a setting and is none. */
export const environmentMistakes = (env: NodeJS.ProcessEnv = process.env): ReadonlyArray<string> =>
  unknownVariables(env, [...Object.values(settings).map(({ variable }) => variable), ...otherVariables])

/**
 * Region codes that the catalog's entries may name. Undefined for the built-in catalog, which names built-in regions
 * and must also work with a regions file that lacks them.
 */
export const catalogRegions = ({
  catalog,
  regions,
}: Config): Effect.Effect<ReadonlyArray<string> | undefined, BadRegions> =>
  catalog === builtInCatalog ? Effect.succeed(undefined) : regionCodesInForce(regions)
