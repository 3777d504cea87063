// Prompts and recordings, the project's own and from files.
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { wordEndsOf } from "#harness/data/Clip.ts"
import { librispeech } from "#harness/data/ClipFolder.ts"
import { promptOf } from "#harness/data/Prompts.ts"
import { shareGptPrompts } from "#harness/data/ShareGpt.ts"
import { WrongData } from "#harness/data/WrongData.ts"

const folder = () => mkdtempSync(join(tmpdir(), "edgewise-bench-data-"))

describe("generated prompts", () => {
  it("have their length, repeat by seed, and begin differently", () => {
    for (const words of [1, 30, 300, 1_500]) {
      const count = promptOf(words, 1, 5).split(" ").length
      expect(count).toBeGreaterThanOrEqual(words)
      expect(count).toBeLessThan(words + 40)
    }
    expect(promptOf(30, 1, 5)).toBe(promptOf(30, 1, 5))
    const beginnings = Array.from({ length: 200 }, (_, at) => promptOf(30, 1, at).slice(0, 20))
    expect(new Set(beginnings).size).toBe(200)
  })
})

describe("a ShareGPT-shaped file", () => {
  const written = (content: string): string => {
    const path = join(folder(), "a.json")
    writeFileSync(path, content)
    return path
  }

  it("gives the first message of a person", () => {
    const path = written(
      JSON.stringify([
        {
          id: "1",
          conversations: [
            { from: "system", value: "s" },
            { from: "human", value: "one" },
            { from: "gpt", value: "x" },
          ],
        },
        { conversations: [{ from: "gpt", value: "x" }] },
        null,
        { messages: [{ role: "user", content: "two" }] },
        { conversations: [{ from: "human", value: "z".repeat(100_000) }] },
      ]),
    )
    const { name, prompt } = shareGptPrompts(path, 1)
    expect(name).toBe("a.json, 2 conversations")
    expect(new Set(Array.from({ length: 50 }, (_, at) => prompt(at)))).toEqual(new Set(["one", "two"]))
  })

  it.each([
    ["{", "JSON"],
    ["[]", "no prompts"],
    ['{"a":1}', "no prompts"],
  ])("refuses %s", (content, message) => {
    expect(() => shareGptPrompts(written(content), 1)).toThrow(WrongData)
    expect(() => shareGptPrompts(written(content), 1)).toThrow(message)
  })

  it("refuses a file that is not there", () => {
    expect(() => shareGptPrompts("/nowhere/a.json", 1)).toThrow("ENOENT")
  })
})

describe("a LibriSpeech-shaped folder", () => {
  it("gives each recording with its text", () => {
    const root = folder()
    mkdirSync(join(root, "84/121123"), { recursive: true })
    const chapter = join(root, "84/121123")
    writeFileSync(
      join(chapter, "84-121123.trans.txt"),
      "84-121123-0000 GO DO YOU HEAR\n84-121123-0001 MISSING\n\n",
    )
    writeFileSync(join(chapter, "84-121123-0000.flac"), "")
    expect(librispeech(root)).toEqual([
      { path: join(chapter, "84-121123-0000.flac"), text: "GO DO YOU HEAR" },
    ])
  })

  it("refuses an empty folder and none", () => {
    expect(() => librispeech(folder())).toThrow("no recordings")
    expect(() => librispeech("/nowhere")).toThrow(WrongData)
  })
})

it("words end in order inside their segments", () => {
  expect(
    wordEndsOf([
      { text: "a bcd", start: 1, end: 3 },
      { text: "Ef.", start: 4, end: 5 },
    ]),
  ).toEqual([1.5, 3, 5])
})

it("the program's own clips have texts that fit their segments", () => {
  const path = new URL("../../../bench/harness/data/clips/clips.json", import.meta.url)
  const clips = JSON.parse(readFileSync(path, "utf8")) as ReadonlyArray<{
    text: string
    segments: ReadonlyArray<{ text: string }>
  }>
  expect(clips.length).toBe(12)
  for (const { segments, text } of clips) expect(segments.map((one) => one.text).join(" ")).toBe(text)
})
