// Fresh identifiers for answers, as a service so that tests may choose them.
import { randomBytes } from "node:crypto"
import { Context } from "effect"

/** 24 lower-case hex digits (96 random bits). */
export const NewId = Context.Reference<() => string>("edgewise/api/NewId", {
  defaultValue: () => () => randomBytes(12).toString("hex"),
})
