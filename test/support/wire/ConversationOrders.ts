// The rules of order that the events of a conversation keep, whatever the client does: every answer, item and part begins once, ends
// once, and nothing of it comes after its end.
type Frame = Readonly<Record<string, unknown>>

interface Answer {
  readonly items: Map<string, { index: number; parts: string; text: string; isDone: boolean }>
  isDone: boolean
}

const asObject = (value: unknown): Frame =>
  typeof value === "object" && value !== null ? (value as Frame) : {}

/** Broken rules, one text each. `isOver`: every answer must have ended. */
export const brokenOrders = (frames: ReadonlyArray<Frame>, isOver = true): ReadonlyArray<string> => {
  const broken: Array<string> = []
  const answers = new Map<string, Answer>()
  const items = new Map<string, "added" | "done">()
  const eventIds = new Set<unknown>()
  const say = (at: number, rule: string) => broken.push(`${at} ${String(frames[at]?.type)}: ${rule}`)
  for (const [at, frame] of frames.entries()) {
    const type = String(frame.type)
    if (eventIds.has(frame.event_id)) say(at, "its event_id came before")
    eventIds.add(frame.event_id)
    if (type === "response.created" || type === "response.done") {
      const response = asObject(frame.response)
      const id = String(response.id)
      const answer = answers.get(id)
      if (type === "response.created") {
        if (answer !== undefined) say(at, "was created before")
        answers.set(id, { items: new Map(), isDone: false })
        if (response.status !== "in_progress" || response.usage !== null) say(at, "is not in progress")
        continue
      }
      if (answer === undefined) say(at, "was not created")
      else {
        if (answer.isDone) say(at, "was done before")
        answer.isDone = true
        for (const [item, { isDone }] of answer.items) if (!isDone) say(at, `its item ${item} has not ended`)
        const output = (response.output as ReadonlyArray<Frame>).map((item) => item.id)
        if (String(output) !== String([...answer.items.keys()])) say(at, "its output is not its items")
      }
      const usage = asObject(response.usage)
      if (!("input_token_details" in usage && "output_token_details" in usage)) say(at, "has no usage")
      continue
    }
    if (type.startsWith("conversation.item.") && "item" in frame && type !== "conversation.item.retrieved") {
      const id = String(asObject(frame.item).id)
      const previous = frame.previous_item_id
      if (previous !== null && !items.has(String(previous))) say(at, "follows an item that never was")
      const state = items.get(id)
      if (type.endsWith(".added")) {
        if (state !== undefined) say(at, "was added before")
        items.set(id, "added")
      } else if (state !== "added") say(at, state === undefined ? "was not added" : "was done before")
      else items.set(id, "done")
      continue
    }
    if (!type.startsWith("response.")) continue
    const answer = answers.get(String(frame.response_id))
    if (answer === undefined || answer.isDone) {
      say(at, answer === undefined ? "is of an answer that was not created" : "comes after its answer's end")
      continue
    }
    const id = String(frame.item_id ?? asObject(frame.item).id)
    const item = answer.items.get(id)
    if (type === "response.output_item.added") {
      if (item !== undefined) say(at, "its item was added before")
      if (frame.output_index !== answer.items.size) say(at, "its index is not the next")
      answer.items.set(id, { index: answer.items.size, parts: "none", text: "", isDone: false })
      continue
    }
    if (item === undefined) {
      say(at, "its item was not added")
      continue
    }
    if (item.isDone) say(at, "its item has ended")
    if (frame.output_index !== item.index) say(at, "its index is another item's")
    if (type === "response.output_item.done") item.isDone = true
    else if (type === "response.content_part.added") {
      if (item.parts !== "none") say(at, "its part was added before")
      item.parts = "open"
    } else if (type === "response.content_part.done") {
      if (item.parts !== "ending") say(at, `its part is ${item.parts}`)
      item.parts = "ended"
    } else if (type === "response.output_text.done" || type === "response.output_audio_transcript.done") {
      const whole = String(frame.text ?? frame.transcript)
      if (!item.text.startsWith(whole)) say(at, "is not the beginning of its deltas")
      item.parts = "ending"
    } else if (type === "response.output_audio.done") item.parts = "silent"
    else if (type === "response.output_audio.delta") {
      if (item.parts !== "open") say(at, `its part is ${item.parts}`)
    } else if (type.endsWith("_text.delta") || type.endsWith("_transcript.delta")) {
      if (item.parts !== "open") say(at, `its part is ${item.parts}`)
      item.text += String(frame.delta)
    }
  }
  if (isOver) {
    for (const [id, { isDone }] of answers) if (!isDone) broken.push(`the answer ${id} has not ended`)
    for (const [id, state] of items) if (state !== "done") broken.push(`the item ${id} has not ended`)
  }
  return broken
}
