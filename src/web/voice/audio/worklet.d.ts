// What the browser's audio thread offers; TypeScript's own library does not declare it.
declare abstract class AudioWorkletProcessor {
  readonly port: MessagePort
  abstract process(inputs: Array<Array<Float32Array>>): boolean
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void
declare const sampleRate: number
