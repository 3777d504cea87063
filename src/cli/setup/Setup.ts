// `edgewise setup cuda|vulkan|webrtc|chinese|japanese`: installs packages that an installation leaves out.
import { fileURLToPath } from "node:url"
import { Console, Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { settings } from "#config/Settings.ts"
import { textFlag } from "../shared/Output.ts"
import { installPackages, SetupFailed, tarballName } from "./InstallPackages.ts"
import { isSetUp, type Kind, kinds, packagesOf, type RegistryPackage } from "./Packages.ts"

/** Where this program's packages are: in the repository, or in the folder `app` of a package. */
const modules = fileURLToPath(new URL("../../../node_modules", import.meta.url))

const megabytes = (bytes: number): string => `${Math.max(1, Math.round(bytes / 1e6))} MB`

/** What the download of a kind costs, e.g. `320 MB to download, 563 MB on disk`. */
const costOf = (wanted: ReadonlyArray<RegistryPackage>): string => {
  const sum = (key: "downloadBytes" | "installedBytes") => wanted.reduce((total, one) => total + one[key], 0)
  return `${megabytes(sum("downloadBytes"))} to download, ${megabytes(sum("installedBytes"))} on disk`
}

/** When what was installed is used. */
const useOf = (kind: Kind): string => {
  if (kind === "chinese" || kind === "japanese")
    return "a running node has to be started again to read the language"
  if (kind === "webrtc") return `a node with ${settings.webrtcPort.variable} uses it from its next start on`
  return `models with "gpu": "${kind}" use it from their next load on`
}

const install = (kind: Kind, from: string | undefined) =>
  Effect.gen(function* () {
    const packages = packagesOf(kind)
    if (packages.length === 0)
      return yield* new SetupFailed({
        message: `there are no ${kind} libraries for ${process.platform} ${process.arch}`,
      })
    if (isSetUp(kind)) return yield* Console.log(`${kind}: installed`)
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
    yield* Console.log(`${kind}: installed; ${useOf(kind)}`)
  })

const report = Effect.forEach(
  kinds,
  (kind) => {
    const packages = packagesOf(kind)
    const state = isSetUp(kind) ? "installed" : `not installed (${costOf(packages)})`
    return Console.log(`${kind}: ${packages.length === 0 ? "not available for this machine" : state}`)
  },
  { discard: true },
)

export const setup = Command.make(
  "setup",
  {
    kind: Argument.Literals("kind", kinds).pipe(
      Argument.withDescription("what to install; without it, prints what is installed"),
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
).pipe(
  Command.withDescription(
    "Install llama.cpp's libraries for GPUs, the library of WebRTC calls, or what reads the texts of Chinese or Japanese voices",
  ),
)
