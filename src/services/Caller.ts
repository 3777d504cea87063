// Who a request is served for. The API provides it once the credential has been checked.
import { Context } from "effect"
import type { Principal } from "#store/accounts/Accounts.ts"

/** The authenticated caller of the current request. */
export class Caller extends Context.Service<Caller, Principal>()("edgewise/services/Caller") {}
