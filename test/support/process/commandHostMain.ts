// A process that runs command lines one after the other, each as `src/main.ts` with its arguments and its environment, and sends
// what each has printed and its exit status. Only the modules are kept between them. Started by CommandHost.ts, with the path of main.ts.
import { flushCompileCache } from "node:module"
import { ConfigProvider } from "effect"
import type { CommandLine, Finished } from "./CommandHost.ts"

const printed = { stdout: [] as Array<Buffer>, stderr: [] as Array<Buffer> }
for (const name of ["stdout", "stderr"] as const)
  Object.assign(process[name], {
    write: (chunk: string | Uint8Array, encoding?: unknown, done?: unknown) => {
      printed[name].push(
        Buffer.from(chunk as string, typeof encoding === "string" ? (encoding as "utf8") : "utf8"),
      )
      const written = typeof encoding === "function" ? encoding : done
      if (typeof written === "function") process.nextTick(written)
      return true
    },
  })

/** Effect reads the environment once, and keeps it under this name (`getDefaultValue` in effect's Context.ts). */
const keptEnvironment = "~effect/Context/defaultValue"

const mainFile = process.argv[2] ?? ""
let commands = 0
const run = async ({ args, env }: CommandLine): Promise<Finished> => {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  Reflect.deleteProperty(ConfigProvider.ConfigProvider, keptEnvironment)
  process.argv = [process.execPath, mainFile, ...args]
  printed.stdout = []
  printed.stderr = []
  const status = await new Promise<number>((resolve, reject) => {
    Object.assign(process, { exit: resolve })
    // Another address is evaluated again; what it imports is not.
    import(`${mainFile}?${++commands}`).catch(reject)
  })
  // Node writes its compile cache at the end of a process, and this one is to serve others from now on.
  flushCompileCache()
  // A command listens until its process ends.
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners("error")
  process.removeAllListeners("SIGINT").removeAllListeners("SIGTERM").removeAllListeners("SIGHUP")
  const [stdout, stderr] = [printed.stdout, printed.stderr].map((chunks) => Buffer.concat(chunks).toString())
  return { status, stdout: stdout ?? "", stderr: stderr ?? "" }
}

const exit = process.exit.bind(process)
process.on("disconnect", () => exit(0))
process.on("message", (line: CommandLine) => void run(line).then((finished) => process.send?.(finished)))
