// A real-input FFT of one fixed even size, on WebAssembly memory that lives as long as a Scope.
import KissFFT, { type KissFftModule } from "@echogarden/kissfft-wasm"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export interface RealFft {
  readonly size: number
  /**
   * Float32 views of the transform's memory, valid until the next call of `views`: fill `input` (`size`
   * samples), call `transform`, read `output` (`size / 2 + 1` pairs of real and imaginary part).
   */
  readonly views: () => { readonly input: Float32Array; readonly output: Float32Array }
  readonly transform: () => void
}

const bytesPerFloat = 4

/** One WebAssembly instance for each process: its code has 20 kB and all sizes share its memory. */
let instance: Promise<KissFftModule> | undefined

export const make = (size: number): Effect.Effect<RealFft, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      instance ??= KissFFT()
      const wasm = await instance
      const config = wasm._kiss_fftr_alloc(size, 0, 0, 0)
      const input = wasm._malloc(size * bytesPerFloat)
      const output = wasm._malloc((size + 2) * bytesPerFloat)
      return { wasm, config, input, output }
    }),
    ({ wasm, config, input, output }) =>
      Effect.sync(() => {
        for (const pointer of [config, input, output]) wasm._free(pointer)
      }),
  ).pipe(
    Effect.map(({ wasm, config, input, output }) => ({
      size,
      views: () => ({
        input: wasm.HEAPF32.subarray(input / bytesPerFloat, input / bytesPerFloat + size),
        output: wasm.HEAPF32.subarray(output / bytesPerFloat, output / bytesPerFloat + size + 2),
      }),
      transform: () => wasm._kiss_fftr(config, input, output),
    })),
  )
