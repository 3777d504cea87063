// `edgewise setup cuda|vulkan|webrtc`: installs libraries that an installation leaves out.
import { fileURLToPath } from "node:url"
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { settings } from "#config/Settings.ts"
import { installPackages, SetupFailed, tarballName } from "./InstallPackages.ts"
import { costOf, hasLibraries, type SetupKind, setupKinds, setupPackages } from "./SetupPackages.ts"

/** Where this program's packages are: in the repository, or in the folder `app` of a package. */
const modules = fileURLToPath(new URL("../../../node_modules", import.meta.url))

const install = (kind: SetupKind, from: string | undefined) =>
  Effect.gen(function* () {
    const packages = setupPackages(kind)
    if (packages.length === 0)
      return yield* new SetupFailed({
        message: `there are no ${kind} libraries for ${process.platform} ${process.arch}`,
      })
    if (hasLibraries(kind)) return yield* Console.log(`${kind}: installed`)
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
    yield* Console.log(
      kind === "webrtc"
        ? `webrtc: installed; a node with ${settings.webrtcPort.variable} uses it from its next start on`
        : `${kind}: installed; models with "gpu": "${kind}" use it from their next load on`,
    )
  })

const report = Effect.forEach(
  setupKinds,
  (kind) => {
    const packages = setupPackages(kind)
    const state = hasLibraries(kind) ? "installed" : `not installed (${costOf(packages)})`
    return Console.log(`${kind}: ${packages.length === 0 ? "not available for this machine" : state}`)
  },
  { discard: true },
)

export const setup = Command.make(
  "setup",
  {
    kind: Argument.Literals("kind", setupKinds).pipe(
      Argument.withDescription("which libraries to install; without it, prints which are installed"),
      Argument.optional,
    ),
    from: Flag.String("from").pipe(
      Flag.withMetavar("FOLDER"),
      Flag.withDescription(
        "folder with the packages as `npm pack` writes them; default: the registry's packages are fetched",
      ),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ from, kind }) {
    if (Option.isNone(kind)) return yield* report
    yield* install(kind.value, Option.getOrUndefined(from))
  }),
).pipe(Command.withDescription("Install llama.cpp's libraries for GPUs, or the library of WebRTC calls"))
