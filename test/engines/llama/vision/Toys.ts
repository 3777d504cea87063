// Models that take pictures, with random weights, and questions about generated pictures.
import { mkdtempSync } from "node:fs"
import { join } from "node:path"
import type { ContentPart, GenerateRequest, Picture } from "#engines/protocol/Text.ts"
import { pictureOf } from "../../../../bench/pictures/Cases.ts"
import type { VisionSize } from "../../../../bench/sizes/vision/TowerShapes.ts"
import { type VisionFiles, writeVisionModel } from "../../../../bench/sizes/vision/VisionWeights.ts"
import { textRequest } from "../../../support/engines/EngineHarness.ts"

export const toyFiles = (folder: string, size: VisionSize): Promise<VisionFiles> =>
  writeVisionModel(mkdtempSync(join(folder, size)), size)

/** A user's message of texts and, as numbers, seeds of pictures. Each picture is sent once. */
export const pictureRequest = (
  content: ReadonlyArray<string | number>,
  changes: Partial<Omit<GenerateRequest, "prompt" | "sampling">> = {},
  detail: Picture["detail"] = "auto",
): GenerateRequest => {
  const seeds = [...new Set(content.filter((part) => typeof part === "number"))]
  const parts = content.map(
    (part): ContentPart =>
      typeof part === "number"
        ? { kind: "picture", picture: seeds.indexOf(part) }
        : { kind: "text", text: part },
  )
  const pictures = seeds.map((seed) => ({ ...pictureOf(seed), detail }))
  return textRequest([{ role: "user", content: parts }], { pictures, ...changes })
}
