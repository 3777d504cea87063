// llama.cpp's library as koffi opens it: what it keeps of a library stays as long as the process.
import { dirname } from "node:path"
import { expect, it } from "vitest"
import { koffi } from "#engines/llama/native/Koffi.ts"
import { openLibllama } from "#engines/llama/native/Libllama.ts"
import { openLibrary } from "#engines/llama/native/Library.ts"
import { isNativeObject, loadedObjects } from "#engines/llama/native/NativeObjects.ts"
import { threadCpuMs } from "../../../../bench/support/Probe.ts"
import { uses } from "../../../support/groups/Uses.ts"

uses("weights", "a native engine")

it("is opened once, however many models are loaded", async () => {
  await openLibrary({ gpu: "off", threads: 1, logger: () => {} })
  const folder = dirname(loadedObjects().find((path) => isNativeObject(path, "llama")) ?? "")
  expect(openLibllama(folder)).toBe(openLibllama(folder))
})

it("is opened after a library of another user of koffi, with the stacks that its calls need", async () => {
  expect(threadCpuMs()).toBeGreaterThan(0)
  await openLibrary({ gpu: "off", threads: 1, logger: () => {} })
  expect(koffi.config()).toMatchObject({
    sync_stack_size: 8 * 1024 * 1024,
    async_stack_size: 8 * 1024 * 1024,
  })
})
