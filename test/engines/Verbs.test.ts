// The table of verbs as the compiler sees it: what an adapter must have, and what a model of each kind takes and gives. tsc
// checks this file: an error that is expected and does not come is an error.
import { expect, expectTypeOf, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ModelHandle, ofKind } from "#actors/model/ModelHandle.ts"
import type { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { EngineDescriptor, Outlet, SpeechEngine, TextEngine } from "#engines/protocol/Engine.ts"
import type { AnyOpen, Open, Step } from "#engines/protocol/EngineProtocol.ts"
import type {
  GenerateCall,
  GenerateEnd,
  GenerateRequest,
  TextDelta,
  TextFacts,
} from "#engines/protocol/Text.ts"
import type { EngineKind, Verbs } from "#engines/protocol/Verbs.ts"
import { verbs } from "#engines/protocol/Verbs.ts"

const textFacts: TextFacts = { contextTokens: 8, slots: 1, summary: "" }
const end: GenerateEnd = { finishReason: "stop", promptTokens: 1, completionTokens: 1 }

const whole: TextEngine = {
  kind: "text",
  facts: textFacts,
  generate: (request, out) => {
    expectTypeOf(request).toEqualTypeOf<GenerateRequest>()
    expectTypeOf(out).toEqualTypeOf<Outlet<"text">>()
    out.push({ text: "x", completionTokens: 1 })
    // @ts-expect-error A text engine gives no audio.
    out.push({ samples: new Int16Array(1) })
    return Effect.succeed(end)
  },
}

it("an adapter without its verb, or with another kind's, does not compile", () => {
  const { generate: _, ...withoutVerb } = whole
  // @ts-expect-error The verb is missing.
  const forgetful: TextEngine = withoutVerb
  // @ts-expect-error The verb of another kind.
  const mistaken: TextEngine = { kind: "text", facts: textFacts, synthesize: whole.generate }
  // @ts-expect-error Text facts, and no synthesize.
  const speaking: SpeechEngine = { ...whole, kind: "speech" }
  expect([forgetful, mistaken, speaking]).toHaveLength(3)
})

it("an adapter that forgets a field does not compile", () => {
  const { slots: _slots, ...factsWithoutSlots } = textFacts
  // @ts-expect-error `slots` is missing.
  const facts: TextEngine = { ...whole, facts: factsWithoutSlots }
  const { promptTokens: _tokens, ...endWithoutTokens } = end
  // @ts-expect-error `promptTokens` is missing in the end.
  const ends: TextEngine = { ...whole, generate: () => Effect.succeed(endWithoutTokens) }
  const starts: TextEngine = {
    ...whole,
    generate: (_, out) => {
      // @ts-expect-error `cachedTokens` is missing in the started event.
      out.started({ promptTokens: 1 })
      return Effect.succeed(end)
    },
  }
  expect([facts, ends, starts]).toHaveLength(3)
})

it("a descriptor of one kind does not give an engine of another", () => {
  const descriptor: EngineDescriptor<"speech"> = {
    adapter: "x",
    kind: "speech",
    // @ts-expect-error A text engine.
    acquire: () => Effect.succeed(whole),
  }
  expect(descriptor.kind).toBe("speech")
})

it("a message carries the request that its verb takes", () => {
  expectTypeOf<Open<"text">["request"]>().toEqualTypeOf<GenerateCall>()
  expectTypeOf<Extract<AnyOpen, { type: "synthesize" }>["request"]>().toEqualTypeOf<
    Verbs["speech"]["request"]
  >()
  const foreign: Step<"speech"> = {
    type: "step",
    // @ts-expect-error Units of text in a step of a speech engine.
    units: { texts: ["x"], numbers: [1, 1] },
  }
  expect(foreign.type).toBe("step")
  expectTypeOf<keyof typeof verbs>().toEqualTypeOf<EngineKind>()
  expect(new Set(Object.values(verbs)).size).toBe(Object.keys(verbs).length)
})

it("the registry gives a handle whose requests, events and facts are those of the kind", () => {
  type Got = Effect.Success<ReturnType<typeof getText>>
  const getText = (registry: ModelRegistry["Service"]) => registry.get("a", "text")
  expectTypeOf<Got>().toEqualTypeOf<ModelHandle<"text">>()
  expectTypeOf<ReturnType<Got["facts"]>>().toEqualTypeOf<TextFacts | undefined>()
  expectTypeOf<Parameters<Got["run"]>[0]>().toEqualTypeOf<GenerateCall>()
  expectTypeOf<Parameters<Parameters<Got["run"]>[1]["take"]>[0]>().toEqualTypeOf<TextDelta>()
  expectTypeOf<Effect.Success<ReturnType<Got["run"]>>>().toEqualTypeOf<GenerateEnd>()
  expectTypeOf<ReturnType<(typeof ofKind)["speech"]>>().not.toEqualTypeOf<
    ReturnType<(typeof ofKind)["text"]>
  >()
})
