// The entry point of the benches: `npm run bench -- SUITE`. Parses the command and runs the suite.
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { runCommandLine } from "#cli/shared/CommandLine.ts"
import { version } from "#cli/shared/Version.ts"
import { modelsSuite, writeAnswers } from "../models/eval/Suite.ts"
import { gpuSuite } from "./gpu/Suite.ts"
import { hostileSuite } from "./hostile/Suite.ts"
import { runSuite } from "./run/Run.ts"
import { hostileDefaults, type SuiteCommand, suites } from "./run/Suites.ts"
import { sizesCommand } from "./sizes/Command.ts"
import type { Sizes, Suite } from "./support/Suite.ts"
import { turnsSuite } from "./turns/Suite.ts"

const { gpu, hostile, models, turns, ...plain } = suites

const atLeast = (least: number, most: number) =>
  Flag.filter(
    (value: number) => value >= least && value <= most,
    () => `${least} to ${most}`,
  )

const common = {
  quick: Flag.Boolean("quick").pipe(
    Flag.withDescription(
      "Fewer and shorter runs: a look, not a measurement; leaves no file in bench/results",
    ),
    Flag.withDefault(false),
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("Print one JSON document and nothing else"),
    Flag.withDefault(false),
  ),
  profileDir: Flag.String("profile").pipe(
    Flag.withDescription(
      "Write a CPU profile of the gateway process to this folder; it slows the gateway down",
    ),
    Flag.optional,
  ),
  beside: Flag.Int("beside").pipe(
    atLeast(0, 1_000),
    Flag.withDescription("Processes that compute all the time beside the suite"),
    Flag.withDefault(0),
  ),
  besideNice: Flag.Int("beside-nice").pipe(
    atLeast(0, 19),
    Flag.withDescription("Their nice value: 0 as ordinary processes, to 19, the lowest priority"),
    Flag.withDefault(0),
  ),
  besidePulseMs: Flag.Int("beside-pulse-ms").pipe(
    atLeast(100, 3_600_000),
    Flag.withDescription("They compute for so many milliseconds, then rest for as long"),
    Flag.optional,
  ),
}

/** Sections with `--size`, of all sizes. */
const sizedSections = ({ of, sizes }: Sizes): ReadonlyArray<string> => [
  ...new Set(sizes.flatMap((size) => of(size).sections)),
]

const sectionFlag = ({ sections, usual }: Suite, sized: ReadonlyArray<string>) => {
  const named = sections.filter((one) => !usual.includes(one))
  const alone = named.length === 0 ? "" : `; ${named.join(" and ")} only when named`
  const bySize = sized.length === 0 ? "" : `; with --size ${sized.join(", ")}`
  return Flag.Literals("section", [...new Set([...sections, ...sized])] as [string, ...Array<string>]).pipe(
    Flag.withDescription(`Run this section alone: ${sections.join(", ")}${alone}${bySize}`),
    Flag.optional,
  )
}

interface Chosen {
  readonly quick: boolean
  readonly json: boolean
  readonly profileDir: Option.Option<string>
  readonly section: Option.Option<string>
  readonly beside: number
  readonly besideNice: number
  readonly besidePulseMs: Option.Option<number>
  readonly size?: Option.Option<string>
  readonly threads?: Option.Option<number>
}

const measure = (name: string, suite: Suite, chosen: Chosen, { compare = false, keep = true } = {}) =>
  runSuite(suite, {
    suite: name,
    // A short run is a look, a profiled one is slower than its program.
    keep: keep && !chosen.quick && Option.isNone(chosen.profileDir),
    compare,
    quick: chosen.quick,
    json: chosen.json,
    profileDir: Option.getOrUndefined(chosen.profileDir),
    section: Option.getOrUndefined(chosen.section),
    beside: {
      processes: chosen.beside,
      nice: chosen.besideNice,
      pulseMs: Option.getOrUndefined(chosen.besidePulseMs),
    },
    size: Option.getOrUndefined(chosen.size ?? Option.none()),
    threads: Option.getOrUndefined(chosen.threads ?? Option.none()),
  })

const commandOf = ([name, { about, sized, suite }]: readonly [string, SuiteCommand]) => {
  if (sized === undefined) {
    const flags = { ...common, section: sectionFlag(suite, []) }
    return Command.make(name, flags, (chosen) => measure(name, suite, chosen)).pipe(
      Command.withDescription(about),
    )
  }
  const { of, sizes } = sized
  const flags = {
    ...common,
    section: sectionFlag(suite, sizedSections({ of, sizes })),
    size: Flag.Literals("size", sizes).pipe(
      Flag.withDescription("Generated weights of this size in place of the demonstration weights"),
      Flag.optional,
    ),
    threads: Flag.Int("threads").pipe(
      atLeast(1, 1_024),
      Flag.withDescription("CPU threads of the model and of its floor; all cores if absent"),
      Flag.optional,
    ),
  }
  return Command.make(name, flags, (chosen) =>
    measure(name, Option.match(chosen.size, { onNone: () => suite, onSome: of }), chosen),
  ).pipe(Command.withDescription(about))
}

const folderFlag = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(`${description}; needs ffmpeg`), Flag.optional)

