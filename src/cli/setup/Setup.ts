// `edgewise setup cuda|vulkan`: installs llama.cpp's libraries for GPUs, which an installation leaves out.
import { fileURLToPath } from "node:url"
import { Console, Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { textFlag } from "../shared/Output.ts"
import { costOf, type GpuKind, gpuKinds, gpuPackages, hasGpuLibraries } from "./GpuPackages.ts"
import { installPackages, SetupFailed, tarballName } from "./InstallPackages.ts"

/** Where this program's packages are: in the repository, or in the folder `app` of a package. */
const modules = fileURLToPath(new URL("../../../node_modules", import.meta.url))

const install = (kind: GpuKind, from: string | undefined) =>
  Effect.gen(function* () {
    const packages = gpuPackages(kind)
    if (packages.length === 0)
      return yield* new SetupFailed({
        message: `llama.cpp has no ${kind} libraries for ${process.platform} ${process.arch}`,
      })
    if (hasGpuLibraries(kind)) return yield* Console.log(`${kind}: installed`)
    yield* Console.log(`${kind}: ${costOf(packages)}, into ${modules}`)
    yield* installPackages(packages, modules, from).pipe(
      Effect.mapError(({ message }) => {
        const specs = packages.map(({ name, version }) => `${name}@${version}`).join(" ")
        const files = packages.map(tarballName).join(" and ")
        return new SetupFailed({
          message: `${kind}: ${message}; without the registry: run \`npm pack ${specs}\` where it can be reached, copy ${files} here, and run \`edgewise setup ${kind} --from FOLDER\``,
        })
      }),
    )
    yield* Console.log(`${kind}: installed; models with "gpu": "${kind}" use it from their next load on`)
  })

const report = Effect.forEach(
  gpuKinds,
  (kind) => {
    const packages = gpuPackages(kind)
    const state = hasGpuLibraries(kind) ? "installed" : `not installed (${costOf(packages)})`
    return Console.log(`${kind}: ${packages.length === 0 ? "not available for this machine" : state}`)
  },
  { discard: true },
)

export const setup = Command.make(
  "setup",
  {
    kind: Argument.Literals("kind", gpuKinds).pipe(
      Argument.withDescription("which libraries to install; without it, prints which are installed"),
      Argument.optional,
    ),
    from: textFlag(
      "from",
      "FOLDER",
      "folder with the packages as `npm pack` writes them; default: the registry's packages are fetched",
    ),
  },
  Effect.fn(function* ({ from, kind }) {
    if (Option.isNone(kind)) return yield* report
    yield* install(kind.value, Option.getOrUndefined(from))
  }),
).pipe(Command.withDescription("Install llama.cpp's libraries for GPUs"))
