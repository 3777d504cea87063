// A loaded GGUF file: weights, context and vocabulary inside a Scope; closing the scope frees the memory.
// A failed load is an `EngineError` that names what is wrong with the file or the machine.
import { access, constants } from "node:fs/promises"
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { GgufFileType, type Llama, type LlamaModel, LlamaVocabularyType } from "node-llama-cpp"
import type { CallCosts } from "#domain/threads/CallCosts.ts"
import { type EngineError, type EngineSpec, loadFailed } from "../../protocol/Engine.ts"
import { nativeJinja, nativeModel } from "../native/Internals.ts"
import { openLibrary } from "../native/Library.ts"
import type { NativeContext, OpenedNative } from "../native/Native.ts"
import { NativeLog } from "../native/NativeLog.ts"
import { openLibllamaContext } from "../native/OpenLibllama.ts"
import type { LlamaOptions } from "../Options.ts"
import { type Spelling, Vocabulary } from "../output/Vocabulary.ts"
import { ChatPrompt, templateOf } from "../prompt/ChatPrompt.ts"
import type { ChatTemplate } from "../prompt/ChatTemplate.ts"
import { CostCurve } from "../steps/CostCurve.ts"
import { measureCosts } from "../steps/MeasureCosts.ts"
import type { StepCosts } from "../steps/StepPlan.ts"
import { type SteppedContext, stepThreads } from "../steps/StepThreads.ts"
import { Constraints } from "./Constraints.ts"
import { loadPictures, type Pictures } from "./LoadPictures.ts"

export interface Model {
  /** Sets the CPU threads of each step. */
  readonly stepped: SteppedContext
  readonly vocabulary: Vocabulary
  readonly prompts: ChatPrompt
  readonly constraints: Constraints
  readonly contextTokens: number
  /** Duration of native calls on this machine, as it was kept or is known from calls. */
  readonly costs: StepCosts
  /** Measures it, see MeasureCosts. */
  readonly measureCosts: (sequences: ReadonlyArray<number>, isWanted: () => boolean) => Promise<CallCosts>
  /** True for hybrid, recurrent and sliding-window models: their memory cannot be cut at an arbitrary token. */
  readonly needsCheckpoints: boolean
  readonly summary: string
  /** Absent if the model takes no pictures. */
  readonly pictures: Pictures | undefined
}

export const openLlama = (spec: EngineSpec, options: Pick<LlamaOptions, "gpu">, log: NativeLog) =>
  Effect.acquireRelease(
    log.attempt("no native library for this machine", () =>
      openLibrary({ gpu: options.gpu, threads: spec.threads, logger: log.keep }),
    ),
    (llama) => Effect.promise(() => log.settled().then(() => llama.dispose())),
  )

/** How the vocabulary spells tokens: SPM, UGM and some BPE vocabularies write a space as `▁`, byte-level BPE as `Ġ`. */
const spellingOf = (model: LlamaModel): Spelling => {
  const type = model.vocabularyType
  if (type === LlamaVocabularyType.spm || type === LlamaVocabularyType.ugm) return "spaced"
  if (type !== LlamaVocabularyType.bpe) return "plain"
  const spellings: ReadonlyArray<string> = model.fileInfo.metadata.tokenizer?.ggml?.tokens ?? []
  return spellings.some((spelled) => spelled.startsWith("Ġ")) ? "byteLevel" : "spaced"
}

const vocabularyOf = (model: LlamaModel, template: ChatTemplate | undefined): Vocabulary => {
  const { spelled, attributes } = nativeModel(model)
  const shown = new Set(template?.markers)
  const ends = new Set(template?.ends)
  const isEnd = (token: number) =>
    model.isEogToken(token as Parameters<LlamaModel["isEogToken"]>[0]) ||
    (ends.size > 0 && ends.has(spelled(token)))
  const { length: size } = model.fileInfo.metadata.tokenizer?.ggml?.tokens ?? []
  return new Vocabulary({ size, spelling: spellingOf(model), spelled, attributes, isEnd, shown })
}

