// All presets, and the one of a name.
import { audioPresets } from "./AudioPresets.ts"
import type { Preset } from "./Preset.ts"
import { textPresets } from "./TextPresets.ts"

export const presets: ReadonlyArray<Preset> = [...textPresets, ...audioPresets]

export const presetNamed = (name: string): Preset | undefined =>
  presets.find((preset) => preset.name === name.toLowerCase())
