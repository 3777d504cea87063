// README's own lines, in order, but for the installation, which FirstMinutes.long.test.ts performs; its programs once more on another
// Node where there is one.
import { chmodSync, mkdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { markup } from "../../models/eval/ChatRubric.ts"
import { blocksOf, type GuideBlock } from "../support/docs/GuideBlocks.ts"
import { noOtherNode, otherNode, useNode } from "../support/docs/OtherNode.ts"
import { type GuideRun, linkRepository, startGuide } from "../support/docs/RunGuide.ts"
import { needs, onlyWhere } from "../support/groups/Needs.ts"
import { uses } from "../support/groups/Uses.ts"
import { temporaryDir } from "../support/nodes/TestNode.ts"

const blocks = blocksOf("README.md").map((block) => ({
  ...block,
  text: block.text.replace("npm ci && npm start", "npm start"),
}))
const dir = temporaryDir()
let guide: GuideRun
beforeAll(async () => {
  uses("weights", "the built-in weights, in a node of its own")
  linkRepository(dir.path)
  // A loudspeaker that keeps what it would play.
  const bin = join(dir.path, "programs")
  mkdirSync(bin)
  writeFileSync(join(bin, "aplay"), "#!/bin/sh\ncat > played.raw\n")
  chmodSync(join(bin, "aplay"), 0o755)
  guide = await startGuide({ folder: dir.path, skips: (line) => line.startsWith("npm test") })
  await guide.run({ language: "sh", file: undefined, line: 0, text: `export PATH=${bin}:$PATH` })
})
afterAll(async () => {
  await guide.stop()
  dir.remove()
})

/** The last line that a listener prints. */
const heard = (output: string): string => output.trimEnd().split("\n").at(-1) ?? ""
const sentence = /^please open the window\.?$/i
const isStory = (output: string): void => {
  expect(output).not.toMatch(markup)
  expect(output.trim().split(/\s+/).length).toBeGreaterThan(10)
}

const checks: ReadonlyArray<readonly [inBlock: string, check: (output: string) => void]> = [
  ["npm start", () => {}],
  [
    "edgewise -- speak",
    (output) => {
      const [spoken = "", text = "", ...story] = output.trim().split("\n")
      expect(spoken).toMatch(/^hello\.wav: \d+ bytes of wav$/)
      expect(text).toMatch(sentence)
      isStory(story.join(" "))
    },
  ],
  ["export KEY", () => {}],
  ["import OpenAI", () => {}],
  ["node chat.mjs", isStory],
  // More than a second of 24 kHz.
  ["aplay", () => expect(statSync(join(dir.path, "played.raw")).size).toBeGreaterThan(48_000)],
  ["new WebSocket", () => {}],
  ["node live.mjs", (output) => expect(heard(output)).toMatch(sentence)],
  ["edgewise -- talk", () => expect(statSync(join(dir.path, "answer.wav")).size).toBeGreaterThan(48_000)],
  ["edgewise -- bench", (output) => expect(output).toMatch(/requests, of which 0 failed;/)],
]

const checkOf = (block: GuideBlock) => {
  const found = checks.find(([inBlock]) => block.text.includes(inBlock))
  if (found === undefined) throw new Error(`no check for ${block.text}`)
  return found[1]
}

describe("README", needs("curl"), () => {
  it("has each block that is checked here, and no other", () => {
    expect(blocks.map(checkOf)).toEqual(checks.map(([, check]) => check))
  })

  /** Real time: test/cli/talk has the command's tests. */
  const isTalk = ({ text }: GuideBlock) => text.includes("edgewise -- talk")
  const works = "works in the block of line %i"
  const run = async (_: number, block: GuideBlock) => checkOf(block)(await guide.run(block))
  const lined = (some: ReadonlyArray<GuideBlock>) => some.map((block) => [block.line, block] as const)
  it.each(lined(blocks.filter((block) => !isTalk(block))))(works, run)
  it.each(lined(blocks.filter(isTalk)))(works, run)

  it(
    `works with ${otherNode?.version ?? "another Node"} too`,
    onlyWhere(otherNode !== undefined, noOtherNode),
    async () => {
      await guide.run(useNode(otherNode!, dir.path))
      for (const block of blocks.filter(({ text }) => text.startsWith("node "))) {
        const version = await guide.run({ ...block, text: "node --version" })
        expect(version.trim()).toBe(otherNode!.version)
        checkOf(block)(await guide.run(block))
      }
    },
  )
})
