// Pulls the files of one catalog entry into the data directory, with progress on standard error.
import { Effect, Schema } from "effect"
import type { BadSetting } from "#config/BadSetting.ts"
import { type HubSettings, hubSettings, isHubOffline } from "#config/OtherVariables.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import type { PullSettings, PullWatcher } from "#weights/Download.ts"
import { pullDefaults } from "#weights/PullFile.ts"
import { type PulledFile, pullModel } from "#weights/PullModel.ts"
import { weightsDir } from "#weights/Weights.ts"
import { type ProgressLine, progressLine } from "../shared/ProgressLine.ts"
import type { FileRecord } from "../shared/PullOnNode.ts"

class HubOffline extends Schema.TaggedError<HubOffline>()("HubOffline", {}) {
  override get message(): string {
    return "HF_HUB_OFFLINE is set: nothing is pulled"
  }
}

/** Without a terminal, one line per tenth of the file. */
const tenth = 0.1

export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

/** Progress on standard error: a bar on a terminal, lines elsewhere. */
export const watcherOf = (name: string, bar: ProgressLine | undefined): PullWatcher => {
  const say = (text: string): void => void process.stderr.write(`${name}: ${text}\n`)
  let next = 0
  return {
    waiting: () =>
      bar === undefined ? say("waiting for another pull of this file") : bar.show("waiting", undefined),
    retrying: (problem, attempt) => {
      if (bar === undefined) say(`${problem}; attempt ${attempt}`)
      else bar.show(`attempt ${attempt}`, undefined)
    },
    progress: (doneBytes, totalBytes) => {
      const done = totalBytes === 0 ? 1 : doneBytes / totalBytes
      if (bar !== undefined) return bar.show(name.slice(-40), done)
      if (done < next) return
      say(`${Math.floor(done * 100)} % of ${megabytes(totalBytes)}`)
      next = Math.floor(done / tenth + 1) * tenth
    },
  }
}

/** The same for one file. The bar is removed when the file is there. */
const watch = (name: string) =>
  Effect.map(progressLine(), (line) => watcherOf(name, process.stderr.isTTY === true ? line : undefined))

const checkWords = { catalog: "SHA-256 as in the catalog", hub: "SHA-256 as the hub declares" }

export const lineOf = ({ checked_by, fetched, size_bytes, source }: FileRecord): string =>
  `${source}  ${megabytes(size_bytes)}  ${fetched ? "pulled" : "already there"}, ` +
  `${checked_by === null ? "no SHA-256 to check it against" : checkWords[checked_by]}`

export const recordOf = ({ checkedBy, fetched, path, role, sha256, sizeBytes, source }: PulledFile) => ({
  role,
  source,
  path,
  size_bytes: sizeBytes,
  sha256,
  checked_by: checkedBy ?? null,
  fetched,
})

/** The hub of the environment; fails where nothing may be pulled. */
export const hubHere: Effect.Effect<HubSettings, BadSetting | HubOffline> = Effect.gen(function* () {
  if (isHubOffline()) return yield* new HubOffline()
  return yield* hubSettings()
})

export const pullSettingsOf = (dataDir: string) =>
  Effect.map(hubHere, (hub): PullSettings => ({ ...pullDefaults, hub, dir: weightsDir(dataDir) }))

/** Pulls what is not there. */
export const pullEntry = (catalog: string, entry: ModelEntry, settings: PullSettings) =>
  pullModel({ catalog, entry, settings, watch })
