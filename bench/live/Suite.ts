// The live suite: its sections, their order and their duration.
import { Effect } from "effect"
import { builtInModels, fakeModel } from "../operations/Models.ts"
import { startChild } from "../support/Child.ts"
import type { Commands } from "../support/CommandChannel.ts"
import { startGateway } from "../support/Gateway.ts"
import type { RoundsPlan } from "../support/Rounds.ts"
import { suite } from "../support/Suite.ts"
import type { EchoCommands } from "./echoMain.ts"
import { type FramePlan, frameSection, idleModel, memorySection } from "./Gateway.ts"
import { type HearingPlan, hearingSection } from "./Hearing.ts"
import type { HearingCommands } from "./hearingMain.ts"
import {
  type CapacityPlan,
  type ClipsPlan,
  capacitySection,
  clipsSection,
  type LagPlan,
  lagSection,
  lastWordSection,
  listenModel,
} from "./Sessions.ts"

interface Plan {
  readonly hearing: HearingPlan
  readonly lastWord: RoundsPlan
  readonly lag: LagPlan
  readonly clips: ClipsPlan
  readonly capacity: CapacityPlan
  readonly idleSessions: number
  readonly frames: FramePlan
}

/** Under four minutes. */
const fullPlan: Plan = {
  hearing: { rounds: 3, withinMs: 40_000, freshSeconds: 60 },
  lastWord: { rounds: 40, withinMs: 20_000 },
  lag: { speakers: [1, 8], seconds: 20 },
  clips: { clips: 200, atOnce: 2, speed: 10 },
  capacity: { most: 60, everyMs: 1_000 },
  idleSessions: 1_000,
  frames: { rounds: 5, withinMs: 20_000, sessions: 20, frames: 500 },
}

/** Under a minute: a check that it works, with rough figures. */
const quickPlan: Plan = {
  hearing: { rounds: 1, withinMs: 0, freshSeconds: 24 },
  lastWord: { rounds: 10, withinMs: 5_000 },
  lag: { speakers: [1], seconds: 8 },
  clips: { clips: 12, atOnce: 2, speed: 10 },
  capacity: { most: 12, everyMs: 500 },
  idleSessions: 200,
  frames: { rounds: 1, withinMs: 0, sessions: 10, frames: 200 },
}

/** The built-in transcription model, and a fake one without cost. */
const models = async (): Promise<ReadonlyArray<Readonly<Record<string, unknown>>>> => {
  const runtime = { load: "start" }
  const builtIn = (await builtInModels()).filter(({ id }) => id === listenModel)
  const idle = { ...fakeModel, id: idleModel, kind: "transcription", adapter: "fake-transcription" }
  return [...builtIn.map((entry) => ({ ...entry, runtime })), idle]
}

const child = <Served extends Commands>(name: string, file: string) =>
  startChild<Served>({ name, entry: new URL(file, import.meta.url) })

/** On the built-in model. */
export const liveSuite = suite({
  name: "live",
  plans: { full: fullPlan, quick: quickPlan },
  start: ({ profileDir }) =>
    Effect.all({
      hearing: child<HearingCommands>("hearing", "./hearingMain.ts"),
      echo: child<EchoCommands>("echo", "./echoMain.ts"),
      gateway: Effect.flatMap(Effect.promise(models), (found) => startGateway({ models: found, profileDir })),
    }),
  died: ({ echo, gateway, hearing }) => Effect.raceAllFirst([hearing.died, echo.died, gateway.child.died]),
  sections: {
    hearing: ({ hearing }, plan) => hearingSection(hearing, plan.hearing),
    final: ({ gateway, hearing }, plan) => lastWordSection(gateway, hearing, plan.lastWord),
    lag: ({ gateway }, plan) => lagSection(gateway, plan.lag),
    clips: ({ gateway }, plan) => clipsSection(gateway, plan.clips),
    capacity: ({ gateway }, plan) => capacitySection(gateway, plan.capacity),
    memory: ({ gateway }, plan) => memorySection(gateway, plan.idleSessions),
    frames: ({ echo, gateway }, plan) => frameSection(gateway, echo, plan.frames),
  },
})
