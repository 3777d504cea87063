// The page for people and the document for programs: layout, marks, and that the document matches its schema.
import { Schema } from "effect"
import { expect, it } from "vitest"
import { Document } from "#cli/doctor/report/Document.ts"
import { resultOf } from "#cli/doctor/report/MeasuredFigures.ts"
import { pageOf } from "#cli/doctor/report/Page.ts"
import { compareResults } from "#harness/report/Compare.ts"
import { machine, report, speechReport, textReport, transcriptionReport } from "../Reports.ts"

const document: Document = {
  schema: "edgewise-doctor/1",
  version: "0.0.0",
  started_at: "2026-01-01T00:00:00.000Z",
  took_seconds: 42,
  seconds: 55,
  ok: false,
  machine,
  surroundings: [
    { name: "node", verdict: "ok", detail: "v22.0.0", advice: null },
    { name: "memory", verdict: "warning", detail: "little", advice: "close other programs" },
  ],
  memory: { budget_bytes: 2 ** 33, node_bytes: 2 ** 28, models_bytes: 2 ** 29, left_bytes: 2 ** 32 },
  models: [
    textReport({ 1: 20, 4: null }, 2, { id: "text", status: "partial", incomplete: ["replies at 4: late"] }),
    report({ id: "twin", status: "same", same_as: "text", load_ms: null }),
    speechReport({ limits: ["slots: few"] }),
    transcriptionReport(),
    report({ id: "broken", status: "failed", reason: "it is not pulled", load_ms: null }),
  ],
}

it("shows what was measured, a dash where nothing was, and a mark where it is not complete", () => {
  const lines = pageOf(document).split("\n")
  const after = (start: string) => lines[lines.findIndex((line) => line.startsWith(start)) + 1]
  expect(lines[0]).toBe("a processor, 2 cores, 2 hardware threads, 8.0 GiB, Linux 6 x64")
  expect(after("warning  memory: little")).toBe("         what to do: close other programs")
  expect(after("text ")).toMatch(/^text \*, 1 stream +400 +20 +250 +100$/)
  expect(after("text *")).toMatch(/^text \*, 4 streams +400 +- +250 \(200 to 1234\) +100$/)
  expect(after("speech ")).toMatch(/^voice +0\.02 +30 \(25 to 40\) +40 +500 \(100 to 2000\) +3$/)
  expect(after("transcription ")).toMatch(/^ears +0\.01 +60 +30 +25 +20 \(10 to 50\) +- +-$/)
  expect(after("model ")).toMatch(
    /^text \* +1500 ms +286 MiB +2 \(measured\) +16 +llama\.cpp 3\.21\.1 \(cpu, zen4\)$/,
  )
  expect(lines).toContain("voice: slots: few")
  expect(lines).toContain("text *: replies at 4: late")
  expect(lines).toContain("broken failed: it is not pulled")
  expect(lines).toContain("twin: the same weights and settings as text")
  expect(lines.at(-1)).toBe("measured in 42 s with edgewise 0.0.0; not every model could be measured")
  expect(lines.filter((line) => /null|undefined|NaN/.test(line))).toEqual([])
})

it("is a document of its schema, also after a way through JSON", () => {
  const decode = Schema.decodeUnknownSync(Document)
  expect(decode(JSON.parse(JSON.stringify(document)))).toEqual(document)
  expect(() => decode({ ...document, models: [{ ...document.models[0], status: "fine" }] })).toThrow()
})

it("two documents can be compared figure by figure; one without the best of its times has no range", () => {
  const faster = { ...document, models: [textReport({ 1: 40 }, 2, { id: "text" })] }
  const old = JSON.parse(JSON.stringify(faster), (name, value: unknown) =>
    name === "best" ? undefined : value,
  )
  const ratios = compareResults(resultOf(document), resultOf(Schema.decodeUnknownSync(Document)(old)))
  const found = ratios.map(({ figure, part, ratio }) => `${part}, ${figure}: ${ratio.value}`)
  expect(found).toContain("text, 1 stream, reply tokens: 2")
  expect(found).toContain("text, 1 stream, first token: 1")
  expect(resultOf(document).sections.find(({ name }) => name === "text")?.cautions).toEqual([
    "text: replies at 4: late",
  ])
})
