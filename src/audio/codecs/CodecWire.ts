// The messages between CodecPool (gateway thread) and codecWorker (codec thread): structured clones over the worker's
// port, in order. PCM and bytes are transferred, not copied.

/** The formats that a thread encodes; pcm and wav need no thread. */
export type WorkerFormat = "mp3" | "opus"

/** Chosen by the pool, unique for the life of the worker. */
export type EncoderId = number

export type ToCodec =
  | { readonly t: "open"; readonly id: EncoderId; readonly format: WorkerFormat }
  | { readonly t: "push"; readonly id: EncoderId; readonly samples: Int16Array<ArrayBuffer> }
  | { readonly t: "finish"; readonly id: EncoderId }
  /** No further message about this id follows. */
  | { readonly t: "abort"; readonly id: EncoderId }

export type FromCodec =
  /** The codecs are compiled. Sent once. */
  | { readonly t: "up" }
  /** `samples` of the input were consumed; `bytes` may be empty while a codec fills its frame. */
  | {
      readonly t: "bytes"
      readonly id: EncoderId
      readonly bytes: Uint8Array<ArrayBuffer>
      readonly samples: number
    }
  | { readonly t: "finished"; readonly id: EncoderId }
  | { readonly t: "failed"; readonly id: EncoderId; readonly detail: string }
