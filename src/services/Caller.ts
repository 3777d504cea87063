// Who a request is served for, and by which number engines know the organization. The API provides the caller once the credential has
// been checked.
import { Context } from "effect"
import { LRUCache } from "lru-cache"
import type { Principal } from "#store/accounts/Accounts.ts"

/** The authenticated caller of the current request. */
export class Caller extends Context.Service<Caller, Principal>()("edgewise/services/Caller") {}

/** An organization that is forgotten gets another number: its prompts are evaluated again once. A guess. */
const remembered = 20_000

const numbers = new LRUCache<string, number>({ max: remembered })
let last = 0

/**
 * The number of an organization: the same for all its requests as long as the node runs, and never that of another one. What an engine
 * keeps of a prompt serves only requests with an equal number. It is not the organization's id, so nothing that an engine prints names one.
 */
export const ownerOf = (orgId: string): number => {
  const known = numbers.get(orgId)
  if (known !== undefined) return known
  numbers.set(orgId, ++last)
  return last
}
