// llama.cpp's library as koffi opens it: what it keeps of a library stays as long as the process.
import { dirname } from "node:path"
import { expect, it, vi } from "vitest"
import { openLibllama } from "#engines/llama/native/Libllama.ts"
import { openLibrary } from "#engines/llama/native/Library.ts"
import { isNativeObject, loadedObjects } from "#engines/llama/native/NativeObjects.ts"
import { uses } from "../../../support/groups/Uses.ts"

uses("weights", "a native engine")

it("is opened once, however many models are loaded", async () => {
  await openLibrary({ gpu: "off", threads: 1, logger: () => {} })
  const folder = dirname(loadedObjects().find((path) => isNativeObject(path, "llama")) ?? "")
  expect(openLibllama(folder)).toBe(openLibllama(folder))
})

it("is opened by a second copy of the program in a process, as tests that share a worker make one", async () => {
  const folder = dirname(loadedObjects().find((path) => isNativeObject(path, "llama")) ?? "")
  vi.resetModules()
  const again = await import("#engines/llama/native/Libllama.ts")
  expect(again.openLibllama).not.toBe(openLibllama)
  expect(() => again.openLibllama(folder)).not.toThrow()
})
