// How many CPU threads the ONNX sessions of this engine may use at the moment; checked before each native call. There is
// one engine in a process or worker thread.

let most = Number.POSITIVE_INFINITY

export const limitThreads = (threads: number): void => {
  most = threads
}

/** True if a session with this many threads may run. */
export const isAllowed = (threads: number): boolean => threads <= most
