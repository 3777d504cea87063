// Fresh identifiers for answers, as a service so that tests may choose them.
import { randomBytes } from "node:crypto"
import { Context } from "effect"
import { freshIds } from "#domain/access/FreshIds.ts"

/** 24 lower-case hex digits. */
export const NewId = Context.Reference<() => string>("edgewise/api/NewId", {
  defaultValue: () => freshIds(randomBytes),
})
