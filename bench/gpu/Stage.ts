// What the sections of the GPU suite share: the card, the models on it, and how a section that cannot run says so.

import { stat } from "node:fs/promises"
import { availableParallelism } from "node:os"
import { Effect, type Scope } from "effect"
import { figure, type Part } from "#harness/report/Figure.ts"
import { operatorOf, superadminKey } from "../operations/Operator.ts"
import { type TextSize, textWeights } from "../sizes/text/TextWeights.ts"
import { ask, asked } from "../support/Ask.ts"
import { ChildFailed } from "../support/Child.ts"
import { childrenOf } from "../support/EngineCpu.ts"
import type { Gateway } from "../support/Gateway.ts"
import { completionsPath, demoWeights } from "../text/Models.ts"
import { sizedCompletion, sizedEntry } from "../text/sized/Models.ts"
import { generated } from "../transcription/Sized.ts"
import { type Card, described } from "./Card.ts"

export interface GpuOptions {
  /** `auto` leaves the choice to llama.cpp, which takes the CPU if no card works: a rehearsal. */
  readonly gpu: "cuda" | "auto"
  /** Folder with the packages of `edgewise setup cuda`; absent: the registry. */
  readonly from: string | undefined
  /** Whether engine processes are confined, as they are by default. */
  readonly confined: boolean
}

export interface GpuStage extends GpuOptions {
  readonly card: Card | undefined
  readonly profileDir: string | undefined
}

/** A stage with a card. */
interface CardStage extends GpuStage {
  readonly card: Card
}

export type Measure<Plan> = (
  stage: CardStage,
  plan: Plan,
) => Effect.Effect<ReadonlyArray<Part>, ChildFailed, Scope.Scope>

export const notRun = (title: string, reason: string): Part => ({
  title: `${title}: not run`,
  method: reason,
  figures: [],
})

/** Adds the card to the methods and the time of the whole section to the figures. Without a card nothing is measured. */
export const onCard =
  <Plan>(title: string, measure: Measure<Plan>) =>
  (stage: GpuStage, plan: Plan): Effect.Effect<ReadonlyArray<Part>, ChildFailed, Scope.Scope> =>
    Effect.gen(function* () {
      const { card } = stage
      if (card === undefined) return [notRun(title, "nvidia-smi shows no GPU")]
      const startedMs = performance.now()
      const sections = yield* Effect.scoped(measure({ ...stage, card }, plan))
      const seconds = (performance.now() - startedMs) / 1_000
      return sections.map((section, at) => ({
        ...section,
        method: `${described(card)}; ${section.method}`,
        figures:
          at === sections.length - 1
            ? [...section.figures, figure("the whole section", "s", [seconds])]
            : section.figures,
      }))
    })

export const threads = availableParallelism()

export const settingsOf = ({ confined }: GpuOptions) => ({ EDGEWISE_CONFINE: String(confined) })

interface Weights {
  readonly path: string
  readonly mib: number
}

/** A size of generated weights, or the built-in model, with which a rehearsal on the processor is short. */
export type CardSize = TextSize | "built-in"

/** Generated weights are kept in the temporary folder. */
export const weightsOf = (size: CardSize): Effect.Effect<Weights, ChildFailed> =>
  generated(async () => {
    const path = size === "built-in" ? demoWeights : await textWeights(size)
    return { path, mib: Math.ceil((await stat(path)).size / 2 ** 20) }
  })

/** A text model on the card that is loaded when it is asked for. */
export const onDemand = (id: string, { path }: Weights, { gpu }: GpuOptions) => ({
  ...sizedEntry(path, threads, gpu),
  id,
  runtime: { load: "demand", threads },
})

export const operatorIn = (gateway: Gateway) =>
  Effect.map(
    asked(() => superadminKey(gateway)),
    (key) => ({ ...operatorOf(gateway, key), target: { ...gateway.target, key } }),
  )

interface Completion {
  readonly usage: { readonly completion_tokens: number }
}

/** Seconds until a whole reply of a few tokens, loading included. */
export const answerSeconds = (
  { target }: Gateway,
  model: string,
  prompt: string,
): Effect.Effect<number, ChildFailed> =>
  asked(async () => {
    const startedMs = performance.now()
    const body = { ...sizedCompletion(prompt, 4), model, stream: false, stream_options: undefined }
    await ask<Completion>(target, completionsPath, body)
    return (performance.now() - startedMs) / 1_000
  })

/** The engine of a node that has one. */
export const engineOf = ({ child }: Gateway): Effect.Effect<number, ChildFailed> =>
  Effect.gen(function* () {
    const [engine, ...others] = process.platform === "linux" ? childrenOf(child.pid) : []
    if (engine !== undefined && others.length === 0) return engine
    const detail = engine === undefined ? "has no engine" : `has ${others.length + 1} children`
    return yield* new ChildFailed({ child: "edgewise serve", detail })
  })
