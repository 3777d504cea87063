// Which files of the carried packages the program can load, found by following imports from every file of the program.
import { readdirSync, realpathSync, rmSync } from "node:fs"
import { join, relative } from "node:path"
import { nodeFileTrace } from "@vercel/nft"
import { nameAt } from "./Carried.ts"
import { app } from "./Files.ts"

/** Kept whole: they load files by names that they compute. */
const whole = ["node-llama-cpp", "onnxruntime-node", "onnxruntime-common", "uWebSockets.js"]

/** A package's manifest, and texts that a licence asks to keep. Paths from the package's folder. */
const alwaysKept = /^(?:package\.json|(?:licen[cs]e|copying|(?:third.party.)?notice|unlicense)[^/]*)$/i

/** Files of a folder as paths from it, without those of packages inside of it. */
const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true, encoding: "utf8" })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((path) => !path.startsWith("node_modules/"))

/**
 * Deletes files of the carried packages that no file of the program leads to.
 * @param program paths of the program's files
 * @param packages paths of the packages below `app`
 * @returns the packages of which something is left
 */
export const keepReachable = async (
  program: ReadonlyArray<string>,
  packages: ReadonlyArray<string>,
): Promise<ReadonlyArray<string>> => {
  const base = realpathSync(join(app, ".."))
  const { fileList } = await nodeFileTrace([...program], { base, processCwd: app })
  return packages.filter((path) => {
    const folder = join(app, path)
    const files = filesIn(folder)
    const isKept = (file: string) =>
      whole.includes(nameAt(path)) || fileList.has(relative(base, join(folder, file)))
    const isUsed = files.some((file) => file !== "package.json" && isKept(file))
    for (const file of files)
      if (!isUsed || !(isKept(file) || alwaysKept.test(file))) rmSync(join(folder, file))
    return isUsed
  })
}
