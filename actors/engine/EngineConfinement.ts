// What an engine process may do: read code, libraries and its own weights, write its own temporary folder and the
// compiled code, use the machine's GPUs, and nothing else of the node.
import { existsSync, readdirSync, realpathSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { delimiter, isAbsolute, join } from "node:path"
import { type Confinement, type Grant, weightsGrant } from "#domain/process/Confinement.ts"
import type { ProcessHome } from "#domain/process/ProcessHome.ts"

interface EngineSurroundings {
  /** Its own folder. */
  readonly folder: string
  readonly compiled: string | undefined
  readonly home: ProcessHome | undefined
  /** Weights: files, and folders that hold nothing else. */
  readonly files: ReadonlyArray<string>
  /** The environment of the process. */
  readonly env: NodeJS.ProcessEnv
}

const gibibyte = 1024 ** 3

const devices = (): ReadonlyArray<string> => {
  const names = readdirSync("/dev").filter((name) => name.startsWith("nvidia"))
  return [...names, "dri", "kfd"].map((name) => join("/dev", name)).filter((path) => existsSync(path))
}

/** ONNX Runtime lists devices here; it warns about each of these that it cannot read. */
const deviceLists = ["/sys/bus/pci/devices", "/sys/class/drm", "/sys/devices"]

/** Files of GPU drivers and of the operator's own libraries. */
const driverFolders = ["/opt", "/sys", "/etc/vulkan", "/etc/OpenCL", "/etc/nvidia", "/etc/glvnd"]

/** Of variables that hold paths. */
const pathsOf = (env: NodeJS.ProcessEnv): ReadonlyArray<string> =>
  ["LD_LIBRARY_PATH", "CUDA_HOME", "VK_DRIVER_FILES"].flatMap((name) =>
    (env[name] ?? "").split(delimiter).filter((path) => path.startsWith("/")),
  )

/**
 * CUDA writes the names of its threads (`/proc/self/task/ID/comm`) and fails to start (304, "OS call failed") if it may not.
 * It opens them with O_TRUNC, which needs the right to empty a file. Of the engine itself only: a child of it has no such right
 * (launch.pl).
 */
export const threadNames: ReadonlyArray<Grant> = [{ path: "/proc/self/task", access: "refill" }]

const forGpus = (env: NodeJS.ProcessEnv, present: ReadonlyArray<string>): ReadonlyArray<Grant> =>
  present.length === 0
    ? []
    : [
        ...present.map((path) => ({ path, access: "device" }) as const),
        ...threadNames,
        { path: "/dev/shm", access: "keep" },
        ...driverFolders.map((path) => ({ path, access: "read" }) as const),
        // Code that the driver has compiled for this GPU.
        ...(env.HOME === undefined ? [] : [{ path: join(env.HOME, ".nv"), access: "keep" } as const]),
      ]

const realPathOf = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    // Loading will report the error.
    return path
  }
}

/** A path without links, and of a folder also the files to which the links in it lead, as in the cache of a model hub. */
const realPathsOf = (path: string): ReadonlyArray<string> => {
  const real = realPathOf(path)
  try {
    const links = readdirSync(real, { withFileTypes: true }).filter((entry) => entry.isSymbolicLink())
    const targets = links.map(({ name }) => realPathOf(join(real, name)))
    return [real, ...targets.filter((target) => statSync(target).isFile())]
  } catch {
    // A file; or loading will report the error.
    return [real]
  }
}

export const engineConfinement = ({
  compiled,
  env,
  files,
  folder,
  home,
}: EngineSurroundings): Confinement => {
  const present = process.platform === "linux" ? devices() : []
  const closed = [...(home?.closed ?? []), homedir()].filter(isAbsolute).map(realPathOf)
  return {
    // Memory is limited elsewhere (Device): a limit on what a model may allocate would have to be known before it is
    // loaded.
    limits: { openFiles: 4_096, fileBytes: gibibyte },
    grants: [
      { path: folder, access: "keep" },
      ...(compiled === undefined ? [] : [{ path: compiled, access: "keep" } as const]),
      ...(home?.rings === undefined ? [] : [{ path: home.rings, access: "read" } as const]),
      // A link is granted as what it leads to, so that a link to a closed folder opens nothing.
      ...[...new Set(files.flatMap(realPathsOf))].flatMap((file) => weightsGrant(file, closed) ?? []),
      ...[...deviceLists, ...pathsOf(env)].map((path) => ({ path, access: "read" }) as const),
      ...forGpus(env, present),
    ],
    sockets: present.length === 0 ? "none" : "local",
  }
}
