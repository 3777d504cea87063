// From where a node accepts its development key, by its settings. Pure.
import { isLoopback } from "./Loopback.ts"

export const devKeySettings = ["loopback", "anywhere", "off"] as const
export type DevKeySetting = (typeof devKeySettings)[number]

export type DevKeyAccess =
  | { readonly from: "loopback" | "anywhere" }
  /** No development key is made, and one that exists is refused. */
  | { readonly from: "nowhere"; readonly because: "off" | "shared database" | "beyond loopback" }

export interface DevKeyCircumstances {
  readonly setting: DevKeySetting
  /** The address that the listeners bind. */
  readonly host: string
  /** The store is a database that other nodes may use as well. */
  readonly sharedDatabase: boolean
}

/** `loopback` serves a node that only its own machine can reach; everything else has to be asked for by `anywhere`. */
export const devKeyAccess = ({ host, setting, sharedDatabase }: DevKeyCircumstances): DevKeyAccess => {
  if (setting === "off") return { from: "nowhere", because: "off" }
  if (setting === "anywhere") return { from: "anywhere" }
  if (sharedDatabase) return { from: "nowhere", because: "shared database" }
  return isLoopback(host) ? { from: "loopback" } : { from: "nowhere", because: "beyond loopback" }
}
