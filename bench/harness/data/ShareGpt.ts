// Prompts from a file in the form of ShareGPT: a JSON array of objects with `conversations`, a list of messages with `from`
// and `value`. The first message of a person is the prompt.
import { readFileSync, statSync } from "node:fs"
import { basename } from "node:path"
import { Random } from "../random/Random.ts"
import type { PromptSource } from "./Prompts.ts"
import { WrongData } from "./WrongData.ts"

/** Larger than the published files; a file is read whole. */
const mostBytes = 400 * 2 ** 20
/** Characters of a prompt that is used; longer ones do not fit the context of most models. A guess. */
const mostCharacters = 16_000

const people = new Set(["human", "user"])

const firstOfPerson = (conversation: unknown): ReadonlyArray<string> => {
  const { conversations, messages } = conversation as Readonly<Record<string, unknown>>
  const list = Array.isArray(conversations) ? conversations : Array.isArray(messages) ? messages : []
  for (const entry of list as ReadonlyArray<Readonly<Record<string, unknown>> | null>) {
    const text = entry?.value ?? entry?.content
    if (people.has(String(entry?.from ?? entry?.role)) && typeof text === "string" && text.trim() !== "") {
      return text.length <= mostCharacters ? [text] : []
    }
  }
  return []
}

/** @throws WrongData */
export const shareGptPrompts = (path: string, seed: number): PromptSource => {
  let all: unknown
  try {
    const { size } = statSync(path)
    if (size > mostBytes) throw new WrongData(`${path}: larger than ${mostBytes / 2 ** 20} MB`)
    all = JSON.parse(readFileSync(path, "utf8"))
  } catch (cause) {
    if (cause instanceof WrongData) throw cause
    throw new WrongData(`${path}: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
  const prompts = Array.isArray(all)
    ? all.flatMap((one) => (typeof one === "object" && one !== null ? firstOfPerson(one) : []))
    : []
  if (prompts.length === 0) {
    throw new WrongData(`${path}: no prompts; it must be a JSON array of objects with "conversations"`)
  }
  return {
    name: `${basename(path)}, ${prompts.length} conversations`,
    prompt: (index) => prompts[new Random(seed, index + 1).below(prompts.length)] ?? "",
  }
}
