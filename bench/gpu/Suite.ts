// The GPU suite: what a node does on an NVIDIA card, in at most half an hour. Each section starts its own processes.
import { Effect } from "effect"
import type { RoundsPlan } from "../support/Rounds.ts"
import { type Suite, suite } from "../support/Suite.ts"
import { type CancelsPlan, cancels } from "./Cancels.ts"
import { theCard } from "./Card.ts"
import { type DevicesPlan, devices } from "./Devices.ts"
import { type EvictionPlan, eviction } from "./Eviction.ts"
import { type KilledPlan, killed } from "./Killed.ts"
import { speechOnCard, transcriptionOnCard } from "./Onnx.ts"
import { type PlacementPlan, placement } from "./Placement.ts"
import { setup } from "./Setup.ts"
import { type CardSize, type GpuOptions, type GpuStage, onCard } from "./Stage.ts"
import { type TextPlan, textOnCard } from "./Text.ts"

interface Plan {
  readonly devices: DevicesPlan
  readonly placement: PlacementPlan
  readonly small: TextPlan
  readonly large: TextPlan
  readonly cancels: CancelsPlan
  readonly eviction: EvictionPlan
  readonly killed: KilledPlan
  readonly onnx: RoundsPlan
}

/** @param windowMs of one reading: short enough that no stream reaches its last token */
const textPlan = (size: CardSize, rounds: number, windowMs: number, withinMs: number): TextPlan => ({
  size,
  replies: { streams: [1, 8, 16], windowMs, rounds, withinMs },
  first: { streams: [1, 8, 16], promptTokens: 100, replyTokens: 8, rounds, withinMs },
})

/** Five minutes on a fast card; the times are limits for a slow one. */
const full: Plan = {
  devices: { readings: 3 },
  placement: { size: "0.5b", rounds: 3 },
  small: textPlan("0.5b", 7, 1_000, 30_000),
  large: textPlan("1.5b", 7, 1_000, 45_000),
  cancels: { size: "0.5b", rounds: 7, withinMs: 30_000 },
  eviction: { small: "0.5b", large: "1.5b", rounds: 3 },
  killed: { size: "0.5b", rounds: 3, streams: 8 },
  onnx: { rounds: 7, withinMs: 60_000 },
}

/** One round of each with small weights: a check that it works. */
const quick: Plan = {
  devices: { readings: 1 },
  placement: { size: "built-in", rounds: 1 },
  small: textPlan("built-in", 1, 500, 0),
  large: textPlan("built-in", 1, 500, 0),
  cancels: { size: "built-in", rounds: 1, withinMs: 0 },
  eviction: { small: "built-in", large: "0.2b", rounds: 1 },
  killed: { size: "built-in", rounds: 1, streams: 8 },
  onnx: { rounds: 1, withinMs: 0 },
}

export const gpuDefaults: GpuOptions = { gpu: "cuda", from: undefined, confined: true }

export const gpuSuite = (options: GpuOptions): Suite =>
  suite<GpuStage, Plan>({
    name: "gpu",
    plans: { full, quick },
    start: ({ profileDir }) => Effect.map(theCard, (card) => ({ ...options, card, profileDir })),
    sections: {
      setup: (stage) => setup(stage),
      devices: (stage, plan) => onCard("Records of the cards", devices)(stage, plan.devices),
      placement: (stage, plan) => onCard("A text model on the card", placement)(stage, plan.placement),
      "text-0.5b": (stage, plan) => onCard("0.5b on the card", textOnCard)(stage, plan.small),
      "text-1.5b": (stage, plan) => onCard("1.5b on the card", textOnCard)(stage, plan.large),
      cancels: (stage, plan) => onCard("Streams that are left", cancels)(stage, plan.cancels),
      eviction: (stage, plan) => onCard("Two models in turn", eviction)(stage, plan.eviction),
      killed: (stage, plan) => onCard("An engine that is killed on the card", killed)(stage, plan.killed),
      speech: (stage, plan) => onCard("Speech on the card", speechOnCard)(stage, plan.onnx),
      transcription: (stage, plan) =>
        onCard("Transcription on the card", transcriptionOnCard)(stage, plan.onnx),
    },
  })
