// The settings of src/config as flags of a command, made from their table, so that a new setting needs no line here.
import { Option } from "effect"
import { Flag } from "effect/cli"
import { type SettingName, settings } from "#config/Settings.ts"

type SettingFlag = Flag.Flag<Option.Option<string>>

const flagOf = (name: SettingName): SettingFlag =>
  Flag.String(settings[name].flag).pipe(
    Flag.withDescription(`${settings[name].help} (${settings[name].variable})`),
    Flag.optional,
  )

/** `Object.keys` types keys as strings; the table has no other keys. */
const names = Object.keys(settings) as ReadonlyArray<SettingName>

/** In the order of the table, which is the order of `--help`. */
export const settingFlags = Object.fromEntries(names.map((name) => [name, flagOf(name)])) as Readonly<
  Record<SettingName, SettingFlag>
>

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
