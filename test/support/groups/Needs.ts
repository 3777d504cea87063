// Programs and permissions that some tests need. A test whose need is missing is skipped; the end of the run prints how many were
// skipped, why, and how to provide the need (EndOfRun.ts). Usage: `it("…", needs("curl"), async () => …)`.
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import type { TestOptions } from "vitest"
import { inForce } from "#confine/Launch.ts"

declare module "vitest" {
  interface TaskMeta {
    /** Why the test is skipped, and what is required to run it. */
    missing?: string
  }
}

const program = (name: string, debianPackage: string, ...args: ReadonlyArray<string>) => ({
  found: () => spawnSync(name, [...args], { stdio: "ignore" }).error === undefined,
  missing: `no ${name} found; Debian package ${debianPackage}`,
})

const browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]

/** Path of the browser for browser tests; undefined if there is none. */
export const browserPath = browsers.find((path) => existsSync(path))

/** The system's Python, for which its packages are. */
export const pythonPath = "/usr/bin/python3"

const postgresVersions = "/usr/lib/postgresql"

/** The folder of PostgreSQL's programs; undefined if there are none. */
export const postgresPrograms = (existsSync(postgresVersions) ? readdirSync(postgresVersions) : [])
  .map((version) => `${postgresVersions}/${version}/bin`)
  .find((folder) => existsSync(`${folder}/initdb`))

const confining = ["landlock", "seccomp", "no-new-privs", "no-capabilities", "rlimits"]

const needsTable = {
  postgresql: {
    found: () => postgresPrograms !== undefined,
    missing: "no PostgreSQL server found; Debian package postgresql",
  },
  browser: {
    found: () => browserPath !== undefined,
    missing: "no Chromium or Chrome found; Debian package chromium",
  },
  apt: program("apt-get", "apt, on a Debian system", "--version"),
  caddy: program("caddy", "caddy", "version"),
  curl: program("curl", "curl", "--version"),
  debootstrap: program("debootstrap", "debootstrap", "--version"),
  "espeak-ng": program("espeak-ng", "espeak-ng", "--version"),
  ffmpeg: program("ffmpeg", "ffmpeg", "-version"),
  ffprobe: program("ffprobe", "ffmpeg", "-version"),
  git: program("git", "git", "--version"),
  haproxy: program("haproxy", "haproxy", "-v"),
  nginx: program("nginx", "nginx", "-v"),
  "oggz-validate": program("oggz-validate", "oggz-tools", "--version"),
  opusinfo: program("opusinfo", "opus-tools", "--version"),
  podman: program("podman", "podman, with runc", "--version"),
  python3: program("python3", "python3", "--version"),
  qemu: program("qemu-aarch64-static", "qemu-user-static", "--version"),
  script: program("script", "bsdutils", "--version"),
  prlimit: program("prlimit", "util-linux", "--version"),
  confinement: {
    found: () => {
      const { mechanisms } = inForce()
      return confining.every((name) => mechanisms.some((each) => each.startsWith(name)))
    },
    missing:
      "processes cannot be confined; a Linux kernel with Landlock and seccomp, and Debian package perl",
  },
  rlimits: {
    found: () => inForce().mechanisms.includes("rlimits"),
    missing: "limits of processes cannot be set; a Linux system",
  },
  registry: {
    found: () =>
      spawnSync("npm", ["view", "npm", "version"], { stdio: "ignore", timeout: 20_000 }).status === 0,
    missing: "the npm registry is not reachable; set npm's registry and network",
  },
  pythonClients: {
    found: () =>
      spawnSync(pythonPath, ["-c", "import requests, websockets"], { stdio: "ignore" }).status === 0,
    missing:
      "no Python with requests and websockets found; Debian packages python3-requests and python3-websockets",
  },
  root: { found: () => process.getuid?.() === 0, missing: "not root; run the tests as root" },
  linux: { found: () => process.platform === "linux", missing: "not a Linux system" },
}

type Need = keyof typeof needsTable

const results = new Map<Need, boolean>()

export const has = (need: Need): boolean => {
  const known = results.get(need) ?? needsTable[need].found()
  results.set(need, known)
  return known
}

/** Options of a test that runs only if all of these are present. */
export const needs = (...wanted: ReadonlyArray<Need>): TestOptions => {
  const absent = wanted.find((need) => !has(need))
  return absent === undefined ? {} : { skip: true, meta: { missing: needsTable[absent].missing } }
}

/** Options of a test that runs only if a condition holds. `missing` names what is absent otherwise and how to provide it. */
export const onlyWhere = (condition: boolean, missing: string): TestOptions =>
  condition ? {} : { skip: true, meta: { missing } }

/** For tests that mount a small file system to fill it. */
export const mountNeedsRoot = "a file system cannot be mounted; run the tests as root"
