import { expect, it } from "vitest"
import { isNativeObject, type NativeObject } from "#engines/llama/native/NativeObjects.ts"

/** As in the packages of node-llama-cpp 3.21.1 for these systems. */
const folders: Readonly<Record<string, Readonly<Record<NativeObject, string>>>> = {
  "/x/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/": {
    llama: "libllama.v0.4.0.so",
    ggml: "libggml.v0.4.0.so",
    "ggml-base": "libggml-base.so",
    "ggml-cpu": "libggml-cpu-haswell.so",
  },
  "/x/mac-arm64-metal/": {
    llama: "libllama.metal.v0.4.0.dylib",
    ggml: "libggml.metal.v0.4.0.dylib",
    "ggml-base": "libggml-base.dylib",
    "ggml-cpu": "libggml-cpu-apple_m1.so",
  },
  "C:\\x\\win-x64\\": {
    llama: "llama.v0.4.0.dll",
    ggml: "ggml.v0.4.0.dll",
    "ggml-base": "ggml-base.dll",
    "ggml-cpu": "ggml-cpu-x64.dll",
  },
  "": {
    llama: "libllama.cuda.v0.4.0.so",
    ggml: "libggml.so",
    "ggml-base": "libggml-base.so",
    "ggml-cpu": "ggml-cpu.dll",
  },
}

it("knows each library by its name on each system, and takes no other for it", () => {
  const objects = ["llama", "ggml", "ggml-base", "ggml-cpu"] as const
  for (const [folder, files] of Object.entries(folders))
    for (const [meant, file] of Object.entries(files))
      expect(objects.filter((object) => isNativeObject(folder + file, object))).toEqual([meant])
  for (const other of [
    "llama-addon.node",
    "llama-common.dll",
    "libllama-common.so",
    "libggml-metal.so",
    "llama.txt",
  ])
    expect(objects.filter((object) => isNativeObject(`/x/${other}`, object))).toEqual([])
})
