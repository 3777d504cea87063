// What a line of the terminal means: a message, or a command that begins with a slash. Pure.

export const chatCommands = {
  help: { argument: "", does: "show these commands" },
  model: { argument: "[ID]", does: "show the models, or go on with another one" },
  system: { argument: "[TEXT]", does: "show the system message, or set it; /system - removes it" },
  image: { argument: "FILE", does: "send a picture with the next message, if the model sees" },
  clear: { argument: "", does: "forget the conversation; the system message stays" },
  save: { argument: "FILE", does: "write the conversation: JSON if the name ends in .json, else Markdown" },
  exit: { argument: "", does: "end; also Ctrl-D, or Ctrl-C twice" },
} as const

export type ChatCommandName = keyof typeof chatCommands

type ChatLine =
  | { readonly kind: "message"; readonly text: string }
  | { readonly kind: "command"; readonly name: ChatCommandName; readonly argument: string }
  | { readonly kind: "unknown"; readonly name: string }
  | { readonly kind: "empty" }

const isCommand = (name: string): name is ChatCommandName => Object.hasOwn(chatCommands, name)

export const chatLine = (line: string): ChatLine => {
  const text = line.trim()
  if (text === "") return { kind: "empty" }
  if (!text.startsWith("/")) return { kind: "message", text }
  // A message that begins with a slash is written with two.
  if (text.startsWith("//")) return { kind: "message", text: text.slice(1) }
  const [, name = "", argument = ""] = /^\/(\S*)\s*(.*)$/s.exec(text) ?? []
  if (name === "quit") return { kind: "command", name: "exit", argument }
  return isCommand(name) ? { kind: "command", name, argument } : { kind: "unknown", name }
}

export const chatHelp: ReadonlyArray<string> = [
  ...Object.entries(chatCommands).map(
    ([name, { argument, does }]) => `  ${`/${name} ${argument}`.padEnd(16)} ${does}`,
  ),
  "  A line that ends in \\ goes on in the next one.",
  "  A message that begins with a slash is written with two.",
  "  Ctrl-C stops an answer.",
]
