// Reads Server-Sent Events of a node's answer, however its bytes are cut. Used by `transcribe` and `models pull --node`.

/** Gives the JSON text of each event to `onData`; `[DONE]` is none. */
export const eventReader = (onData: (json: string) => void): ((chunk: Buffer) => void) => {
  const decoder = new TextDecoder()
  let rest = ""
  return (chunk) => {
    const events = (rest + decoder.decode(chunk, { stream: true })).split("\n\n")
    rest = events.pop() ?? ""
    for (const event of events) if (event.startsWith("data: {")) onData(event.slice("data: ".length))
  }
}
