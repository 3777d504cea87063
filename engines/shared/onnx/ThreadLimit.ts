// How many CPU threads the ONNX sessions of this engine may use at the moment. Set by EngineServer through the descriptors of
// the ONNX engines; read by OnnxSession before each native call. One engine a process or worker thread.

let most = Number.POSITIVE_INFINITY

export const limitThreads = (threads: number): void => {
  most = threads
}

/** Whether a session with so many threads may run. */
export const isAllowed = (threads: number): boolean => threads <= most
