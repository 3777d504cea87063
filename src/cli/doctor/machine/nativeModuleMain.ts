// Entry of a process that loads the native module named by its argument and prints its version and variant. A binary
// that this processor cannot run only ends this process.
import { librariesOf, versionOf } from "../measure/EngineProcessFacts.ts"

const describe = async (name: string): Promise<string> => {
  switch (name) {
    case "uWebSockets.js":
      await import("uWebSockets.js")
      return versionOf(name) ?? ""
    case "onnxruntime-node": {
      const { listSupportedBackends } = await import("onnxruntime-node")
      const backends = listSupportedBackends().map((backend) => backend.name)
      return `${versionOf(name)}; backends it knows: ${backends.join(", ")}`
    }
    case "node-llama-cpp": {
      const { getLlama, LlamaLogLevel } = await import("node-llama-cpp")
      await getLlama({
        gpu: false,
        build: "never",
        skipDownload: true,
        progressLogs: false,
        logLevel: LlamaLogLevel.error,
      })
      const variant = librariesOf(undefined).find((library) => library.name === "llama.cpp")?.variant
      return `${versionOf(name)}${variant == null ? "" : `; processor build ${variant}`}`
    }
    case "node-datachannel": {
      await import("#calls/peer/Library.ts")
      const { callShare } = await import("#calls/peer/CallCost.ts")
      const share = await callShare()
      const most = Math.floor(1 / share)
      return `${versionOf(name)}; a call takes ${(100 * share).toFixed(1)} % of a thread: about ${most} at a time, and as many conversations as the models carry`
    }
    default:
      throw new Error(`${name} is not a native module of edgewise`)
  }
}

try {
  console.log(await describe(process.argv[2] ?? ""))
  process.exit(0)
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exit(1)
}