/** E.g. "llama, 2.5 M parameters, Q8_0". */
export const summaryOf = ({ model, parameters }: Pick<OpenedNative, "model" | "parameters">): string => {
  const size = parameters >= 1e9 ? `${(parameters / 1e9).toFixed(1)} B` : `${(parameters / 1e6).toFixed(1)} M`
  const fileType = model.fileInfo.metadata.general?.file_type
  const name = fileType === undefined ? undefined : GgufFileType[fileType]
  const quantised = name === undefined ? "" : `, ${name.replace(/^(MOSTLY|ALL)_/, "")}`
  return `${model.architecture}, ${size} parameters${quantised}`
}

/** Evaluates one token, so that the weights are paged in before the first request and a broken model fails at its load. */
const warmUp = async (native: NativeContext): Promise<void> => {
  const [row] = await native.decode([{ sequenceId: 0, position: 0, tokens: [0], logits: true }])
  const greedy = { temperature: 0, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 0 }
  const sampler = native.sampler(greedy)
  await sampler.sample(row ?? 0).finally(sampler.dispose)
  native.clear(0)
}

/** The path of a model's weights, which can be read. */
export const weightsOf = ({ adapter, files }: EngineSpec): Effect.Effect<string, EngineError> => {
  const path = files.weights
  return path === undefined
    ? Effect.fail(loadFailed("", `files: a ${adapter} model needs \`weights\``))
    : Effect.tryPromise({
        try: () => access(path, constants.R_OK),
        catch: () => loadFailed("", `${basename(path)} does not exist or cannot be read`),
      }).pipe(Effect.as(path))
}

export const loadModel = (
  spec: EngineSpec,
  options: LlamaOptions,
): Effect.Effect<Model, EngineError, Scope.Scope> =>
  Effect.gen(function* () {
    const path = yield* weightsOf(spec)
    const name = basename(path)
    const log = new NativeLog(path)
    const llama = yield* openLlama(spec, options, log)
    const opened = yield* openLibllamaContext({ llama, path, options, threads: spec.threads, log })
    yield* log.attempt(`cannot run ${name}`, () => warmUp(opened.native))
    const stepped = stepThreads(opened.native, spec)
    const { mmproj } = spec.files
    const pictures =
      mmproj === undefined
        ? undefined
        : yield* loadPictures({
            path: mmproj,
            opened,
            native: opened.native,
            cacheBytes: options.pictureMegabytes * mebibyte,
            threads: () => stepped.threadsOf(manyRows),
            log,
          })
    return yield* log.attempt(`cannot run ${name}`, () =>
      assemble({ llama, opened, stepped, pictures, options, costs: spec.costs }),
    )
  })

const mebibyte = 1024 * 1024

/** A tower computes as many rows at once as the largest of the measured steps has tokens, or more. */
const manyRows = 32

interface Loaded {
  readonly llama: Llama
  readonly opened: OpenedNative
  readonly stepped: SteppedContext
  readonly pictures: Pictures | undefined
  readonly options: LlamaOptions
  readonly costs: CallCosts | undefined
}

const assemble = async ({
  costs: kept,
  llama,
  opened,
  options,
  pictures,
  stepped,
}: Loaded): Promise<Model> => {
  const { model, contextTokens } = opened
  const { isHybrid, isRecurrent, swaSize } = model.fileInsights
  const needsCheckpoints = isHybrid || isRecurrent || swaSize !== undefined
  const template = templateOf(model, nativeJinja(llama))
  const vocabulary = vocabularyOf(model, template)
  const { sharedPrompts } = options
  const limits = { contextTokens, needsCheckpoints, sharedPrompts }
  const prompts = new ChatPrompt(model, template, limits, pictures?.reader)
  const { batchTokens, slots } = options
  const costs = { prompt: new CostCurve(batchTokens), replies: new CostCurve(slots) }
  costs.prompt.take(kept?.prompt ?? [])
  costs.replies.take(kept?.replies ?? [])
  return {
    stepped,
    costs,
    measureCosts: (sequences, isWanted) =>
      measureCosts(stepped.native, { batchTokens, contextTokens, slots }, sequences, isWanted),
    vocabulary,
    prompts,
    constraints: new Constraints(vocabulary, prompts),
    contextTokens,
    needsCheckpoints,
    summary: summaryOf(opened),
    pictures,
  }
}
