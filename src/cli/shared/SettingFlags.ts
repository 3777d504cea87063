// The settings of src/config as flags of a command, made from their table, so that a new setting needs no line here.
import { Option } from "effect"
import { Flag } from "effect/cli"
import { type SettingName, settings } from "#config/Settings.ts"
import { flagOfSetting, type Setting } from "#config/settings/Setting.ts"

type SettingFlag = Flag.Flag<Option.Option<string>>

const defaultOf = ({ fallback, fallbackText }: Setting<unknown>): string =>
  fallbackText ?? (Array.isArray(fallback) ? fallback.join(",") : String(fallback))

const flagOf = (name: SettingName): SettingFlag => {
  const setting: Setting<unknown> = settings[name]
  return Flag.String(flagOfSetting(setting)).pipe(
    Flag.withMetavar(setting.value),
    // The second line is that of every option: what is allowed, and the default.
    Flag.withDescription(
      `${setting.help}\n${setting.allowed}; default: ${defaultOf(setting)}; ${setting.variable}`,
    ),
    Flag.optional,
  )
}

/** `Object.keys` types keys as strings; the table has no other keys. */
const names = Object.keys(settings) as ReadonlyArray<SettingName>

/** In the order of the table, which is the order of `--help`. */
export const settingFlags = Object.fromEntries(names.map((name) => [name, flagOf(name)])) as Readonly<
  Record<SettingName, SettingFlag>
>

/**
 * The flags of commands that read and change a node's models. They must name what the node was started with, in flags or in the
 * environment.
 */
export const catalogFlags = { dataDir: settingFlags.dataDir, catalog: settingFlags.catalog }

/** The given flags, all or some. */
type Given = { readonly [K in SettingName]?: Option.Option<string> }

/** The values of the flags that were given. */
export const textsOf = (given: Given): Partial<Record<SettingName, string>> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = given[name]
      return value !== undefined && Option.isSome(value) ? [[name, value.value]] : []
    }),
  )
