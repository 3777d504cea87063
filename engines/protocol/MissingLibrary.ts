// A model's load that failed because the native library of its engine is not on this machine: the packages' own messages
// name files inside of them, or nothing, and not what to install. Pure.

const libraries: ReadonlyArray<{
  readonly message: RegExp
  readonly name: string
  readonly remedy: string
}> = [
  {
    message: /onnxruntime_binding\.node|libonnxruntime|Cannot find (?:package|module) '?onnxruntime-node/,
    name: "ONNX Runtime",
    remedy: "npm ci installs it on Linux with glibc, macOS on arm64, and Windows",
  },
  {
    message: /NoBinaryFoundError|Cannot find (?:package|module) '?@?node-llama-cpp/,
    name: "llama.cpp",
    remedy:
      "npm ci installs it on Linux with glibc, macOS and Windows; elsewhere build it with npx node-llama-cpp source build",
  },
  {
    message: /native Koffi module|Cannot find (?:package|module) '?(?:koffi|@koromix)/,
    name: "koffi, which calls llama.cpp,",
    remedy: "npm ci installs it on Linux with glibc, macOS and Windows",
  },
]

/**
 * What to install. Undefined if the load failed for another reason.
 * @param detail the message of the failure
 * @param machine system and processor
 */
export const missingLibrary = (
  detail: string,
  machine = `${process.platform} ${process.arch}`,
): string | undefined => {
  const found = libraries.find(({ message }) => message.test(detail))
  return found && `the library of ${found.name} for ${machine} is not installed: ${found.remedy}`
}
