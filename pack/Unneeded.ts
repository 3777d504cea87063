// Files of carried packages that no node opens on a platform that the tarball serves. bin/trim.js deletes the same files,
// and those of the other processor, from packages that npm has installed.
import { platforms } from "./Carried.ts"

const processors = platforms.cpu

/** For editors, debuggers and the compiler. */
const forDevelopment = /\.(?:[cm]?js|[cm]?ts|css)\.map$|\.d\.[cm]?ts$/

/** By package: whether a path in it is unneeded. */
const rules: Readonly<Record<string, (path: string) => boolean>> = {
  effect: (path) => path.startsWith("src/"),
  "@effect/platform-node": (path) => path.startsWith("src/"),
  "@effect/platform-node-shared": (path) => path.startsWith("src/"),
  "node-llama-cpp": (path) => path === "llama/gitRelease.bundle",
  "onnxruntime-node": (path) =>
    path.startsWith("bin/") &&
    !processors.some((processor) => path.startsWith(`bin/napi-v6/linux/${processor}/`)),
  "node-datachannel": (path) => path.startsWith("src/"),
  // 127 is the binary interface of Node 22.
  "uWebSockets.js": (path) =>
    path.startsWith("dist/bin/") &&
    !processors.some((processor) => path === `dist/bin/uws_linux_${processor}_127.node`),
}

export const isUnneeded = (name: string, path: string): boolean =>
  forDevelopment.test(path) || rules[name]?.(path) === true
