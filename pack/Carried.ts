// Which installed packages the tarball carries, and which npm fetches when it installs the tarball.
//
// The tarball carries every package that a node uses, at the version of package-lock.json, without the files that no
// node opens. So npm resolves nothing anew, and runs no package's script: onnxruntime-node's and node-av's would download
// from other places than the registry. It does not carry packages under the GPL or LGPL, whose licences set
// terms for passing the tarball on, nor packages for one platform, of which npm fetches the machine's.

/** An entry of package-lock.json. */
interface LockEntry {
  readonly name?: string
  readonly version?: string
  readonly license?: string
  /** Where npm got it. */
  readonly resolved?: string
  readonly dev?: boolean
  readonly devOptional?: boolean
  readonly optional?: boolean
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly os?: ReadonlyArray<string> | string
  readonly cpu?: ReadonlyArray<string> | string
}

export interface Lock {
  readonly packages: Readonly<Record<string, LockEntry>>
}

/** Licences that allow passing a package on with its licence text. */
const permissive = [
  "MIT",
  "ISC",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "0BSD",
  "BlueOak-1.0.0",
  "Unlicense",
  "(MIT OR WTFPL)",
  "(MIT AND Zlib)",
  "(BSD-2-Clause OR MIT OR Apache-2.0)",
  "(MIT OR Apache-2.0)",
  "(MIT OR CC0-1.0)",
  "(BSD-3-Clause OR GPL-2.0)",
]

/**
 * Licences that also ask to say where the source of their files is. They hold for their own files only, which are carried as they
 * are. The second is how node-datachannel spells it. A package for one platform, whose files are no source, is never carried.
 */
const withSource = ["MPL-2.0", "MPL 2.0"]

/** Contain code under the GPL or LGPL (NOTICE). The first two say something else about themselves. */
export const fetched = ["phonemizer", "wasm-media-encoders", "@echogarden/espeak-ng-emscripten"]

/** Systems and processors that the tarball serves. */
export const platforms = { os: ["linux"], cpu: ["x64", "arm64"], libc: ["glibc"] }

const list = (value: ReadonlyArray<string> | string | undefined): ReadonlyArray<string> =>
  value === undefined ? [] : typeof value === "string" ? [value] : value

const includesAny = (some: ReadonlyArray<string>, others: ReadonlyArray<string>): boolean =>
  some.some((one) => others.includes(one))

/** The name in `node_modules/a/node_modules/@b/c` is `@b/c`. */
export const nameAt = (path: string): string => path.slice(path.lastIndexOf("node_modules/") + 13)

const isFetched = (path: string): boolean =>
  fetched.some((name) => path === `node_modules/${name}` || path.startsWith(`node_modules/${name}/`))

/** Entries of packages that a node uses, by path. */
const used = ({ packages }: Lock): ReadonlyArray<readonly [string, LockEntry]> =>
  Object.entries(packages).filter(
    ([path, { dev, devOptional }]) => path !== "" && dev !== true && devOptional !== true,
  )

const isForOnePlatform = ([, { cpu, optional }]: readonly [string, LockEntry]): boolean =>
  optional === true && cpu !== undefined

/** Paths of the packages that the tarball carries. Fails if a licence is not known to allow it. */
export const carried = (lock: Lock): ReadonlyArray<string> =>
  used(lock)
    .filter((one) => !isFetched(one[0]) && !isForOnePlatform(one))
    .map(([path, { license = "none" }]) => {
      if (!permissive.includes(license) && !withSource.includes(license))
        throw new Error(`${path}: may the tarball carry a package under the licence ${license}?`)
      return path
    })

/** Packages for one platform that are left out: copy-on-write clones of files for downloads, and what `edgewise setup webrtc` installs. */
const leftOut = ["@reflink/", "@node-datachannel/"]

/**
 * Packages for one platform that the tarball serves → version. npm installs those that fit the machine. Only those that
 * carried packages or edgewise itself ask for.
 */
export const platformPackages = (lock: Lock): Readonly<Record<string, string>> => {
  const asking = ["", ...carried(lock)]
  const wanted = asking.flatMap((path) => Object.keys(lock.packages[path]?.optionalDependencies ?? {}))
  return Object.fromEntries(
    used(lock)
      .filter(isForOnePlatform)
      .filter(
        ([path, { cpu, name, os }]) =>
          // An entry with a name is an alias for a package that is left out (docs/install.md).
          name === undefined &&
          wanted.includes(nameAt(path)) &&
          !leftOut.some((scope) => nameAt(path).startsWith(scope)) &&
          includesAny(list(os), platforms.os) &&
          includesAny(list(cpu), platforms.cpu),
      )
      .map(([path, { version = "" }]) => [nameAt(path), version]),
  )
}

/**
 * The licences of carried packages, as a table.
 * @param paths their paths in the lock file
 */
export const licenceTable = (lock: Lock, paths: ReadonlyArray<string>): string =>
  [
    "# Packages that this package carries",
    "",
    "Each is in `app/node_modules` with its licence text, without the files that no node opens (docs/install.md).",
    "",
    "| package | version | licence |",
    "|---|---|---|",
    ...paths.map((path) => {
      const { license = "", name = nameAt(path), resolved, version } = lock.packages[path] ?? {}
      const source = withSource.includes(license)
        ? `; unchanged, source: ${resolved ?? "the npm registry"}`
        : ""
      return `| \`${name}\` | ${version} | ${license}${source} |`
    }),
    "",
  ].join("\n")
