// The result file names neither the machine nor its user nor a path.
import { expect, it } from "vitest"
import { anonymous, withoutPlaces } from "#cli/prove/Document.ts"

const names = ["/home/nadia", "nadias-laptop", "nadia"]

it("keeps the names of files and drops their folders", () => {
  expect(withoutPlaces("cannot open /home/nadia/weights/hf/a/model.onnx: no space", names)).toBe(
    "cannot open model.onnx: no space",
  )
  expect(withoutPlaces("'/var/lib/x/y.bin' and /tmp/z", names)).toBe("'y.bin' and z")
  expect(withoutPlaces("on nadias-laptop of nadia", names)).toBe("on … of …")
})

it("leaves addresses, repositories and fractions as they are", () => {
  for (const text of [
    "https://huggingface.co/a/b",
    "hf:Qwen/Qwen3-0.6B-GGUF@main/x.gguf",
    "3/4 of it",
    "onnx/model.onnx",
  ])
    expect(withoutPlaces(text, names)).toBe(text)
})

it("cleans every text of a document", () => {
  expect(anonymous({ a: ["/home/nadia/x", 1, null], b: { c: "nadia" } }, names)).toEqual({
    a: ["x", 1, null],
    b: { c: "…" },
  })
})
