// The programs that tests start as processes and threads (the command line, engines, decoders, workers), as plain JavaScript in few
// files. From the sources Node would read some hundred files at every start and strip their types, which took most of the processor time
// of the tests. They are made once for each state of the sources and do what the sources do: a path that a source makes from its
// own place stays the path of the repository, except those of other programs.
import { createHash } from "node:crypto"
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { rolldown } from "rolldown"
import { programFiles, root } from "../../../pack/Files.ts"

/** Below `node_modules`: confined processes may read that, and packages are found from there. */
const cache = join(root, "node_modules", ".cache", "edgewise-test")

/** Programs made for states of the sources that no run has used for so long are deleted. */
const keptMs = 24 * 60 * 60 * 1_000

const own = fileURLToPath(import.meta.url).slice(root.length)

/** Paths from the root. */
const sources = new Set([
  ...programFiles().filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts")),
  "test/support/process/commandHostMain.ts",
])

/** How a source names the file of a process or thread that it starts. */
const started = /new URL\("([^"]+)\.ts", import\.meta\.url\)/g

const find = () => {
  // The programs hold paths of the repository: those of a copy of it, made with its node_modules, are others.
  const hash = createHash("sha256").update(`${root}\0`)
  const entries = new Set(["src/main", "test/support/process/commandHostMain"])
  for (const path of [...sources, "bin/edgewise.js", "bin/child.js", "package-lock.json", own]) {
    const text = readFileSync(join(root, path), "utf8")
    hash.update(`${path}\0${text}\0`)
    if (sources.has(path))
      for (const [, file = ""] of text.matchAll(started)) entries.add(join(dirname(path), file))
  }
  return { entries, folder: join(cache, hash.digest("hex").slice(0, 16)) }
}

/** Of the programs: the paths of their sources from the root, without `.ts`; and the folder of what is made. */
const { entries, folder } = find()

/** Path of a file from the root, if it is a source. */
const sourceOf = (id: string): string | undefined => {
  const path = id.startsWith(root) ? id.slice(root.length) : ""
  return sources.has(path) ? path : undefined
}

/** A source's text that starts the JavaScript of other programs. */
const startingPrograms = (text: string, source: string): string =>
  text.replace(started, (_, file: string) => {
    const path = join(folder, "app", dirname(source), `${file}.js`)
    return `new URL(${JSON.stringify(pathToFileURL(path).href)})`
  })

/** For vitest: the product starts them also where it runs in the process of the tests. */
export const startsPrograms = {
  name: "edgewise:starts-programs",
  enforce: "pre" as const,
  transform: (text: string, id: string): string | undefined => {
    const source = sourceOf(id)
    return source === undefined ? undefined : startingPrograms(text, source)
  },
}

/** Bundled with the sources, because they have hundreds of modules. Other packages stay where they are. */
const bundledPackage = /^(?:effect|@effect\/platform-node|@effect\/platform-node-shared)(?:\/|$)/

const isPackage = (id: string): boolean => !/^[./#]/.test(id)

const make = async (target: string): Promise<void> => {
  const build = await rolldown({
    cwd: root,
    input: Object.fromEntries([...entries].map((path) => [path, join(root, `${path}.ts`)])),
    platform: "node",
    external: (id) => isPackage(id) && !bundledPackage.test(id),
    plugins: [
      {
        name: "edgewise:own-places",
        transform: (text, id) => {
          const source = sourceOf(id)
          if (source === undefined) return null
          const place = JSON.stringify(pathToFileURL(id).href)
          return startingPrograms(text, source).replaceAll("import.meta.url", place)
        },
      },
    ],
  })
  await build.write({
    dir: join(target, "app"),
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "shared/[name]-[hash].js",
    // Names of classes are read in errors.
    keepNames: true,
    comments: { jsdoc: false },
  })
  await build.close()
  // As in the package: `bin/edgewise.js` finds the program in `app`.
  for (const name of ["edgewise.js", "child.js"]) cpSync(join(root, "bin", name), join(target, "bin", name))
  writeFileSync(join(target, "package.json"), '{ "type": "module" }\n')
}

/** Makes the programs, if no earlier run has made those of the same sources. Returns their folder: `app` and `bin` as in the package. */
export const makePrograms = async (): Promise<string> => {
  if (existsSync(folder)) {
    utimesSync(folder, new Date(), new Date())
    return folder
  }
  const partial = `${folder}.${process.pid}`
  await make(partial)
  try {
    renameSync(partial, folder)
  } catch (error) {
    // Another run has made them meanwhile.
    if (!existsSync(folder)) throw error
    rmSync(partial, { recursive: true })
  }
  for (const name of readdirSync(cache)) {
    const path = join(cache, name)
    if (Date.now() - statSync(path).mtimeMs > keptMs) rmSync(path, { recursive: true, force: true })
  }
  return folder
}
