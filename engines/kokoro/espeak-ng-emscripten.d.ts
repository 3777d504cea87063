// The part of `@echogarden/espeak-ng-emscripten` 0.3.5 that is called; the package ships no types.
declare module "@echogarden/espeak-ng-emscripten" {
  interface Worker {
    /** 0 for success. With any other value the previous voice stays set. */
    set_voice(name: string): number
    /** Sounds joined by "_", a line for each clause. */
    synthesize_ipa(text: string): { readonly code: number; readonly ipa: string }
  }
  interface Module {
    readonly eSpeakNGWorker: new () => Worker | Promise<Worker>
  }
  export default function load(): Promise<Module>
}
