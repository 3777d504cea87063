// podman with a storage folder of its own: images and containers of this machine are not touched.
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../../map/ReadImports.ts"

const npmSetting = (name: string): string =>
  // In another folder than the repository's, whose .npmrc is part of the image.
  execFileSync("npm", ["config", "get", name], { encoding: "utf8", cwd: "/" }).trim()

/** crun refuses a machine with both versions of control groups mounted. */
const runtime = existsSync("/sys/fs/cgroup/unified") ? ["--runtime", "runc"] : []

export interface Podman {
  /** Standard output of a command. Throws if it fails. */
  readonly run: (...args: ReadonlyArray<string>) => string
  /** Exit status and both outputs. */
  readonly attempt: (...args: ReadonlyArray<string>) => {
    readonly status: number | null
    readonly text: string
  }
  /** Builds the Dockerfile with npm's registry and certificates as on this machine. */
  readonly build: (tag: string, args: Readonly<Record<string, string>>) => string
  readonly remove: () => void
}

/** @param folder for everything that podman keeps; it exists */
export const podmanIn = (folder: string): Podman => {
  const storage = ["--root", join(folder, "storage"), "--runroot", join(folder, "run")]
  const common = [...storage, "--tmpdir", join(folder, "tmp"), "--cgroup-manager", "cgroupfs", ...runtime]
  const options = { encoding: "utf8", maxBuffer: 64 * 1024 ** 2 } as const
  const attempt = (...args: ReadonlyArray<string>) => {
    const { status, stdout, stderr } = spawnSync("podman", [...common, ...args], options)
    return { status, text: `${stdout}${stderr}` }
  }
  const run = (...args: ReadonlyArray<string>) => {
    const { status, stdout, stderr } = spawnSync("podman", [...common, ...args], options)
    if (status !== 0) throw new Error(`podman ${args[0]}: ${stdout.slice(-2_000)}${stderr.slice(-2_000)}`)
    return stdout
  }
  const build = (tag: string, args: Readonly<Record<string, string>>) => {
    const npmrc = join(folder, "npmrc")
    const certificates = npmSetting("cafile")
    const hasCertificates = existsSync(certificates)
    writeFileSync(
      npmrc,
      `registry=${npmSetting("registry")}\n${hasCertificates ? "cafile=/run/certificates.pem\n" : ""}`,
    )
    // The build runs as root of the container, whose home this is.
    return run(
      ...["build", "--isolation", "chroot", "--network", "host", "--format", "docker", "--tag", tag],
      ...Object.entries(args).flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]),
      ...["--volume", `${npmrc}:/root/.npmrc:ro`],
      ...(hasCertificates ? ["--volume", `${certificates}:/run/certificates.pem:ro`] : []),
      root,
    )
  }
  const remove = () => {
    attempt("rm", "--all", "--force", "--time", "0")
    attempt("image", "unmount", "--all")
    attempt("rmi", "--all", "--force")
    rmSync(folder, { recursive: true, force: true })
  }
  return { run, attempt, build, remove }
}
