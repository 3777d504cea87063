// Runs before `npm pack` makes the tarball. Makes what Files.ts lists; postpack.ts removes it.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { commitOf } from "../src/cli/shared/Version.ts"
import { carried, fetched, type Lock, licenceTable, platformPackages, platforms } from "./Carried.ts"
import { pathsIn, toJavaScript } from "./Emit.ts"
import { app, keptPackageFile, modelPaths, packageFile, programFiles, removeMade, root } from "./Files.ts"
import { keepReachable } from "./Trace.ts"
import { isUnneeded } from "./Unneeded.ts"

interface Manifest extends Readonly<Record<string, unknown>> {
  readonly imports: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly scripts: Readonly<Record<string, string>>
  readonly bin: unknown
}

removeMade()
const text = (path: string): string => readFileSync(join(root, path), "utf8")
const manifest = JSON.parse(text("package.json")) as Manifest
const lock = JSON.parse(text("package-lock.json")) as Lock

const write = (path: string, content: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
}
const writeJson = (path: string, content: unknown): void =>
  write(path, `${JSON.stringify(content, null, 2)}\n`)

// The program.
const made: Array<string> = []
for (const path of programFiles()) {
  if (path.endsWith(".d.ts")) continue
  const target = join(app, path.replace(/\.ts$/, ".js"))
  if (path.endsWith(".ts")) write(target, toJavaScript(text(path)))
  else cpSync(join(root, path), target)
  made.push(target)
}

/** The file that a path or an alias of package.json means. */
const target = (from: string, path: string): string => {
  if (!path.startsWith("#")) return resolve(dirname(from), path)
  const [folder = "", ...rest] = path.split("/")
  const mapped = manifest.imports[`${folder}/*`]
  if (mapped === undefined) throw new Error(`${from}: package.json has no ${folder}/*`)
  return resolve(app, mapped.replace("*", rest.join("/")))
}
for (const path of made.filter((one) => one.endsWith(".js")))
  for (const other of pathsIn(readFileSync(path, "utf8")))
    if (!existsSync(target(path, other))) throw new Error(`${path} names ${other}, which does not exist`)

const { dependencies, description, engines, imports, license, name, type, version } = manifest
const commit = commitOf(root)
// The program reads the versions of its engines' libraries here: what was measured with one is not used with another.
writeJson(join(app, "package.json"), {
  name,
  version,
  commit,
  license,
  private: true,
  type,
  imports,
  dependencies,
})
for (const path of modelPaths) cpSync(join(root, path), join(app, path), { recursive: true })

// The packages that it carries.
for (const path of carried(lock)) {
  const from = join(root, path)
  const name = path.slice("node_modules/".length)
  if (!existsSync(from)) throw new Error(`${path} is not installed: run npm ci`)
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true, encoding: "utf8" })) {
    const file = join(entry.parentPath, entry.name)
    const inside = file.slice(from.length + 1)
    if (!entry.isFile() || inside.startsWith("node_modules/") || isUnneeded(name, inside)) continue
    const copy = join(app, path, inside)
    mkdirSync(dirname(copy), { recursive: true })
    cpSync(file, copy)
  }
}
const left = await keepReachable(
  made.filter((path) => path.endsWith(".js")),
  carried(lock),
)
write(join(app, "LICENCES.md"), licenceTable(lock, left))

// The manifest of the package: what npm fetches for it.
renameSync(packageFile, keptPackageFile)
writeJson(packageFile, {
  name,
  version,
  description,
  license,
  private: true,
  type,
  engines,
  ...platforms,
  bin: manifest.bin,
  // Not for the package: a node that runs from this folder while it is packed reads them.
  imports,
  files: ["app", "bin", "docs", "CHANGELOG.md", "NOTICE"],
  scripts: {
    postinstall: "node bin/trim.js",
    postpack: manifest.scripts.postpack,
  },
  dependencies: Object.fromEntries(fetched.map((each) => [each, manifest.dependencies[each]])),
  optionalDependencies: platformPackages(lock),
})
console.error(`edgewise ${version}, commit ${commit}: ${made.length} files and ${left.length} packages`)
