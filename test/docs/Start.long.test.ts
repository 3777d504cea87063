// The five-minute start, line by line, but for the installation, which FirstMinutes.long.test.ts performs.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { blocksOf } from "../support/docs/GuideBlocks.ts"
import { type GuideRun, linkRepository, startGuide } from "../support/docs/RunGuide.ts"
import { needs } from "../support/groups/Needs.ts"
import { uses } from "../support/groups/Uses.ts"
import { temporaryDir } from "../support/nodes/TestNode.ts"

const blocks = blocksOf("docs/start.md")
const dir = temporaryDir()
let guide: GuideRun
beforeAll(async () => {
  linkRepository(dir.path)
  guide = await startGuide({ folder: dir.path, skips: (line) => line.startsWith("npm ci") })
})
afterAll(async () => {
  await guide.stop()
  dir.remove()
})

/** What the output of a block holds, by something in the block. */
const outputs: ReadonlyArray<readonly [inBlock: string, output: ReadonlyArray<string | RegExp>]> = [
  ["npm start", []],
  ["edgewise -- speak", [/^hello\.wav: \d+ bytes of wav$/m, /^please open the window\.?$/im]],
  ["edgewise -- chat", [/^Once upon a time .*fox/]],
  ["/v1/audio/speech", ["data: [DONE]", /"text": ?"please open the window/i]],
  ["shapes.png", ["A yellow square, a red circle and a blue triangle."]],
  ["tool_choice", ['"name":"get_time"', "Rome"]],
  ["/health", ['"status":"healthy"', "llm-3.5-27b"]],
]

describe("the five-minute start", needs("curl"), () => {
  it.each(blocks.map((block) => [block.line, block] as const))(
    "works in the block of line %i",
    async (_, block) => {
      uses("weights", "the built-in weights, in a node of its own")
      const expected = outputs.find(([inBlock]) => block.text.includes(inBlock))?.[1]
      expect(expected, block.text).toBeDefined()
      const output = await guide.run(block)
      for (const part of expected ?? [])
        expect(output).toEqual(
          typeof part === "string" ? expect.stringContaining(part) : expect.stringMatching(part),
        )
    },
  )

  it("has every kind of block", () => {
    expect(blocks).toHaveLength(outputs.length)
  })
})
