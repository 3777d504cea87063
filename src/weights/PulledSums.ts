// Reads pulled files again and compares them with the sums that they had when they arrived: for an operator who suspects a disk.
import { stat } from "node:fs/promises"
import { type HubFile, hubScheme, membersOf, parseHubFile, sourceOf } from "#domain/models/HubFile.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { sumOf } from "#store/files/FileSums.ts"
import { keptPath, pulled } from "./Weights.ts"

const filesOf = ({ files }: ModelEntry): ReadonlyArray<HubFile> =>
  Object.values(files).flatMap(({ files: members, source }) => {
    const file = source.startsWith(hubScheme) ? parseHubFile(source) : undefined
    if (file === undefined) return []
    return members === undefined ? [file] : membersOf(file, members).map((one) => one.file)
  })

/** One sentence for each pulled file of the entry that has changed since it arrived. Files that are not there are left out. */
export const sumProblems = async (dir: string, entry: ModelEntry): Promise<ReadonlyArray<string>> => {
  const problems: Array<string> = []
  for (const file of filesOf(entry)) {
    const record = await pulled(dir, file)
    if (record === undefined) continue
    const path = keptPath(dir, file)
    const sum = await sumOf(path, await stat(path))
    if (sum !== record.sha256)
      problems.push(
        `${sourceOf(file)} has changed since it arrived (SHA-256 ${sum}, was ${record.sha256}); delete ${path} and pull it again`,
      )
  }
  return problems
}
