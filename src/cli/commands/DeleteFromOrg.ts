// `edgewise orgs delete`, `delete-user`, `delete-job`, `delete-answers`: remove what the store and the uploads hold. Work on the store, also
// while nodes run on it: these end what runs and remove their uploads.
import { join } from "node:path"
import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { deletionRecord } from "#api/operations/Deletion.ts"
import { load } from "#config/Config.ts"
import { formatUsd } from "#domain/models/Money.ts"
import { totalMicroDollars } from "#domain/models/Usage.ts"
import { accountNameRule, isAccountName } from "#store/accounts/AccountName.ts"
import { type Deleted, type DeletionOptions, Deletions } from "#store/deletion/Deletions.ts"
import { existingDataDirectory } from "#store/files/DataDir.ts"
import { tryFileLock } from "#store/files/FileLock.ts"
import { storeLayerFromEnvironment } from "#store/Store.ts"
import { jsonFlag, orgArgument, printJson } from "../shared/Output.ts"

/** Whether no node runs on the data directory. While the scope is open, none can start. */
const isAlone = Effect.gen(function* () {
  const { databaseUrl, dataDir } = yield* load({})
  // Nodes of a shared database have the uploads on their own disks.
  if (databaseUrl !== "") return false
  const dir = yield* existingDataDirectory(dataDir)
  return yield* Effect.orElseSucceed(tryFileLock(join(dir, "edge.lock")), () => false)
})

const counted = (count: number, one: string): ReadonlyArray<string> =>
  count === 0 ? [] : [`${count} ${one}${count === 1 ? "" : "s"}`]

const linesOf = (what: string, deleted: Deleted): ReadonlyArray<string> => {
  const parts = [
    ...counted(deleted.users, "user"),
    ...counted(deleted.keys, "key"),
    ...counted(deleted.clientSecrets, "client secret"),
    ...counted(deleted.jobs, "job"),
    ...counted(deleted.answers, "kept answer"),
    ...counted(deleted.receipts, "receipt"),
  ]
  const requests = deleted.kept.reduce((sum, one) => sum + one.requests, 0)
  const usd = formatUsd(totalMicroDollars(deleted.kept))
  return [
    `${what} deleted: ${parts.length === 0 ? "there was nothing else" : parts.join(", ")}`,
    `kept for accounting, without names and texts: ${requests} requests, ${usd} USD, under ${deleted.orgId}`,
    ...(deleted.waitingUploads === 0
      ? []
      : [
          `${deleted.waitingUploads} uploads are on the disks of nodes that did not answer; each removes its own`,
        ]),
  ]
}

const run = <E, R>(
  what: string,
  deletion: (deletions: Deletions["Service"], options: DeletionOptions) => Effect.Effect<Deleted, E, R>,
  json: boolean,
) =>
  Effect.gen(function* () {
    const options = { alone: yield* isAlone }
    const deleted = yield* Effect.provide(
      Effect.flatMap(Deletions, (deletions) => deletion(deletions, options)),
      storeLayerFromEnvironment,
    )
    if (json) return yield* printJson(deletionRecord(deleted))
    for (const line of linesOf(what, deleted)) yield* Console.log(line)
  }).pipe(Effect.scoped)

const org = Command.make(
  "delete",
  { name: orgArgument, json: jsonFlag },
  Effect.fn(function* ({ json, name }) {
    yield* run(name, (deletions, options) => deletions.org(name, options), json)
  }),
).pipe(
  Command.withDescription(
    "Delete an organization with its users, keys, jobs, uploads and kept answers; sums of its usage stay",
  ),
)

const user = Command.make(
  "delete-user",
  {
    name: orgArgument,
    user: Argument.String("USER").pipe(
      Argument.filter(isAccountName, () => accountNameRule),
      Argument.withDescription("User, as `keys list` shows it"),
    ),
    json: jsonFlag,
  },
  Effect.fn(function* ({ json, name, user }) {
    yield* run(`${user} of ${name}`, (deletions, options) => deletions.user(name, user, options), json)
  }),
).pipe(Command.withDescription("Delete a user with the keys, jobs, uploads and kept answers of that user"))

const job = Command.make(
  "delete-job",
  {
    name: orgArgument,
    id: Argument.String("JOB_ID").pipe(Argument.withDescription("As the answer to its upload gave it")),
    json: jsonFlag,
  },
  Effect.fn(function* ({ id, json, name }) {
    yield* run(id, (deletions, options) => deletions.job(name, id, options), json)
  }),
).pipe(Command.withDescription("Delete a transcription job in any state, with its transcript and its upload"))

const answers = Command.make(
  "delete-answers",
  { name: orgArgument, json: jsonFlag },
  Effect.fn(function* ({ json, name }) {
    yield* run(`kept answers of ${name}`, (deletions, options) => deletions.answers(name, options), json)
  }),
).pipe(Command.withDescription("Delete the answers kept for retries with an Idempotency-Key"))

export const deletionCommands = [org, user, job, answers] as const
