// The native libraries that an engine's process has loaded. Known on Linux only. The parser is pure.
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import type { Library } from "../report/Document.ts"

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

const firstGroup = (text: string, pattern: RegExp): string | null => pattern.exec(text)?.[1] ?? null

/** The version of an installed package, from its manifest. */
export const versionOf = (name: string): string | null => {
  for (const folder of createRequire(import.meta.url).resolve.paths(name) ?? []) {
    const found = firstGroup(read(join(folder, name, "package.json")), /"version":\s*"([^"]+)"/)
    if (found !== null) return found
  }
  return null
}

/** The native libraries of a process, from the mapped files in the text of /proc/PID/maps. */
export const librariesFrom = (maps: string): ReadonlyArray<Library> => {
  const found: Array<Library> = []
  if (/\/lib(?:ggml|llama)[-.\w]*\.so|llama-addon\.node/.test(maps)) {
    const gpu = firstGroup(maps, /\/libggml-(cuda|vulkan|hip|sycl)[-.\w]*\.so/)
    found.push({
      name: "llama.cpp",
      version: versionOf("node-llama-cpp"),
      variant: firstGroup(maps, /\/libggml-cpu-([\w-]+)\.so/),
      provider: gpu ?? "cpu",
    })
  }
  if (/\/libonnxruntime\.so|onnxruntime_binding\.node/.test(maps)) {
    found.push({
      name: "ONNX Runtime",
      version: firstGroup(maps, /\/libonnxruntime\.so\.(\d+\.\d+\.\d+)/) ?? versionOf("onnxruntime-node"),
      variant: null,
      provider: firstGroup(maps, /\/libonnxruntime_providers_(cuda|tensorrt|rocm)\.so/) ?? "cpu",
    })
  }
  return found
}

/** For an engine that runs as a thread, the libraries are those of this process. */
export const librariesOf = (pid: number | undefined): ReadonlyArray<Library> =>
  librariesFrom(read(`/proc/${pid ?? "self"}/maps`))
