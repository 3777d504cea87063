// Parses Server-Sent Events of a node's reply, however its bytes are split.

/** Passes the JSON text of each event to `onData`, except `[DONE]`. */
export const eventReader = (onData: (json: string) => void): ((chunk: Buffer) => void) => {
  const decoder = new TextDecoder()
  let rest = ""
  return (chunk) => {
    const events = (rest + decoder.decode(chunk, { stream: true })).split("\n\n")
    rest = events.pop() ?? ""
    for (const event of events) if (event.startsWith("data: {")) onData(event.slice("data: ".length))
  }
}
