// Records the oracle's answers about generated pictures as fixtures: node bench/pictures/record.ts ORACLE (see README.md here).
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type VisionSize, visionShapes } from "../sizes/vision/TowerShapes.ts"
import { writeVisionModel } from "../sizes/vision/VisionWeights.ts"
import { cases, pictureOf, promptText, replyTokens } from "./Cases.ts"

interface Answer {
  readonly name: string
  readonly prompt: ReadonlyArray<number>
  readonly tokens: ReadonlyArray<number>
  readonly gaps: ReadonlyArray<number>
}

/**
 * A token whose logit exceeded the next best by less ends a recorded answer: kernels of other processors round differently.
 * Logits have a deviation of about 3; rounding changed them by less than 0.001 (measured).
 */
const leastGap = 0.02

const [oracle] = process.argv.slice(2)
if (oracle === undefined) throw new Error("usage: record.ts ORACLE")

const folder = mkdtempSync(join(tmpdir(), "edgewise-oracle-"))
try {
  for (const size of Object.keys(visionShapes) as ReadonlyArray<VisionSize>) {
    if (!size.startsWith("toy-")) continue
    const { mmproj, weights } = await writeVisionModel(mkdtempSync(join(folder, size)), size)
    const lines = cases.map((one) => {
      const prompt = join(folder, `${one.name}.txt`)
      writeFileSync(prompt, promptText(one, "<__media__>"))
      const pictures = one.content
        .filter((part) => typeof part === "number")
        .map((seed, at) => {
          const { height, rgb, width } = pictureOf(seed)
          const path = join(folder, `${one.name}-${at}.raw`)
          writeFileSync(path, Buffer.concat([Buffer.from(Uint32Array.of(width, height).buffer), rgb]))
          return path
        })
      return [one.name, replyTokens, prompt, ...pictures].join(" ")
    })
    writeFileSync(join(folder, "cases"), `${lines.join("\n")}\n`)
    const printed = execFileSync(oracle, [weights, mmproj, join(folder, "cases")], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    })
    const answers = printed
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Answer)
      .map(({ gaps, name, prompt, tokens }) => {
        const unsure = gaps.findIndex((gap) => gap < leastGap)
        return { name, prompt, tokens: unsure < 0 ? tokens : tokens.slice(0, unsure) }
      })
    const target = new URL(`../../test/engines/llama/vision/oracle/${size}.json`, import.meta.url)
    const body = answers.map((answer) => JSON.stringify(answer)).join(",\n")
    writeFileSync(target, `{"release": "v0.4.0", "answers": [\n${body}\n]}\n`)
    console.log(size, answers.map(({ tokens }) => tokens.length).join(" "))
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
