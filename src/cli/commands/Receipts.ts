// `edgewise receipts`: writes single receipts to files before they become sums. Works on the store, also while nodes run on it.
import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { type ExportedDay, exportReceipts } from "#store/backup/ReceiptFiles.ts"
import { storeLayerFromEnvironment } from "#store/Store.ts"
import { jsonFlag, printJson } from "../shared/Output.ts"

const exportCommand = Command.make(
  "export",
  {
    folder: Argument.String("FOLDER").pipe(
      Argument.withDescription(
        "Gets a file receipts-DAY.jsonl for each day, one receipt a line; made if missing",
      ),
    ),
    json: jsonFlag,
  },
  Effect.fn(function* ({ folder, json }) {
    const days: Array<ExportedDay> = []
    const due = yield* exportReceipts(folder, (of) =>
      Effect.suspend(() => {
        days.push(of)
        return json ? Effect.void : Console.log(`${of.file}: ${of.receipts} receipts`)
      }),
    )
    if (json) return yield* printJson({ days, left: due - days.length })
    if (due === 0)
      yield* Console.log("no day is due: a day is exported once, when it ended at least a day ago (UTC)")
    if (due > days.length)
      yield* Console.log(`${due - days.length} days got receipts meanwhile; export again`)
  }, Effect.provide(storeLayerFromEnvironment)),
).pipe(
  Command.withDescription(
    "Write the receipts of all organizations to files, by day (UTC); needed before EDGEWISE_RECEIPT_DAYS sums them up",
  ),
)

export const receipts = Command.make("receipts").pipe(
  Command.withDescription("Single receipts as files"),
  Command.withSubcommands([exportCommand]),
)
