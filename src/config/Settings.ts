// The table of all settings: name, default, unit, range and reason. Each is an environment variable and a flag of `serve`;
// the flag wins. `--help` prints them in this order, by group.

import { accessSettings } from "./settings/AccessSettings.ts"
import { limitSettings } from "./settings/LimitSettings.ts"
import { listenerSettings } from "./settings/ListenerSettings.ts"
import { modelSettings } from "./settings/ModelSettings.ts"
import { logSettings, metricsSettings } from "./settings/MonitoringSettings.ts"
import { nodeSettings } from "./settings/NodeSettings.ts"
import { routerSettings } from "./settings/RouterSettings.ts"
import type { Setting } from "./settings/Setting.ts"

export const settings = {
  ...listenerSettings,
  ...nodeSettings,
  ...limitSettings,
  ...metricsSettings,
  ...modelSettings,
  ...accessSettings,
  ...routerSettings,
  ...logSettings,
} as const satisfies Record<string, Setting<unknown>>

/** The groups of `--help`, in their order. */
export const settingGroups: ReadonlyArray<{
  readonly title: string
  readonly settings: Readonly<Record<string, Setting<unknown>>>
}> = [
  { title: "Listeners", settings: listenerSettings },
  { title: "Node", settings: nodeSettings },
  { title: "Limits", settings: limitSettings },
  { title: "Metrics", settings: metricsSettings },
  { title: "Models", settings: modelSettings },
  { title: "Credentials and trusted addresses", settings: accessSettings },
  { title: "Router", settings: routerSettings },
  { title: "Logs", settings: logSettings },
]

type Settings = typeof settings
export type SettingName = keyof Settings
type ValueOf<S> = S extends { readonly parse: (text: string) => infer A | undefined }
  ? Exclude<A, undefined>
  : never
export type Config = { readonly [K in SettingName]: ValueOf<Settings[K]> }
