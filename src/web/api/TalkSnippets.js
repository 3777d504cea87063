// The conversation of the panel Talk as code. OpenAI's clients speak the same protocol.

/**
 * @param {string} base
 * @param {string} path
 * @param {Record<string, unknown>} session
 * @returns {{ curl: string, python: string, typescript: string }}
 */
export const talkSnippets = (base, path, session) => {
  const address = new URL(path.replace(/^\//, ""), base.replace(/^http/, "ws")).href
  const update = JSON.stringify({ type: "session.update", session: { type: "realtime", ...session } })
  return {
    curl: [
      "# curl has no microphone. Make raw samples of any recording for the other two, with a second of silence at the end:",
      "ffmpeg -i speech.wav -af apad=pad_dur=1 -ar 24000 -ac 1 -f s16le speech.pcm",
    ].join("\n"),
    python: `import asyncio
import base64
import json
import os

import websockets

async def main():
    protocols = ["openai-insecure-api-key." + os.environ["EDGEWISE_API_KEY"]]
    async with websockets.connect(${JSON.stringify(address)}, subprotocols=protocols) as socket:
        await socket.send(${JSON.stringify(update)})

        async def speak():
            with open("speech.pcm", "rb") as audio:
                while piece := audio.read(960):  # 20 ms
                    text = base64.b64encode(piece).decode()
                    await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": text}))
                    await asyncio.sleep(0.02)

        speaking = asyncio.create_task(speak())
        answer = open("answer.pcm", "wb")
        async for message in socket:
            event = json.loads(message)
            if event["type"] == "response.output_audio.delta":
                answer.write(base64.b64decode(event["delta"]))
            elif event["type"] == "response.output_audio_transcript.delta":
                print(event["start_time"], event["delta"])
            elif event["type"] == "response.done":
                break
        await speaking

asyncio.run(main())`,
    typescript: `import { readFile, writeFile } from "node:fs/promises"

const protocol = \`openai-insecure-api-key.\${process.env.EDGEWISE_API_KEY}\`
const socket = new WebSocket(${JSON.stringify(address)}, [protocol])
const send = (event: object) => socket.send(JSON.stringify(event))
const answer: Array<Buffer> = []
socket.onmessage = async ({ data }) => {
  const event = JSON.parse(data)
  if (event.type === "response.output_audio.delta") answer.push(Buffer.from(event.delta, "base64"))
  if (event.type === "response.output_audio_transcript.delta") console.log(event.start_time, event.delta)
  if (event.type !== "response.done") return
  await writeFile("answer.pcm", Buffer.concat(answer))
  socket.close()
}
socket.onerror = () => console.error("the node refused or ended the connection")
socket.onopen = async () => {
  socket.send(${JSON.stringify(update)})
  const speech = await readFile("speech.pcm")
  for (let at = 0; at < speech.length; at += 960) {
    send({ type: "input_audio_buffer.append", audio: speech.subarray(at, at + 960).toString("base64") })
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}`,
  }
}
