// `edgewise orgs`: organizations and their credits; their deletion is in DeleteFromOrg. Works on the store, also while a node runs on it.
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { formatUsd, parseUsd } from "#domain/models/Money.ts"
import { type ModelUsage, totalMicroDollars } from "#domain/models/Usage.ts"
import { Accounts, type Org } from "#store/accounts/Accounts.ts"
import type { NodeLease } from "#store/ledger/LeaseRows.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { storeLayerFromEnvironment } from "#store/Store.ts"
import { isoTime, jsonFlag, orgArgument, printJson, switchFlag } from "../shared/Output.ts"
import { deletionCommands } from "./DeleteFromOrg.ts"
import { usageDocument, usageTable } from "./Usage.ts"

const usdRule = "an amount in USD like 5 or 0.25, with at most 6 decimals"
const usd = (text: string) => Option.fromUndefinedOr(parseUsd(text))

const orgDocument = (org: Org) => ({
  org: org.name,
  org_id: org.id,
  credits_usd: formatUsd(org.creditsMicroDollars),
  payment_method: org.paymentMethod,
  created_at: isoTime(org.createdAtMs),
})

const orgLine = (org: Org): string =>
  `${org.name}: ${formatUsd(org.creditsMicroDollars)} USD of credits${org.paymentMethod ? ", payment method" : ""}`

const print = (org: Org, json: boolean) => (json ? printJson(orgDocument(org)) : Console.log(orgLine(org)))

const create = Command.make(
  "create",
  {
    name: orgArgument,
    credits: Flag.String("credits").pipe(
      Flag.filterMap(usd, () => usdRule),
      Flag.withMetavar("USD"),
      Flag.withDescription("Initial credits in US dollars; default: 0"),
      Flag.withDefault(0),
    ),
    paymentMethod: switchFlag(
      "payment-method",
      "It is invoiced: its requests are never refused for lack of credits",
    ),
    json: jsonFlag,
  },
  Effect.fn(function* ({ name, credits, paymentMethod, json }) {
    const accounts = yield* Accounts
    yield* print(yield* accounts.createOrg({ name, creditsMicroDollars: credits, paymentMethod }), json)
  }, Effect.provide(storeLayerFromEnvironment)),
).pipe(Command.withDescription("Create an organization"))

const credit = Command.make(
  "credit",
  {
    name: orgArgument,
    amount: Argument.String("USD").pipe(
      Argument.filterMap(usd, () => usdRule),
      Argument.withDescription("Credits to add"),
    ),
    json: jsonFlag,
  },
  Effect.fn(function* ({ name, amount, json }) {
    yield* print(yield* (yield* Accounts).creditOrg(name, amount), json)
  }, Effect.provide(storeLayerFromEnvironment)),
).pipe(Command.withDescription("Add credits to an organization"))

/** Only on a store that several nodes share has anything been leased. */
const leaseLines = (leases: ReadonlyArray<NodeLease>): ReadonlyArray<string> =>
  leases.map(({ microDollars, nodeId }) => `${formatUsd(microDollars)} USD of it leased to ${nodeId}`)

const leaseDocument = (leases: ReadonlyArray<NodeLease>) =>
  leases.map(({ microDollars, nodeId }) => ({ node: nodeId, usd: formatUsd(microDollars) }))

const details = (org: Org, leases: ReadonlyArray<NodeLease>, usage: ReadonlyArray<ModelUsage>): string =>
  [
    orgLine(org),
    ...leaseLines(leases),
    usageTable(usage),
    `total ${formatUsd(totalMicroDollars(usage))} USD`,
  ].join("\n")

const show = Command.make(
  "show",
  { name: orgArgument, json: jsonFlag },
  Effect.fn(function* ({ name, json }) {
    const org = yield* (yield* Accounts).showOrg(name)
    const ledger = yield* UsageLedger
    const leases = yield* ledger.leases(org.id)
    const usage = yield* ledger.usage(org.id, 0)
    if (!json) return yield* Console.log(details(org, leases, usage))
    const used = { usage: usageDocument(usage), total_usd: formatUsd(totalMicroDollars(usage)) }
    yield* printJson({ ...orgDocument(org), leased: leaseDocument(leases), ...used })
  }, Effect.provide(storeLayerFromEnvironment)),
).pipe(Command.withDescription("Show balance, leases of nodes and usage of an organization"))

export const orgs = Command.make("orgs").pipe(
  Command.withDescription("Organizations and their credits"),
  Command.withSubcommands([create, credit, show, ...deletionCommands]),
)
