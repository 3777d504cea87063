// The entry point of the benches: `npm run bench -- <suite>`. Parses the command, runs the suite, prints its findings.
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, Console, Effect, Option, type Scope } from "effect"
import { Command, Flag } from "effect/cli"
import { runCommandLine } from "#cli/shared/CommandLine.ts"
import { version } from "#cli/shared/Version.ts"
import { settings } from "#config/Settings.ts"
import { trustNone } from "#domain/access/ClientAddress.ts"
import { describeMachine } from "#harness/report/Machine.ts"
import { chosenTransport, type TransportChoice, transportLine } from "#transport/server/TransportChoice.ts"
import { accessSuite } from "./access/Suite.ts"
import { chaosSuite } from "./chaos/Suite.ts"
import { conversationSizes } from "./conversation/Models.ts"
import { conversationSuite } from "./conversation/Suite.ts"
import { hostileSuite } from "./hostile/Suite.ts"
import { liveSizes } from "./live/Sized.ts"
import { liveSuite } from "./live/Suite.ts"
import { controlSuite, cyclesSuite, restartSuite, slowClientsSuite } from "./operations/Suite.ts"
import { picturesSuite } from "./pictures/Suite.ts"
import { sizesCommand } from "./sizes/Command.ts"
import { kokoroSizes } from "./sizes/kokoro/Kokoro.ts"
import { textSizes } from "./sizes/text/TextWeights.ts"
import { whisperSizes } from "./sizes/whisper/Whisper.ts"
import { speechSuite } from "./speech/Suite.ts"
import type { ChildFailed } from "./support/Child.ts"
import { asJson, asText, type Report, type Section } from "./support/Findings.ts"
import { benchTransport } from "./support/Gateway.ts"
import { textSections, textSuite } from "./text/Suite.ts"
import { transcriptionSuite } from "./transcription/Suite.ts"
import { turnsSuite } from "./turns/Suite.ts"

interface SuiteOptions {
  readonly quick: boolean
  readonly profileDir: string | undefined
}

/** Options of a suite that can also measure generated weights of a named size. */
interface SizedOptions<Size> extends SuiteOptions {
  /** Undefined for the demonstration weights. */
  readonly size: Size | undefined
  readonly threads: number | undefined
}

type Suite<Options = SuiteOptions> = (
  options: Options,
) => Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope>

const flags = {
  quick: Flag.Boolean("quick").pipe(
    Flag.withDescription("Fewer and shorter runs: a look, not a measurement"),
    Flag.withDefault(false),
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("Print one JSON document and nothing else"),
    Flag.withDefault(false),
  ),
  threads: Flag.Int("threads").pipe(
    Flag.filter(
      (threads) => threads >= 1,
      () => "at least 1",
    ),
    Flag.withDescription("With --size: CPU threads of the model and of its floor; all cores if absent"),
    Flag.optional,
  ),
  profileDir: Flag.String("profile").pipe(
    Flag.withDescription(
      "Write a CPU profile of the gateway process to this folder; it slows the gateway down",
    ),
    Flag.optional,
  ),
}

/** Runs a suite and prints its findings. */
const measure = Effect.fn(function* (
  { json, quick, suite: name }: { readonly suite: string; readonly quick: boolean; readonly json: boolean },
  sections: Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope>,
) {
  const startedMs = yield* Clock.currentTimeMillis
  const machine = describeMachine(new Date(startedMs))
  const found = yield* Effect.scoped(sections)
  const transportChoice = benchTransport as TransportChoice
  // As of a node with its default address, which those of the benches have.
  const facts = {
    transport: transportChoice,
    host: settings.host.fallback,
    tls: undefined,
    isTrusted: trustNone,
  }
  const transport = yield* Effect.orDie(Effect.map(chosenTransport(facts), transportLine))
  const elapsedSeconds = ((yield* Clock.currentTimeMillis) - startedMs) / 1000
  const report: Report = { suite: name, quick, machine, transport, elapsedSeconds, sections: found }
  yield* Console.log(json ? asJson(report) : asText(report))
})

const plainFlags = { quick: flags.quick, json: flags.json, profileDir: flags.profileDir }

const command = (name: string, description: string, suite: Suite) =>
  Command.make(name, plainFlags, ({ json, profileDir, quick }) =>
    measure({ suite: name, quick, json }, suite({ quick, profileDir: Option.getOrUndefined(profileDir) })),
  ).pipe(Command.withDescription(description))

/** A suite with `--size`: one of `sizes`; without it the demonstration weights. */
const sizeFlag = <const Sizes extends ReadonlyArray<string>>(sizes: Sizes) =>
  Flag.Literals("size", sizes).pipe(
    Flag.withDescription("Generated weights of this size in place of the demonstration weights"),
    Flag.optional,
  )

const sizedName = (name: string, size: string | undefined): string =>
  size === undefined ? name : `${name} --size ${size}`

const sizedOptions = <Size extends string>(chosen: {
  readonly quick: boolean
  readonly profileDir: Option.Option<string>
  readonly size: Option.Option<Size>
  readonly threads: Option.Option<number>
}): SizedOptions<Size> => ({
  quick: chosen.quick,
  profileDir: Option.getOrUndefined(chosen.profileDir),
  size: Option.getOrUndefined(chosen.size),
  threads: Option.getOrUndefined(chosen.threads),
})

