// What a node calls itself in replies and metrics.
import { Context } from "effect"

/** The node's name and the product's version; set by main. */
export const NodeIdentity = Context.Reference<{ readonly name: string; readonly version: string }>(
  "edgewise/api/NodeIdentity",
  { defaultValue: () => ({ name: "local", version: "0" }) },
)
