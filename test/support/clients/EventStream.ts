// A strict reader of text/event-stream for tests: the fields and line ends of the HTML standard, every deviation an
// error.

/** The data of each event, in order. Throws on anything but `data` lines and blank lines, or an unfinished event. */
export const parseEventStream = (text: string): Array<string> => {
  const events: Array<string> = []
  let data: Array<string> = []
  // CRLF, LF and CR all end a line, so a raw one of them inside a text would show here as a broken event.
  const lines = text.split(/\r\n|\n|\r/)
  if (lines.pop() !== "") throw new Error("the stream does not end with a line end")
  for (const line of lines) {
    if (line === "") {
      if (data.length === 0) throw new Error("an event without data")
      events.push(data.join("\n"))
      data = []
    } else if (line.startsWith("data: ")) {
      data.push(line.slice("data: ".length))
    } else {
      throw new Error(`not an event line: ${JSON.stringify(line)}`)
    }
  }
  if (data.length > 0) throw new Error("the last event is not finished")
  return events
}
