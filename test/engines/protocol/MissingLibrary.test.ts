import { expect, it } from "vitest"
import { missingLibrary } from "../../../engines/protocol/MissingLibrary.ts"

// Messages of onnxruntime-node 1.30.0, node-llama-cpp 3.21.1, koffi 3.3.4 and of Node.
it.each([
  [
    "Cannot find module '../bin/napi-v6/linux/x64/onnxruntime_binding.node'\nRequire stack:\n- /app/node_modules/onnxruntime-node/dist/binding.js",
    /^the library of ONNX Runtime for sunos x64 is not installed: npm ci installs it on /,
  ],
  ["libonnxruntime.so.1: cannot open shared object file: No such file or directory", /ONNX Runtime/],
  ["NoBinaryFoundError", /^the library of llama\.cpp for sunos x64 is not installed: .*source build$/],
  ["Cannot find package 'node-llama-cpp' imported from /app/engines/llama/native/Library.ts", /llama\.cpp/],
  ["Cannot find the native Koffi module; did you bundle it correctly?", /koffi/],
])("names the library and what installs it: %s", (detail, line) => {
  expect(missingLibrary(detail, "sunos x64")).toMatch(line)
})

it("leaves other failures as they are", () => {
  for (const detail of ["weights: tensor blk.0 is missing", "Cannot find module '../a.ts'", "out of memory"])
    expect(missingLibrary(detail)).toBeUndefined()
})
