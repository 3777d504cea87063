// `edgewise models presets`: the models that `models add NAME` knows.

import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { Device } from "#actors/device/Device.ts"
import { processBytes } from "#actors/model/MemoryClaim.ts"
import { load } from "#config/Config.ts"
import { table } from "#domain/process/Columns.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"
import { restrictsUse } from "#weights/found/Licences.ts"
import { isVerified, type Preset } from "#weights/presets/Preset.ts"
import { presets as all } from "#weights/presets/Presets.ts"
import { jsonFlag, printJson } from "../shared/Output.ts"
import { withDevice } from "./MachineMemory.ts"

/** What a node claims for the model, without the contexts of its requests. */
const memoryOf = ({ pictures, sizeBytes }: Preset): number => {
  const entry = { files: pictures === true ? { mmproj: {} } : {}, options: {} }
  return sizeBytes + processBytes + (adapterFacts["llama-gguf"]?.cacheBytes?.(entry) ?? 0)
}

const megabytes = (bytes: number): string => String(Math.round(bytes / 1e6))

export const showPresets = Command.make(
  "presets",
  { json: jsonFlag },
  Effect.fn(function* ({ json }) {
    const config = yield* load({})
    const modelBytes = yield* withDevice(
      config,
      Effect.map(Device, (device) => device.modelBytes()),
    )
    const fits = (preset: Preset): boolean => memoryOf(preset) <= modelBytes
    if (json) {
      const listed = all.map((preset) => ({
        name: preset.name,
        does: preset.does,
        kind: preset.kind,
        family: preset.family,
        repository: preset.repository,
        file: preset.file ?? null,
        size_bytes: preset.sizeBytes,
        memory_bytes: memoryOf(preset),
        fits_here: fits(preset),
        licence: preset.licence,
        restricts_use: restrictsUse(preset.licence),
        verified: isVerified(preset),
      }))
      return yield* printJson({ presets: listed })
    }
    const heading = [
      "name",
      "does",
      "family",
      "size MB",
      "memory MB",
      "here",
      "licence",
      "repository",
      "facts",
    ]
    const rows = all.map((preset) => [
      preset.name,
      preset.does,
      preset.family,
      megabytes(preset.sizeBytes),
      megabytes(memoryOf(preset)),
      fits(preset) ? "fits" : "too large",
      `${preset.licence}${restrictsUse(preset.licence) ? " *" : ""}`,
      preset.repository,
      isVerified(preset) ? "verified" : "unverified",
    ])
    yield* Console.log(table(heading, rows))
    yield* Console.log("*: restricts what the model may be used for; `models add` wants --accept")
    yield* Console.log(
      "unverified: not compared with public records of the files; the first `models add` reports what the hub declares",
    )
  }),
).pipe(Command.withDescription("List the models that `models add` knows by name"))
