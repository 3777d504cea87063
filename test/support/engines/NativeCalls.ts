// Counts native calls of ONNX Runtime, for tests of what work costs that must not depend on the machine.
import { Effect, type Scope } from "effect"
import { InferenceSession } from "onnxruntime-node"
import { builtInModel } from "../nodes/BuiltInModels.ts"

/** Calls of all sessions of this process that have this input, until the scope closes. */
export const countedCalls = (input: string): Effect.Effect<() => number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { source } = builtInModel("tts-3b-ml").files?.styleEncoder as { readonly source: string }
    // The class is not exported; its methods are those of any session.
    const any = yield* Effect.promise(() => InferenceSession.create(source))
    const sessions = Object.getPrototypeOf(any) as { run: InferenceSession["run"] }
    const original = sessions.run
    let calls = 0
    sessions.run = function (this: InferenceSession, feeds: object, ...rest: ReadonlyArray<unknown>) {
      if (input in feeds) calls++
      return Reflect.apply(original, this, [feeds, ...rest])
    } as typeof original
    yield* Effect.addFinalizer(() =>
      Effect.promise(async () => {
        sessions.run = original
        await any.release()
      }),
    )
    return () => calls
  })
