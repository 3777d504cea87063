// The held-out tool requests of the evaluation: their wordings, and the values to copy, are not in the tables of the training text.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { toolRequests } from "../eval/ChatTools.ts"

const words = new URL("../train/words/", import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, words), "utf8").toLowerCase()
const trained = ["tools.json", "knowledge.json", "corpus.py", "tools.py"].map(read)

const Tables = Schema.Struct({
  domains: Schema.Array(
    Schema.Struct({
      requests: Schema.Array(Schema.String),
      wordings: Schema.optionalKey(Schema.Array(Schema.Tuple([Schema.String, Schema.String]))),
    }),
  ),
})
const { domains } = Schema.decodeUnknownSync(Schema.fromJsonString(Tables))(
  readFileSync(new URL("tools.json", words), "utf8"),
)

const heldOut = toolRequests.requests.filter(({ group }) => group === "held out")
const plain = (text: string): string => text.toLowerCase().replaceAll(/[.?!]/g, "")

/** Values to copy from the request. Numbers and times are drawn at random in training, and enums are known. */
const copied = heldOut.flatMap(({ calls }) =>
  calls.flatMap((call) =>
    Object.entries(call.arguments).flatMap(([key, value]) =>
      typeof value === "string" && !/\d/.test(value) && key !== "state" && key !== "action" ? [value] : [],
    ),
  ),
)

describe("the tool requests of the evaluation", () => {
  it("offer only tools that are defined, and expect only calls of offered tools", () => {
    const names = new Set(toolRequests.tools.map(({ name }) => name))
    for (const { calls, tools } of toolRequests.requests) {
      expect(tools.filter((name) => !names.has(name))).toEqual([])
      expect(calls.filter(({ name }) => !tools.includes(name))).toEqual([])
    }
    expect(toolRequests.requests.filter(({ group }) => group === "everyday").length).toBe(10)
    expect(heldOut.length).toBe(17)
  })

  it("ask for values that were never trained, where they are held out", () => {
    expect(copied.length).toBeGreaterThan(14)
    expect(copied.filter((value) => trained.some((text) => text.includes(value.toLowerCase())))).toEqual([])
  })

  it("have wordings that were never trained, where they are held out", () => {
    const skeletons = domains
      .flatMap(({ requests, wordings = [] }) => [...requests, ...wordings.map(([request]) => request)])
      .map((request) => plain(request.replaceAll(/\{\w+\}/g, "{}")))
    /** The message with all values of its arguments replaced. */
    const skeleton = ({ calls, message }: (typeof heldOut)[number]): string =>
      calls
        .flatMap((call) => Object.values(call.arguments))
        .reduce((text: string, value) => text.replace(plain(String(value)), "{}"), plain(message))
    expect(skeletons).toContain("what time is it in {}")
    expect(heldOut.map(skeleton)).toContain("ring {}")
    expect(heldOut.map(skeleton).filter((text) => skeletons.includes(text))).toEqual([])
  })
})
