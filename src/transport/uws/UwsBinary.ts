// Checks that the native code of uWebSockets.js is the reviewed one. The package is a third party's repack, and the
// code runs in the process that holds every secret. The lock file's hash only shows that the registry delivers the same
// package as before.
import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"

/** SHA-256 of version 20.0.8's binaries, by system, processor and ABI of Node (115: 20, 120: 21, 127: 22). */
const known: Readonly<Record<string, string>> = {
  linux_x64_115: "6f8d96d761a64beddb060f1f7f0e617dd293ed127ec1d57507aa561a0083171e",
  linux_x64_120: "fcb1172837abd2a2dd130f6c6502f18e9b562a5d88bcc3bcdca5e6e710278080",
  linux_x64_127: "8cabc918bbf9a07323e54f89a33882491080b2eb35df0607f473ccdb1f3c31af",
  linux_arm64_115: "c0e29fc143b46b584f3debec7910014ec228198fc1f17aaeacd1de7991bd3769",
  linux_arm64_120: "a855e3b7cc0db70ec503e296d50e91d2435db679bc3bd5433d7dae30e93c9b3c",
  linux_arm64_127: "d4c4f8b2c28c5f6544b49e36d91b0beee238a5b90a07904a947f77061c8b814d",
  darwin_x64_115: "1f2a5c73d9dc3066d39b675b73f2c50eddbc4f270d292a6126ddfe3757c54cf9",
  darwin_x64_120: "3dc10babf35b3ce5d4edc7deaddf912a5a72a0ac7ad52b098dbe430c3c540313",
  darwin_x64_127: "afd992dc1ca1e33cdc7ce0c72a60baf236e590a257fcecbbbce7bc1a35451387",
  darwin_arm64_115: "5d523bccbe80d3d8fa59422ff81801b8179212b9a8a5da28bff6926a95a65701",
  darwin_arm64_120: "98ffa032aeb84b98d432502738871c5748f6a636536d5705702c4985925a41ae",
  darwin_arm64_127: "abbeea53d48e21c01808203e9f9835728f2cea720d2e5b154837ee3045b513be",
}

/** This machine's part in the names of the binaries. */
export const uwsTarget = `${process.platform}_${process.arch}_${process.versions.modules}`

/** Path of a machine's binary in the package. */
export const uwsBinary = (target: string = uwsTarget): string =>
  fileURLToPath(new URL(`./bin/uws_${target}.node`, import.meta.resolve("uWebSockets.js")))

/** What is wrong with a binary. Undefined if it is the checked one. Reads 3 MB. */
export const uwsProblem = async (
  path: string = uwsBinary(),
  target: string = uwsTarget,
): Promise<string | undefined> => {
  const wanted = known[target]
  if (wanted === undefined) return `uWebSockets.js has no checked binary for ${target}`
  const found = createHash("sha256")
    .update(await readFile(path))
    .digest("hex")
  return found === wanted
    ? undefined
    : `uWebSockets.js: the binary for ${target} has SHA-256 ${found}, and not ${wanted}: install again from the lock file`
}
