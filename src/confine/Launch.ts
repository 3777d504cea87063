// The command line that starts a confined child process, and what this machine can enforce. On Linux `launch.pl`
// restricts the process and then executes Node, with the same process id and message channel. Without Perl a shell sets
// the limits. On other systems, and when switched off, Node starts unconfined.
import { spawnSync } from "node:child_process"
import { existsSync, realpathSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Access, Confinement, Limits } from "#domain/process/Confinement.ts"
import { seccompProgram } from "./Seccomp.ts"

/** Options of `fork` to add to the caller's. */
interface Launched {
  readonly execPath: string
  readonly execArgv: Array<string>
  /** To add to the child's environment; the launcher removes them again. */
  readonly env: Readonly<Record<string, string>>
}

/** Access rights of linux/landlock.h, as bits. */
const right = {
  execute: 1 << 0,
  writeFile: 1 << 1,
  readFile: 1 << 2,
  readDir: 1 << 3,
  removeDir: 1 << 4,
  removeFile: 1 << 5,
  makeDir: 1 << 7,
  makeFile: 1 << 8,
  truncate: 1 << 14,
  controlDevice: 1 << 15,
}
const read = right.readFile | right.readDir
const rights: Readonly<Record<Access, number>> = {
  read,
  run: read | right.execute,
  fill: read | right.writeFile,
  refill: read | right.writeFile | right.truncate,
  keep:
    read |
    right.writeFile |
    right.truncate |
    right.makeDir |
    right.makeFile |
    right.removeDir |
    right.removeFile,
  device: read | right.writeFile | right.controlDevice,
}

/** RLIMIT_* of asm-generic/resource.h. */
const resource = { cpu: 0, fileSize: 1, data: 2, core: 4, openFiles: 7 }

const limitArguments = ({ cpuSeconds, data, fileBytes, openFiles }: Limits): ReadonlyArray<string> => {
  const set: ReadonlyArray<readonly [number, number | undefined]> = [
    [resource.core, 0],
    [resource.fileSize, fileBytes],
    [resource.openFiles, openFiles],
    [resource.cpu, cpuSeconds],
    [resource.data, data],
  ]
  return set.flatMap(([which, most]) => (most === undefined ? [] : [`limit=${which}:${most}`]))
}

/** Node's executable, and the dynamic loaders of the two C libraries. */
const node = realpathSync(process.execPath)
const loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"]

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Also covers this package installed inside another one. */
const packageFolders = (folder: string): ReadonlyArray<string> => {
  const own = join(folder, "node_modules")
  const above = dirname(folder) === folder ? [] : packageFolders(dirname(folder))
  return existsSync(own) ? [own, ...above] : above
}

/** What every Node process of this program must read: its code, the system's libraries, and facts about the system. */
const common: ReadonlyArray<readonly [Access, string]> = [
  ["run", node],
  ...loaders.map((path) => ["run", path] as const),
  ...["src", "actors", "engines", "package.json"].map((name) => ["read", join(root, name)] as const),
  ...packageFolders(root).map((path) => ["read", path] as const),
  ...["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ssl/openssl.cnf", "/etc/localtime"].map(
    (path) => ["read", path] as const,
  ),
  // Of other processes /proc shows what any user sees; their memory, environment and open files stay closed.
  ["read", "/proc"],
  ["read", "/sys/devices/system"],
  ["read", "/sys/fs/cgroup"],
  ["device", "/dev/null"],
  ...["/dev/zero", "/dev/random", "/dev/urandom"].map((path) => ["read", path] as const),
]

const perl = "/usr/bin/perl"
const shell = "/bin/sh"
const script = fileURLToPath(new URL("./launch.pl", import.meta.url))

const perlArguments = ({ grants, limits, sockets }: Confinement): Array<string> => {
  const paths = [...common, ...grants.map(({ access, path }) => [access, path] as const)]
  const filter = seccompProgram(process.arch, { sockets })
  return [
    script,
    ...limitArguments(limits),
    ...paths.map(([access, path]) => `path=${rights[access]}:${path}`),
    ...(filter === undefined ? [] : [`seccomp=${filter.toString("hex")}`]),
  ]
}

/** The shell's `ulimit` counts kilobytes and 512-byte blocks. */
const shellLine = ({ cpuSeconds, data, fileBytes, openFiles }: Limits): string =>
  [
    "umask 077",
    "ulimit -c 0",
    `ulimit -f ${Math.ceil(fileBytes / 512)}`,
    `ulimit -n ${openFiles}`,
    ...(cpuSeconds === undefined ? [] : [`ulimit -t ${cpuSeconds}`]),
    ...(data === undefined ? [] : [`ulimit -d ${Math.ceil(data / 1024)}`]),
    'exec "$0" "$@"',
  ].join("; ")

type Way = "perl" | "shell" | "plain"

interface InForce {
  readonly way: Way
  /** Mechanisms, e.g. `landlock-7`. Empty if there are none. */
  readonly mechanisms: ReadonlyArray<string>
}

const environment = { EDGEWISE_ARCH: process.arch, PERL_BADLANG: "0" }

/** Runs the launcher once on a program that does nothing, to see what works. Takes 10 ms. */
const detect = (): InForce => {
  if (process.platform !== "linux") return { way: "plain", mechanisms: [] }
  const limits: Limits = { openFiles: 64, fileBytes: 1 }
  if (process.arch === "x64" || process.arch === "arm64") {
    const all = perlArguments({ limits, grants: [], sockets: "none" })
    const tried = spawnSync(perl, [...all, "report", "--", node, "--version"], {
      env: environment,
      encoding: "utf8",
      timeout: 10_000,
    })
    const [reported = "", version = ""] = (tried.stdout ?? "").split("\n")
    if (tried.status === 0 && version === process.version)
      return { way: "perl", mechanisms: reported.split(" ").filter((name) => name !== "") }
  }
  const tried = spawnSync(shell, ["-c", shellLine(limits), "/bin/true"], { env: {}, timeout: 10_000 })
  return tried.status === 0 ? { way: "shell", mechanisms: ["rlimits"] } : { way: "plain", mechanisms: [] }
}

let found: InForce | undefined

/** What is enforced for processes that `launch` starts on this machine. The first call blocks for some milliseconds. */
export const inForce = (): InForce => {
  found ??= detect()
  return found
}

/** Processes started from now on are not confined. */
export const switchOff = (): void => {
  found = { way: "plain", mechanisms: [] }
}

const mechanisms = ["landlock", "seccomp", "no-new-privs", "no-capabilities", "rlimits"]

/** The log line of the node's start: what confines decoders and engines, and which mechanisms this machine lacks. */
export const confinementLine = ({ mechanisms: held }: InForce = inForce()): string => {
  const missing = mechanisms.filter((name) => !held.some((each) => each.startsWith(name)))
  const has = held.length === 0 ? "nothing" : held.join(", ")
  const rest = missing.length === 0 ? "" : `; not in force: ${missing.join(", ")}`
  return `decoders and engines are confined by ${has}${rest}`
}

/** @param flags Node's flags */
export const launch = (confinement: Confinement, flags: ReadonlyArray<string>): Launched => {
  switch (inForce().way) {
    case "perl":
      return {
        execPath: perl,
        execArgv: [...perlArguments(confinement), "--", process.execPath, ...flags],
        env: environment,
      }
    case "shell":
      return {
        execPath: shell,
        execArgv: ["-c", shellLine(confinement.limits), process.execPath, ...flags],
        env: {},
      }
    case "plain":
      return { execPath: process.execPath, execArgv: [...flags], env: {} }
  }
}
