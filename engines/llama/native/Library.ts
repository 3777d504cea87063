// Opens llama.cpp's native library for this process. Called by Model once. `getLlama` of node-llama-cpp does it for every
// machine and GPU; on Linux it first starts another process that loads the same binary, in case that one crashes.
// An engine process is there to crash in the node's stead, so it loads the processor's binary at once: that other process
// cost 0.37 s of a core at every start (measured), while everybody else's requests ran.
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

/** What the library's own loader calls once it has found a binary; of version 3.21.1, which is pinned. */
interface LlamaFactory {
  readonly _create?: (found: Readonly<Record<string, unknown>>) => Promise<Llama>
}

/** As the library has it for processors: what its estimates leave free of the machine's memory. */
const ramPadding = (totalBytes: number): number => Math.floor(Math.min(totalBytes * 0.25, 1024 ** 3))

/** The folder of the processor's prebuilt binary, or undefined where `getLlama` has something to decide. */
const prebuiltFolder = async (): Promise<string | undefined> => {
  const name = `linux-${process.arch}`
  // A build of the operator's own goes first. A crash in a thread would be the node's.
  const ownBuilds = new URL("../llama/localBuilds", import.meta.resolve("node-llama-cpp"))
  if (process.platform !== "linux" || !isMainThread || existsSync(ownBuilds)) return undefined
  try {
    const { getBinsDir } = (await import(`@node-llama-cpp/${name}`)) as {
      readonly getBinsDir: () => { readonly binsDir: string }
    }
    return join(getBinsDir().binsDir, name)
  } catch {
    return undefined
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
