// The native libraries of llama.cpp that node-llama-cpp has loaded into this process, by the names that they have on each system:
// libllama.v0.4.0.so, libllama.metal.v0.4.0.dylib, llama.v0.4.0.dll.

/** `ggml-cpu` stands for the build that fits the processor, e.g. libggml-cpu-haswell.so. */
export type NativeObject = "ggml" | "ggml-base" | "ggml-cpu" | "llama"

const patterns: Readonly<Record<NativeObject, RegExp>> = {
  ggml: /(?:^|[\\/])(?:lib)?ggml(?:\.[^\\/]*)?\.(?:so|dylib|dll)$/,
  "ggml-base": /(?:^|[\\/])(?:lib)?ggml-base(?:\.[^\\/]*)?\.(?:so|dylib|dll)$/,
  "ggml-cpu": /(?:^|[\\/])(?:lib)?ggml-cpu[^\\/]*\.(?:so|dylib|dll)$/,
  llama: /(?:^|[\\/])(?:lib)?llama(?:\.[^\\/]*)?\.(?:so|dylib|dll)$/,
}

/** Whether the path is that of the library. */
export const isNativeObject = (path: string, object: NativeObject): boolean => patterns[object].test(path)

/** Paths of all native libraries of this process. */
export const loadedObjects = (): ReadonlyArray<string> => {
  if (process.report === undefined) throw new Error("no list of loaded libraries")
  Object.assign(process.report, { excludeNetwork: true })
  const { sharedObjects } = process.report.getReport() as unknown as {
    readonly sharedObjects: ReadonlyArray<string>
  }
  return sharedObjects
}