const turnsCommand = Command.make(
  "turns",
  {
    ...common,
    section: sectionFlag(turns.suite, []),
    speech: folderFlag("speech", "Measure recordings of people alone: one sentence or word each"),
    sounds: folderFlag("sounds", "Measure recordings without speech alone: music, noises"),
  },
  ({ sounds, speech, ...chosen }) => {
    const folders = { speech: Option.getOrUndefined(speech), sounds: Option.getOrUndefined(sounds) }
    return measure("turns", turnsSuite(folders), chosen)
  },
).pipe(Command.withDescription(turns.about))

const gpuCommand = Command.make(
  "gpu",
  {
    ...common,
    section: sectionFlag(gpu.suite, []),
    where: Flag.Literals("gpu", ["cuda", "auto"]).pipe(
      Flag.withDescription(
        "auto: a rehearsal where llama.cpp chooses, which takes the CPU if no card works; leaves no file",
      ),
      Flag.withDefault("cuda"),
    ),
    from: Flag.String("from").pipe(
      Flag.withMetavar("FOLDER"),
      Flag.withDescription("With --section setup: folder with the packages as `npm pack` writes them"),
      Flag.optional,
    ),
    unconfined: Flag.Boolean("unconfined").pipe(
      Flag.withDescription("Engine processes without confinement, to find out whether it is in the way"),
      Flag.withDefault(false),
    ),
  },
  ({ from, unconfined, where, ...chosen }) =>
    measure(
      "gpu",
      gpuSuite({ gpu: where, from: Option.getOrUndefined(from), confined: !unconfined }),
      chosen,
      { keep: where === "cuda" },
    ),
).pipe(Command.withDescription(gpu.about))

const hostileCommand = Command.make(
  "hostile",
  {
    ...common,
    section: sectionFlag(hostile.suite, []),
    seed: Flag.Int("seed").pipe(
      Flag.withDescription("Seed of the inputs; a random one, which is printed, if absent"),
      Flag.optional,
    ),
    only: Flag.Int("only").pipe(
      Flag.withDescription("Send the input of this index alone and show it; wants --seed"),
      Flag.optional,
    ),
    attack: Flag.String("attack").pipe(
      Flag.withDescription(
        "With --section attacks: only those whose name begins with this, as M2; several: M2,audio",
      ),
      Flag.optional,
    ),
    floodSeconds: Flag.Int("flood-seconds").pipe(
      Flag.withDescription("With --section floods: how long they last; 60 if absent"),
      Flag.withDefault(hostileDefaults.floods.seconds),
    ),
    heapMib: Flag.Int("heap").pipe(
      Flag.withDescription("The gateway's heap meanwhile, MiB; 512 if absent"),
      Flag.withDefault(hostileDefaults.floods.heapMib),
    ),
  },
  ({ attack, floodSeconds, heapMib, only, seed, ...chosen }) =>
    measure(
      "hostile",
      hostileSuite({
        attack: Option.getOrUndefined(attack),
        floods: { heapMib, seconds: floodSeconds },
        seed: Option.getOrUndefined(seed),
        only: Option.getOrUndefined(only),
      }),
      chosen,
    ),
).pipe(Command.withDescription(hostile.about))

const modelsCommand = Command.make(
  "models",
  {
    ...common,
    section: sectionFlag(models.suite, []),
    catalog: Flag.String("catalog").pipe(
      Flag.withDescription(
        "Evaluate the models of this catalog instead of the built-in ones; leaves no file",
      ),
      Flag.optional,
    ),
    compare: Flag.Boolean("compare").pipe(
      Flag.withDescription(
        "Fail if a counted figure with a goal is more than one percent or one count worse than in bench/results; leaves no file",
      ),
      Flag.withDefault(false),
    ),
    answers: Flag.Boolean("answers").pipe(
      Flag.withDescription("Then write the judged answers of the chat model to models/eval/chat-answers.md"),
      Flag.withDefault(false),
    ),
  },
  ({ answers, catalog, compare, ...chosen }) => {
    const keep = Option.isNone(catalog) && !compare
    return measure("models", modelsSuite(Option.getOrUndefined(catalog)), chosen, { compare, keep }).pipe(
      Effect.andThen(answers ? writeAnswers : Effect.void),
    )
  },
).pipe(Command.withDescription(models.about))

const list = Command.make("list", {}, () =>
  Effect.forEach(Object.entries<SuiteCommand>(suites), ([name, { sized, suite }]) => {
    const bySize = sized === undefined ? "" : `; with --size: ${sizedSections(sized).join(", ")}`
    return Console.log(`${name.padEnd(14)}${suite.sections.join(", ")}${bySize}`)
  }),
).pipe(Command.withDescription("The suites and their sections"))

const bench = Command.make("bench").pipe(
  Command.withDescription("Measurements of edgewise, with their method and their machine"),
  Command.withSubcommands([
    ...Object.entries<SuiteCommand>(plain).map(commandOf),
    gpuCommand,
    hostileCommand,
    modelsCommand,
    turnsCommand,
    sizesCommand,
    list,
  ]),
)

const main = runCommandLine(bench, process.argv.slice(2), version).pipe(
  Effect.flatMap((status) =>
    Effect.sync(() => {
      process.exitCode = status
    }),
  ),
  Effect.provide(NodeServices.layer),
)

// Ctrl-C interrupts the suite, which stops every process it started.
NodeRuntime.runMain(main)
