// What a person does on each panel of the playground, for the pictures of it.
import type { Page } from "playwright-core"

const spoken = "The quick brown fox jumps over the lazy dog. Please open the window, it is warm in here."

/** Waits until the last element of a selector has a text. */
export const until = async (page: Page, selector: string, pattern: RegExp): Promise<void> => {
  for (let tries = 0; tries < 600; tries++) {
    if (pattern.test((await page.locator(selector).last().textContent()) ?? "")) return
    await page.waitForTimeout(100)
  }
  throw new Error(`${selector} never showed ${pattern}`)
}

export const useKey = async (page: Page, key: string): Promise<void> => {
  await page.fill("#key", key)
  await page.keyboard.press("Enter")
  await page.waitForSelector("#chat-model option", { state: "attached" })
  await page.waitForSelector("#speak-voice option", { state: "attached" })
  await page.locator("#key").blur()
}

/** Two questions and their answers. */
export const chat = async (page: Page): Promise<void> => {
  for (const [at, question] of ["What is the capital of Italy?", "Tell me a story about a fox."].entries()) {
    await page.fill("#chat-text", question)
    await page.click("#chat-send")
    await page.locator(".receipt").nth(at).waitFor()
  }
  await until(page, ".receipt .price", /USD/)
}

export const speak = async (page: Page): Promise<void> => {
  await page.fill("#speak-text", spoken)
  await page.click("#speak-play")
  await until(page, "#speak-play", /Play/)
  await until(page, "#speak-receipt .price", /USD/)
}

/** A recording of the node's own voice. */
const recording = async (page: Page, key: string, input: string): Promise<Buffer> => {
  const json = { model: "tts-82m", voice: "af_bella", input, response_format: "wav" }
  const headers = { authorization: `Bearer ${key}` }
  const speech = await page.request.post("/v1/audio/speech", { data: json, headers })
  return speech.body()
}

/** Live captions of a file, 12 s of speech for each of `times`, of which some are final. */
export const listen = async (page: Page, key: string, times = 1): Promise<void> => {
  const story = "Tell me a story about a fox and a bear. The bear lives in the old forest near the river."
  const buffer = await recording(page, key, `${spoken} ${story} `.repeat(times))
  await page.check("[name=listen-source][value=file]")
  await page.setInputFiles("#listen-file", { name: "fox.wav", mimeType: "audio/wav", buffer })
  await page.click("#listen-start")
  await until(page, "#listen-text .firm", /\w+ \w+/)
}

/** A conversation with Chromium's fake microphone, until the node has answered twice. */
export const talk = async (page: Page): Promise<void> => {
  await page.click("#talk-start")
  await page.locator(".talk-log .ledger").nth(1).waitFor({ timeout: 60_000 })
  await until(page, ".ledger figcaption", /On the node/)
}

export const seeNode = (page: Page): Promise<void> => page.locator("#node-models li").nth(7).waitFor()
