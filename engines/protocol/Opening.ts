// Tells the host that an engine that already serves opens large files, which blocks its event loop: meanwhile the deadline
// of a load counts, and not that of a native call. Announced by the ONNX engines; EngineServer passes it on. One engine a
// process or worker thread.

let announce: (opening: boolean) => void = () => {}
let under = 0

export const onOpening = (listener: (opening: boolean) => void): void => {
  announce = listener
}

/** `open` begins after the host has been told; several may run at a time. */
export const whileOpening = async <A>(open: () => Promise<A>): Promise<A> => {
  if (++under === 1) announce(true)
  try {
    // Sends what was announced before the event loop blocks.
    await new Promise((resolve) => setImmediate(resolve))
    return await open()
  } finally {
    if (--under === 0) announce(false)
  }
}
