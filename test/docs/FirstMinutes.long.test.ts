// From `git clone` to a spoken sentence, its transcription and a chat, as a stranger: the lines of README's own code blocks, in a clone
// of the last commit, with packages from the registry. Prints the seconds of each step; docs/install.md has them.
import { execFileSync } from "node:child_process"
import { cpus } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { blocksOf, repository } from "../support/docs/GuideBlocks.ts"
import { startGuide } from "../support/docs/RunGuide.ts"
import { needs } from "../support/groups/Needs.ts"
import { temporaryDir } from "../support/nodes/TestNode.ts"

const dir = temporaryDir()
afterAll(() => dir.remove())

const letters = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z ]/g, "")
    .trim()

it(
  "README's lines lead from a clone to speech, its transcription and a chat",
  { ...needs("git"), timeout: 1_800_000 },
  async () => {
    const seconds: Array<readonly [string, number]> = []
    const timed = async <A>(what: string, step: () => A | Promise<A>): Promise<A> => {
      const before = performance.now()
      const result = await step()
      seconds.push([what, (performance.now() - before) / 1000])
      return result
    }
    const folder = join(dir.path, "edgewise")
    await timed("git clone", () => execFileSync("git", ["clone", "--quiet", repository, folder]))
    // The smaller installation, which the same line names; up to the first chat.
    const lines = blocksOf("README.md", folder)
      .slice(0, 2)
      .flatMap((block) =>
        block.text
          .trim()
          .split("\n")
          .flatMap((line) => line.replace(/ *#.*$/, "").split(" && "))
          .filter((text) => text !== "npm test")
          .map((text) => ({ ...block, text: text === "npm ci" ? "npm ci --omit=dev" : text })),
      )
    const guide = await startGuide({ folder })
    const outputs = new Map<string, string>()
    try {
      for (const line of lines) {
        outputs.set(line.text, await timed(line.text, () => guide.run(line)))
      }
    } finally {
      await guide.stop()
    }
    const total = seconds.reduce((sum, [, each]) => sum + each, 0)
    const table = [...seconds, ["in all", total] as const].map(
      ([what, each]) => `${each.toFixed(1).padStart(6)} s  ${what}`,
    )
    console.log(`${cpus().length} cores of ${cpus()[0]?.model}, Node ${process.version}\n${table.join("\n")}`)

    const outputOf = (part: string): string => [...outputs].find(([line]) => line.includes(part))?.[1] ?? ""
    const sentence = /speak "([^"]+)"/.exec([...outputs.keys()].join("\n"))?.[1] ?? ""
    expect(sentence).not.toBe("")
    expect(outputOf("-- speak")).toMatch(/^hello\.wav: \d+ bytes of wav$/m)
    expect(letters(outputOf("-- transcribe"))).toBe(letters(sentence))
    expect(outputOf("-- chat")).toContain("fox")
  },
)
