// Decides from where a node accepts its development key. Pure.
import { isLoopback } from "./Loopback.ts"

export const devKeySettings = ["loopback", "anywhere", "off"] as const
export type DevKeySetting = (typeof devKeySettings)[number]

export type DevKeyAccess =
  | { readonly from: "loopback" | "anywhere" }
  /** No development key is made, and an existing one is refused. */
  | { readonly from: "nowhere"; readonly because: "off" | "shared database" | "beyond loopback" }

interface DevKeyCircumstances {
  readonly setting: DevKeySetting
  /** The address to which the listeners are bound. */
  readonly host: string
  /** True if the store is a database that other nodes may use as well. */
  readonly sharedDatabase: boolean
}

/** `loopback` is only for a node that only its own machine can reach; all else needs `anywhere`. */
export const devKeyAccess = ({ host, setting, sharedDatabase }: DevKeyCircumstances): DevKeyAccess => {
  if (setting === "off") return { from: "nowhere", because: "off" }
  if (setting === "anywhere") return { from: "anywhere" }
  if (sharedDatabase) return { from: "nowhere", because: "shared database" }
  return isLoopback(host) ? { from: "loopback" } : { from: "nowhere", because: "beyond loopback" }
}
