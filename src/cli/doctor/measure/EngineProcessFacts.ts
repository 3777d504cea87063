// Facts about an engine's process: its processor time, and the native libraries that it has loaded. Known on Linux
// only. The parsers are pure.
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

/** The unit of /proc/PID/stat on every Linux that Node runs on. */
const msPerTick = 10

/** Processor time from a line of /proc/PID/stat: fields 14 and 15, counted after the command's name. */
export const cpuMsFrom = (stat: string): number | undefined => {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const ticks = Number(fields[11]) + Number(fields[12])
  return Number.isFinite(ticks) ? ticks * msPerTick : undefined
}

/** Processor time that a process has used since it started, all threads together. Undefined if it has ended. */
export const cpuMsOf = (pid: number | undefined): number | undefined =>
  pid === undefined ? undefined : cpuMsFrom(read(`/proc/${pid}/stat`))

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
