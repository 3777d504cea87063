// All suites with their commands: what each measures, and the sizes of generated weights that it takes.

import { modelsSuite } from "../../models/eval/Suite.ts"
import { accessSuite } from "../access/Suite.ts"
import { chaosSuite } from "../chaos/Suite.ts"
import { conversationSizes } from "../conversation/Models.ts"
import { conversationSuite } from "../conversation/Suite.ts"
import { gpuDefaults, gpuSuite } from "../gpu/Suite.ts"
import { type HostileOptions, hostileSuite } from "../hostile/Suite.ts"
import { liveSizes, sizedLiveSuite } from "../live/Sized.ts"
import { liveSuite } from "../live/Suite.ts"
import { transducerLiveSuite } from "../live/Transducer.ts"
import { controlSuite, cyclesSuite, restartSuite, slowClientsSuite } from "../operations/Suite.ts"
import { picturesSuite } from "../pictures/Suite.ts"
import { regionSuite } from "../region/Suite.ts"
import { kokoroSizes } from "../sizes/kokoro/Kokoro.ts"
import { textSizes } from "../sizes/text/TextWeights.ts"
import { type TransducerSize, transducerSizes } from "../sizes/transducer/Transducer.ts"
import { whisperSizes } from "../sizes/whisper/Whisper.ts"
import { sizedSpeechSuite } from "../speech/Sized.ts"
import { speechSuite } from "../speech/Suite.ts"
import { bySize, type Sizes, type Suite } from "../support/Suite.ts"
import { textSuite } from "../text/Suite.ts"
import { sizedTextSuite } from "../text/sized/Suite.ts"
import { sizedTranscriptionSuite } from "../transcription/Sized.ts"
import { transcriptionSuite } from "../transcription/Suite.ts"
import { turnsSuite } from "../turns/Suite.ts"

export interface SuiteCommand {
  readonly about: string
  readonly suite: Suite
  /** The same command with `--size`. */
  readonly sized?: Sizes
}

export const hostileDefaults: HostileOptions = {
  seed: undefined,
  only: undefined,
  attack: undefined,
  floods: { heapMib: 512, seconds: 60 },
}

const isTransducer = (size: string): size is TransducerSize =>
  (transducerSizes as ReadonlyArray<string>).includes(size)

export const suites = {
  access: { about: "Routing callers, checking tokens, limiting rates", suite: accessSuite },
  chaos: { about: "Engine processes killed, crashed, stopped and starved under load", suite: chaosSuite },
  control: { about: "The event loop while models are loaded, unloaded and purged", suite: controlSuite },
  conversation: {
    about: "Conversations: end of a turn to the first audio, beside the engines alone",
    suite: conversationSuite(),
    sized: bySize(conversationSizes, conversationSuite),
  },
  cycles: {
    about: "Every built-in model loaded and unloaded 100 times: what stays in memory",
    suite: cyclesSuite,
  },
  gpu: {
    about: "Models on an NVIDIA card: placement, speed, cancels, eviction, restarts",
    suite: gpuSuite(gpuDefaults),
  },
  hostile: {
    about: "Mutated inputs and attacks against a node that serves honest clients",
    suite: hostileSuite(hostileDefaults),
  },
  live: {
    about: "Live transcription: exactness, cost of a session, lag, capacity, memory",
    suite: liveSuite,
    sized: bySize([...liveSizes, ...transducerSizes], (size) =>
      isTransducer(size) ? transducerLiveSuite(size) : sizedLiveSuite(size),
    ),
  },
  models: { about: "Quality of the built-in models, by the product's own engines", suite: modelsSuite() },
  pictures: { about: "Chats with pictures: first tokens, replies beside them, memory", suite: picturesSuite },
  region: {
    about: "Nodes on one Postgres behind one router, beside nodes that share nothing",
    suite: regionSuite,
  },
  restart: { about: "A gateway that is killed: how soon the node serves again", suite: restartSuite },
  "slow-clients": {
    about: "slowhttptest with 1,000 connections: what others notice",
    suite: slowClientsSuite,
  },
  speech: {
    about: "Speech: first audio, under-runs, cost of encoding",
    suite: speechSuite,
    sized: bySize(kokoroSizes, sizedSpeechSuite),
  },
  text: {
    about: "Chat and completions: gateway, token loop, streaming",
    suite: textSuite,
    sized: bySize(textSizes, sizedTextSuite),
  },
  transcription: {
    about: "Transcription: real-time factor, shares, uploads",
    suite: transcriptionSuite,
    sized: bySize(whisperSizes, sizedTranscriptionSuite),
  },
  turns: {
    about: "What is taken for speech, how soon, when turns end, and the echo of answers",
    suite: turnsSuite({ speech: undefined, sounds: undefined }),
  },
} satisfies Readonly<Record<string, SuiteCommand>>
