// Types for the parts of @echogarden/kissfft-wasm that are called; the package ships none.
declare module "@echogarden/kissfft-wasm" {
  /** Pointers are byte offsets into the module's memory. */
  export interface KissFftModule {
    /** Replaced when the memory grows: read it after every allocation. */
    readonly HEAPF32: Float32Array
    readonly _malloc: (bytes: number) => number
    readonly _free: (pointer: number) => void
    readonly _kiss_fftr_alloc: (
      size: number,
      inverse: number,
      memory: number,
      lengthPointer: number,
    ) => number
    /** Reads `size` floats at `time`, writes `size / 2 + 1` complex pairs at `spectrum`. */
    readonly _kiss_fftr: (config: number, time: number, spectrum: number) => void
  }
  export default function KissFFT(): Promise<KissFftModule>
}
