// The messages of a chat in the terminal, and the file in which they are saved. Pure.

type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } }

export interface Message {
  readonly role: "system" | "user" | "assistant"
  readonly content: string | ReadonlyArray<Part>
}

/** A picture that goes with the next message. */
export interface Picture {
  readonly name: string
  /** A `data:` URL. */
  readonly url: string
}

export interface Conversation {
  /** Empty: none is sent. */
  readonly system: string
  /** Questions and answers in turn, without the system message. */
  readonly messages: ReadonlyArray<Message>
  readonly pictures: ReadonlyArray<Picture>
}

export const emptyConversation: Conversation = { system: "", messages: [], pictures: [] }

/** With a question, and the waiting pictures in it. */
export const asked = ({ messages, pictures, system }: Conversation, text: string): Conversation => {
  const content: Message["content"] =
    pictures.length === 0
      ? text
      : [
          { type: "text", text },
          ...pictures.map(({ url }) => ({ type: "image_url" as const, image_url: { url } })),
        ]
  return { system, messages: [...messages, { role: "user", content }], pictures: [] }
}

export const answered = (conversation: Conversation, text: string): Conversation => ({
  ...conversation,
  messages: [...conversation.messages, { role: "assistant", content: text }],
})

export const sentMessages = ({ messages, system }: Conversation): ReadonlyArray<Message> =>
  system === "" ? messages : [{ role: "system", content: system }, ...messages]

const textOf = ({ content }: Message): string =>
  typeof content === "string"
    ? content
    : content.map((part) => (part.type === "text" ? part.text : "[picture]")).join("\n")

/** The text of a saved conversation: the messages as JSON for a name that ends in .json, else Markdown. */
export const savedText = (conversation: Conversation, path: string): string =>
  path.toLowerCase().endsWith(".json")
    ? `${JSON.stringify(sentMessages(conversation), null, 2)}\n`
    : sentMessages(conversation)
        .map((message) => `## ${message.role}\n\n${textOf(message)}\n`)
        .join("\n")
