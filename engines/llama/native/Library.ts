// Opens llama.cpp's native library once a process. node-llama-cpp's `getLlama` does it for every machine and GPU, but on
// Linux it first starts another process that loads the same binary, in case that crashes. An engine process may crash
// without harm to the node, so it loads the CPU binary at once: the other process cost 0.37 s of a core at every start
// (measured), while other requests ran.
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { join } from "node:path"
import { isMainThread } from "node:worker_threads"
import { getLlama, Llama, LlamaLogLevel } from "node-llama-cpp"
import type { LlamaOptions } from "../Options.ts"

export interface LibraryOptions {
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

/** Where node-llama-cpp keeps what an operator built. */
const ownBuilds = (): URL => new URL("../llama/localBuilds", import.meta.resolve("node-llama-cpp"))

/** The folder of the prebuilt CPU binary; undefined if `getLlama` has to choose. */
const prebuiltFolder = async (): Promise<string | undefined> => {
  const name = `linux-${process.arch}`
  // The operator's own build takes precedence. On a thread, a crash would end the node, so `getLlama` has to test the binary.
  if (process.platform !== "linux" || !isMainThread || existsSync(ownBuilds())) return undefined
  try {
    const { getBinsDir } = (await import(`@node-llama-cpp/${name}`)) as {
      readonly getBinsDir: () => { readonly binsDir: string }
    }
    return join(getBinsDir().binsDir, name)
  } catch {
    return undefined
  }
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

const openPrebuilt = async (
  folder: string,
  { logger, threads }: LibraryOptions,
): Promise<Llama | undefined> => {
  const factory = Llama as unknown as LlamaFactory
  if (typeof factory._create !== "function") return undefined
  const bindingPath = join(folder, "llama-addon.node")
  const buildMetadata: unknown = JSON.parse(await readFile(join(folder, "_nlcBuildMetadata.json"), "utf8"))
  return factory._create({
    bindings: createRequire(import.meta.url)(bindingPath) as unknown,
    bindingPath,
    buildType: "prebuilt",
    buildMetadata,
    logLevel: LlamaLogLevel.error,
    logger,
    maxThreads: threads,
    vramPadding: 0,
    ramPadding,
    debug: false,
    numa: false,
    tempDir: false,
  })
}

export const openLibrary = async (options: LibraryOptions): Promise<Llama> => {
  const folder = options.gpu === "off" ? await prebuiltFolder() : undefined
  const opened = folder === undefined ? undefined : await openPrebuilt(folder, options)
  if (opened !== undefined) return opened
  await requireGpu(options.gpu)
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
