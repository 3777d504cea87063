// Installs packages of the registry into a node_modules folder with npm, at exact versions and hashes, without their
// scripts and without a change to what is there. npm works in a folder of its own; what it installed is then renamed into
// place, so an interrupted installation leaves nothing in node_modules.
import { spawn } from "node:child_process"
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { Data, Effect } from "effect"
import type { RegistryPackage } from "./Packages.ts"

export class SetupFailed extends Data.TaggedError("SetupFailed")<{ readonly message: string }> {}

/** The registry's file name of a package, as `npm pack` writes it. */
export const tarballName = ({ name, version }: RegistryPackage): string =>
  `${name.replace("@", "").replace("/", "-")}-${version}.tgz`

/**
 * A manifest and a lock file for `npm ci`, which refuses a package whose hash differs.
 * @param from folder with the packages' tarballs; undefined for the registry
 */
export const projectOf = (packages: ReadonlyArray<RegistryPackage>, from: string | undefined) => {
  const tarball = (one: RegistryPackage) =>
    from === undefined ? undefined : `file:${resolve(from, tarballName(one))}`
  const dependencies = Object.fromEntries(packages.map((one) => [one.name, tarball(one) ?? one.version]))
  const project = { name: "edgewise-setup", version: "0.0.0", dependencies }
  const entries = packages.map((one) => {
    const resolved = tarball(one)
    const entry = { version: one.version, integrity: one.integrity }
    return [`node_modules/${one.name}`, resolved === undefined ? entry : { ...entry, resolved }] as const
  })
  return {
    manifest: { ...project, private: true },
    lock: {
      ...project,
      dependencies: undefined,
      lockfileVersion: 3,
      requires: true,
      packages: { "": project, ...Object.fromEntries(entries) } as Readonly<Record<string, object>>,
    },
  }
}

/** `--loglevel` so that npm's only output is the error, which the failure repeats. */
const npmArguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]

const runNpm = (folder: string): Effect.Effect<void, SetupFailed> =>
  Effect.callback((resume) => {
    const child = spawn("npm", npmArguments, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] })
    let errors = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      errors = (errors + text).slice(-4_000)
    })
    child.once("error", ({ message }) => resume(Effect.fail(new SetupFailed({ message: `npm: ${message}` }))))
    child.once("close", (code, signal) => {
      const lines = errors
        .split("\n")
        .map((line) => line.replace(/^npm (?:error|ERR!)\s*/, "").trim())
        .filter((line) => line !== "" && !/^npm warn|complete log/i.test(line))
      const message = `npm: ${lines.slice(0, 3).join(" ") || `it ended with ${signal ?? code}`}`
      resume(code === 0 ? Effect.void : Effect.fail(new SetupFailed({ message })))
    })
    return Effect.sync(() => child.kill())
  })

const attempt = <A>(act: () => Promise<A>): Effect.Effect<A, SetupFailed> =>
  Effect.tryPromise({
    try: act,
    catch: (error) => new SetupFailed({ message: error instanceof Error ? error.message : String(error) }),
  })

/** @param modules the node_modules folder that gets the packages */
export const installPackages = (
  packages: ReadonlyArray<RegistryPackage>,
  modules: string,
  from: string | undefined,
): Effect.Effect<void, SetupFailed> =>
  Effect.acquireUseRelease(
    // Beside node_modules: a rename cannot leave a file system.
    attempt(() => mkdtemp(join(dirname(modules), ".setup-"))),
    (folder) =>
      Effect.gen(function* () {
        const { lock, manifest } = projectOf(packages, from)
        yield* attempt(() => writeFile(join(folder, "package.json"), JSON.stringify(manifest)))
        yield* attempt(() => writeFile(join(folder, "package-lock.json"), JSON.stringify(lock)))
        yield* runNpm(folder)
        for (const { name } of packages) {
          const target = join(modules, name)
          yield* attempt(async () => {
            await mkdir(dirname(target), { recursive: true })
            await rm(target, { recursive: true, force: true })
            await rename(join(folder, "node_modules", name), target)
          })
        }
      }),
    (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true })),
  )
