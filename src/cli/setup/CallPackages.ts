// The packages of the registry that hold the library of WebRTC calls. The packed program leaves them out, because calls are off by default, and
// `edgewise setup` installs them; `npm ci` in a checkout installs them too.
import { type Config, settings } from "#config/Settings.ts"
import { isInstalled, type RegistryPackage } from "./RegistryPackages.ts"

/** By system and processor, for glibc. Hashes and sizes from the registry on 2026-11-27. */
const packages: Readonly<Record<string, ReadonlyArray<RegistryPackage>>> = {
  "linux-x64": [
    {
      name: "@node-datachannel/linux-x64-gnu",
      version: "0.33.4",
      integrity:
        "sha512-xN0x3lcQ87qwOAmf1dBLVWrYY40LQ7pM4Y9wuNjP+EtN4IwiXqrhPdgupzGAElxna+n2NgBG0gT60dZpgoYU2Q==",
      downloadBytes: 3_486_574,
      installedBytes: 9_061_249,
    },
  ],
  "linux-arm64": [
    {
      name: "@node-datachannel/linux-arm64-gnu",
      version: "0.33.4",
      integrity:
        "sha512-rR4yjwxpI1miLSrruLGcfR9yfw0Qebw+Twt+u+lKsL9SwmXxTm5pJhUAa9RU+c35oZ98IyAxGFjRwwq85BTbog==",
      downloadBytes: 3_289_319,
      installedBytes: 8_540_127,
    },
  ],
}

/** The packages for this machine. Empty if there are none: other systems have the library from `npm ci` only. */
export const callPackages = (
  platform = `${process.platform}-${process.arch}`,
): ReadonlyArray<RegistryPackage> => packages[platform] ?? []

/** What is wrong with a node that takes WebRTC calls, if their library is not installed. */
export const webrtcProblem = (
  { webrtcPort }: Pick<Config, "webrtcPort">,
  has: (one: RegistryPackage) => boolean = isInstalled,
): string | undefined =>
  webrtcPort === 0 || callPackages().every(has)
    ? undefined
    : `${settings.webrtcPort.variable}=${webrtcPort}: the library of WebRTC calls is not installed: run edgewise setup webrtc`
