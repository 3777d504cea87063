// Opens llama.cpp's native library once a process. node-llama-cpp's `getLlama` does it for every machine and GPU, but on
// Linux it first starts another process that loads the same binary, in case that crashes. An engine process may crash
// without harm to the node, so it loads the binary at once: the other process cost 0.37 s of a core at every start
// (measured), while other requests ran, and in a confined engine it cannot use CUDA, because the right to name threads, which
// CUDA needs, is the engine's own (EngineConfinement).
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { join } from "node:path"
import { isMainThread } from "node:worker_threads"
import { getLlama, Llama, LlamaLogLevel } from "node-llama-cpp"
import { plainLine } from "#domain/process/PlainLine.ts"
import type { LlamaOptions } from "../Options.ts"

interface LibraryOptions {
  readonly gpu: LlamaOptions["gpu"]
  readonly threads: number
  readonly logger: (level: LlamaLogLevel, message: string) => void
}

/** What the library's loader calls once it has found a binary. As in version 3.21.1, which is pinned. */
interface LlamaFactory {
  readonly _create?: (found: Readonly<Record<string, unknown>>) => Promise<Llama>
}

/** As in the library for CPUs: the bytes of the machine's memory that its estimates leave free. */
const ramPadding = (totalBytes: number): number => Math.floor(Math.min(totalBytes * 0.25, 1024 ** 3))

/** As in the library: the bytes of a GPU's memory that its estimates leave free. */
const vramPadding = (totalBytes: number): number => Math.floor(Math.min(totalBytes * 0.08, 1.6 * 1024 ** 3))

/** Where node-llama-cpp keeps what an operator built. */
const ownBuilds = (): URL => new URL("../llama/localBuilds", import.meta.resolve("node-llama-cpp"))

type Library = "off" | "cuda" | "vulkan"

interface Prebuilt {
  readonly library: Library
  /** The folder of the binary. */
  readonly folder: string
  /** The folder of its parts for older GPUs, if they are installed. */
  readonly older: string | undefined
}

const packageFolder = async (name: string, folder: string): Promise<string | undefined> => {
  try {
    const { getBinsDir } = (await import(`@node-llama-cpp/${name}`)) as {
      readonly getBinsDir: () => { readonly binsDir: string }
    }
    return join(getBinsDir().binsDir, folder)
  } catch {
    return undefined
  }
}

const prebuiltOf = async (library: Library): Promise<Prebuilt | undefined> => {
  const name = `linux-${process.arch}${library === "off" ? "" : `-${library}`}`
  const folder = await packageFolder(name, name)
  if (folder === undefined) return undefined
  return { library, folder, older: await packageFolder(`${name}-ext`, name) }
}

const nvidiaCards = (): boolean => ["/dev/nvidiactl", "/dev/dxg"].some((path) => existsSync(path))

/** The libraries to look for, the first that is installed counts. Each also computes on the CPU. */
const wanted = (gpu: LibraryOptions["gpu"]): ReadonlyArray<Library> => {
  if (gpu === "auto") return [...(nvidiaCards() ? (["cuda"] as const) : []), "vulkan", "off"]
  return gpu === "metal" ? [] : [gpu]
}

/** The prebuilt binary to open; undefined if `getLlama` has to choose. */
const prebuilt = async (gpu: LibraryOptions["gpu"]): Promise<Prebuilt | undefined> => {
  // The operator's own build takes precedence. On a thread, a crash would end the node, so `getLlama` has to test the binary.
  if (process.platform !== "linux" || !isMainThread || existsSync(ownBuilds())) return undefined
  for (const library of wanted(gpu)) {
    const found = await prebuiltOf(library)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * Fails if the libraries of the GPU that the catalog names are not installed; an installation leaves them out. An
 * operator's own build has them.
 */
const requireGpu = async (gpu: LibraryOptions["gpu"]): Promise<void> => {
  if ((gpu !== "cuda" && gpu !== "vulkan") || existsSync(ownBuilds())) return
  const system = process.platform === "win32" ? "win" : process.platform
  try {
    await import(`@node-llama-cpp/${system}-${process.arch}-${gpu}`)
  } catch {
    throw new Error(`gpu: llama.cpp's ${gpu} libraries are not installed: run edgewise setup ${gpu}`)
  }
}

/** Longest part of a reason that a library gives, characters. */
const reasonCharacters = 200

/** What the system's loader says about a library that cannot be loaded; undefined if it can be. */
const loaderReason = (path: string): string | undefined => {
  try {
    process.dlopen({ exports: {} }, path)
    return undefined
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause)
    // Loaded, and no module of Node.
    return said.includes("self-register") ? undefined : said
  }
}

/** Why a library of a GPU that is installed finds no GPU. */
const unusable = ({ folder, library }: Prebuilt, printed: ReadonlyArray<string>): Error => {
  const said = loaderReason(join(folder, `libggml-${library}.so`)) ?? printed.join("; ")
  const why = said === "" ? "it finds no GPU" : plainLine(said, reasonCharacters)
  return new Error(`gpu: llama.cpp's ${library} library is installed and cannot be used here: ${why}`)
}

const openPrebuilt = async (
  found: Prebuilt,
  { gpu, logger, threads }: LibraryOptions,
): Promise<Llama | undefined> => {
  const { folder, library, older } = found
  const factory = Llama as unknown as LlamaFactory
  if (typeof factory._create !== "function") return undefined
  const bindingPath = join(folder, "llama-addon.node")
  const buildMetadata: unknown = JSON.parse(await readFile(join(folder, "_nlcBuildMetadata.json"), "utf8"))
  const printed: Array<string> = []
  const llama = await factory._create({
    bindings: createRequire(import.meta.url)(bindingPath) as unknown,
    bindingPath,
    extBackendsPath: older,
    buildType: "prebuilt",
    buildMetadata,
    logLevel: LlamaLogLevel.error,
    logger: (level: LlamaLogLevel, message: string) => {
      if (printed.length < 3) printed.push(message)
      logger(level, message)
    },
    maxThreads: threads,
    vramPadding: library === "off" ? 0 : vramPadding,
    ramPadding,
    debug: false,
    numa: false,
    tempDir: false,
  })
  if (library === "off" || gpu === "auto" || llama.gpu === library) return llama
  await llama.dispose()
  throw unusable(found, printed)
}

export const openLibrary = async (options: LibraryOptions): Promise<Llama> => {
  await requireGpu(options.gpu)
  const found = await prebuilt(options.gpu)
  const opened = found === undefined ? undefined : await openPrebuilt(found, options)
  if (opened !== undefined) return opened
  return getLlama({
    gpu: options.gpu === "off" ? false : options.gpu,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    logger: options.logger,
    maxThreads: options.threads,
  })
}