const sizedCommand = <const Sizes extends ReadonlyArray<string>>(
  name: string,
  description: string,
  sizes: Sizes,
  suite: Suite<SizedOptions<Sizes[number]>>,
) => {
  const { json, profileDir, quick, threads } = flags
  return Command.make(name, { quick, json, profileDir, size: sizeFlag(sizes), threads }, (chosen) => {
    const options = sizedOptions(chosen)
    return measure(
      { suite: sizedName(name, options.size), quick: chosen.quick, json: chosen.json },
      suite(options),
    )
  }).pipe(Command.withDescription(description))
}

const folderFlag = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(`${description}; needs ffmpeg`), Flag.optional)

const turns = Command.make(
  "turns",
  {
    quick: flags.quick,
    json: flags.json,
    speech: folderFlag(
      "speech",
      "Measure recordings of people in place of the rest: one sentence or word each",
    ),
    sounds: folderFlag("sounds", "Measure recordings without speech in place of the rest: music, noises"),
  },
  ({ json, quick, sounds, speech }) => {
    const folders = { speech: Option.getOrUndefined(speech), sounds: Option.getOrUndefined(sounds) }
    return measure({ suite: "turns", quick, json }, turnsSuite({ quick, folders }))
  },
).pipe(Command.withDescription("What is taken for speech, how soon, when turns end, and the echo of answers"))

const hostile = Command.make(
  "hostile",
  {
    quick: flags.quick,
    json: flags.json,
    seed: Flag.Int("seed").pipe(
      Flag.withDescription("Seed of the inputs; a random one, which is printed, if absent"),
      Flag.optional,
    ),
    only: Flag.Int("only").pipe(
      Flag.withDescription("Send the input of this index alone and show it; wants --seed"),
      Flag.optional,
    ),
    attacks: Flag.Boolean("attacks").pipe(
      Flag.withDescription(
        "The attacks of docs/security.md, one after the other, in place of mutated inputs",
      ),
      Flag.withDefault(false),
    ),
    attack: Flag.String("attack").pipe(
      Flag.withDescription("Only the attacks whose name begins with this, as M2"),
      Flag.optional,
    ),
    floods: Flag.Boolean("floods").pipe(
      Flag.withDescription("All attacks on conversations at once against a gateway with a small heap"),
      Flag.withDefault(false),
    ),
    floodSeconds: Flag.Int("flood-seconds").pipe(
      Flag.withDescription("How long they last; 60 if absent"),
      Flag.withDefault(60),
    ),
    heapMib: Flag.Int("heap").pipe(
      Flag.withDescription("The gateway's heap meanwhile, MiB; 512 if absent"),
      Flag.withDefault(512),
    ),
    profileDir: flags.profileDir,
  },
  ({ attack, attacks, floodSeconds, floods, heapMib, json, only, profileDir, quick, seed }) =>
    measure(
      { suite: "hostile", quick, json },
      hostileSuite({
        attacks,
        attack: Option.getOrUndefined(attack),
        floods: floods ? { heapMib, seconds: floodSeconds } : undefined,
        profileDir: Option.getOrUndefined(profileDir),
        quick,
        seed: Option.getOrUndefined(seed),
        only: Option.getOrUndefined(only),
      }),
    ),
).pipe(Command.withDescription("Mutated inputs and attacks against a node that serves honest clients"))

const text = Command.make(
  "text",
  {
    ...flags,
    size: sizeFlag(textSizes),
    section: Flag.Literals("section", textSections).pipe(
      Flag.withDescription("Run this section alone: the first five without --size, the others with it"),
      Flag.optional,
    ),
  },
  (chosen) => {
    const options = sizedOptions(chosen)
    return measure(
      { suite: sizedName("text", options.size), quick: chosen.quick, json: chosen.json },
      textSuite({ ...options, section: Option.getOrUndefined(chosen.section) }),
    )
  },
).pipe(Command.withDescription("Chat and completions: gateway, token loop, streaming"))

const bench = Command.make("bench").pipe(
  Command.withDescription("Measurements of edgewise, with their method and their machine"),
  Command.withSubcommands([
    command("access", "Routing callers, checking tokens, limiting rates", accessSuite),
    command("chaos", "Engine processes killed, crashed, stopped and starved under load", chaosSuite),
    command("control", "The event loop while models are loaded, unloaded and purged", controlSuite),
    sizedCommand(
      "conversation",
      "Conversations: end of a turn to the first audio, beside the engines alone",
      conversationSizes,
      conversationSuite,
    ),
    command(
      "cycles",
      "Every built-in model loaded and unloaded 100 times: what stays in memory",
      cyclesSuite,
    ),
    hostile,
    command("pictures", "Chats with pictures: first tokens, replies beside them, memory", picturesSuite),
    sizedCommand(
      "live",
      "Live transcription: exactness, cost of a session, lag, capacity, memory",
      liveSizes,
      liveSuite,
    ),
    sizesCommand,
    command("restart", "A gateway that is killed: how soon the node serves again", restartSuite),
    command("slow-clients", "slowhttptest with 1,000 connections: what others notice", slowClientsSuite),
    sizedCommand("speech", "Speech: first audio, under-runs, cost of encoding", kokoroSizes, speechSuite),
    text,
    turns,
    sizedCommand(
      "transcription",
      "Transcription: real-time factor, shares, uploads",
      whisperSizes,
      transcriptionSuite,
    ),
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
