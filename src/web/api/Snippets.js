// One request as code that can be copied: curl, Python (package `requests`; `websockets` for a socket) and TypeScript
// (Node 22 or a browser, no package). The key is never part of it: the code reads the variable EDGEWISE_API_KEY.

/**
 * @typedef {object} CodeRequest
 * @property {string} method
 * @property {string} base the node's address, with a slash at its end
 * @property {string} path from `/`, with its query
 * @property {unknown} [json] the body
 * @property {string} [file] the name of a file that is uploaded as the form's part `file`
 * @property {"events" | "audio" | "json"} answer how the answer is read: an event stream, audio that is saved, or JSON
 * @property {string} [saveAs] the file that audio is saved in
 */

/** @typedef {{ readonly curl: string, readonly python: string, readonly typescript: string }} Snippets */

/** @param {string} text */
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`

/**
 * A JSON value in Python.
 * @param {unknown} value
 * @param {string} indent
 * @returns {string}
 */
export const pythonValue = (value, indent = "") => {
  if (value === null) return "None"
  if (value === true) return "True"
  if (value === false) return "False"
  if (typeof value !== "object") return JSON.stringify(value)
  const inner = `${indent}    `
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]"
    return `[\n${value.map((one) => inner + pythonValue(one, inner)).join(",\n")},\n${indent}]`
  }
  const entries = Object.entries(value ?? {})
  if (entries.length === 0) return "{}"
  const lines = entries.map(([name, one]) => `${inner}${JSON.stringify(name)}: ${pythonValue(one, inner)}`)
  return `{\n${lines.join(",\n")},\n${indent}}`
}

/** @param {CodeRequest} request */
const addressOf = ({ base, path }) => new URL(path.replace(/^\//, ""), base).href

/** @param {CodeRequest} request */
const curlOf = (request) => {
  const { answer, file, json, method, saveAs } = request
  const isPost = json !== undefined || file !== undefined
  const words = [
    answer === "events" ? "curl -N" : "curl",
    ...(isPost || method === "GET" ? [] : [`-X ${method}`]),
    shell(addressOf(request)),
  ].join(" ")
  const lines = [
    words,
    '-H "Authorization: Bearer $EDGEWISE_API_KEY"',
    ...(json === undefined ? [] : ["-H 'Content-Type: application/json'"]),
    ...(json === undefined ? [] : [`-d ${shell(JSON.stringify(json))}`]),
    ...(file === undefined ? [] : [`-F ${shell(`file=@${file}`)}`]),
    ...(saveAs === undefined ? [] : [`-o ${shell(saveAs)}`]),
  ]
  return lines.join(" \\\n  ")
}

/** @param {CodeRequest} request */
const pythonOf = (request) => {
  const { answer, file, json, method, saveAs } = request
  const call = [
    `response = requests.${method.toLowerCase()}(`,
    `    ${JSON.stringify(addressOf(request))},`,
    '    headers={"Authorization": f"Bearer {os.environ[\'EDGEWISE_API_KEY\']}"},',
    ...(json === undefined ? [] : [`    json=${pythonValue(json, "    ")},`]),
    ...(file === undefined ? [] : [`    files={"file": open(${JSON.stringify(file)}, "rb")},`]),
    ...(answer === "json" ? [] : ["    stream=True,"]),
    ")",
    "response.raise_for_status()",
  ]
  const reading = {
    json: ["print(response.json())"],
    audio: [
      `with open(${JSON.stringify(saveAs ?? "speech.pcm")}, "wb") as output:`,
      "    for chunk in response.iter_content(chunk_size=None):",
      "        output.write(chunk)",
    ],
    events: [
      "for line in response.iter_lines():",
      '    if line.startswith(b"data: ") and line != b"data: [DONE]":',
      "        print(json.loads(line[6:]))",
    ],
  }
  const imports = answer === "events" ? ["import json", "import os"] : ["import os"]
  return [...imports, "", "import requests", "", ...call, ...reading[answer]].join("\n")
}

/** @param {CodeRequest} request */
const typescriptOf = (request) => {
  const { answer, file, json, method, saveAs } = request
  const form =
    file === undefined
      ? []
      : [
          "const form = new FormData()",
          `form.append("file", new Blob([await readFile(${JSON.stringify(file)})]), ${JSON.stringify(file)})`,
        ]
  const call = [
    `const response = await fetch(${JSON.stringify(addressOf(request))}, {`,
    `  method: ${JSON.stringify(method)},`,
    "  headers: {",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the code that is shown has the placeholder
    "    Authorization: `Bearer ${process.env.EDGEWISE_API_KEY}`,",
    ...(json === undefined ? [] : ['    "Content-Type": "application/json",']),
    "  },",
    ...(json === undefined
      ? []
      : [`  body: JSON.stringify(${JSON.stringify(json, null, 2).replaceAll("\n", "\n  ")}),`]),
    ...(file === undefined ? [] : ["  body: form,"]),
    "})",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the code that is shown has the placeholder
    "if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)",
  ]
  const reading = {
    json: ["console.log(await response.json())"],
    audio: [
      `await writeFile(${JSON.stringify(saveAs ?? "speech.pcm")}, new Uint8Array(await response.arrayBuffer()))`,
    ],
    events: [
      'let rest = ""',
      "for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {",
      '  const lines = (rest + piece).split("\\n")',
      '  rest = lines.pop() ?? ""',
      "  for (const line of lines)",
      '    if (line.startsWith("data: ") && line !== "data: [DONE]") console.log(line.slice(6))',
      "}",
    ],
  }
  const names = [...(file === undefined ? [] : ["readFile"]), ...(answer === "audio" ? ["writeFile"] : [])]
  const imports = names.length === 0 ? [] : [`import { ${names.join(", ")} } from "node:fs/promises"`, ""]
  return [...imports, ...form, ...call, ...reading[answer]].join("\n")
}

/**
 * @param {CodeRequest} request
 * @returns {Snippets}
 */
export const snippetsOf = (request) => ({
  curl: curlOf(request),
  python: pythonOf(request),
  typescript: typescriptOf(request),
})

/**
 * The live socket as code: it sends a file of raw 16 kHz samples in real time.
 * @param {string} base
 * @param {string} path with its query
 * @returns {Snippets}
 */
export const liveSnippets = (base, path) => {
  const address = new URL(path.replace(/^\//, ""), base.replace(/^http/, "ws")).href
  return {
    curl: [
      "# curl sends no live audio. Make raw samples of any recording for the other two:",
      "ffmpeg -i speech.wav -ar 16000 -ac 1 -f s16le speech.pcm",
    ].join("\n"),
    python: `import asyncio
import json
import os

import websockets

async def main():
    key = os.environ['EDGEWISE_API_KEY']
    protocols = ["openai-insecure-api-key." + key]
    async with websockets.connect(${JSON.stringify(address)}, subprotocols=protocols) as socket:
        async def speak():
            with open("speech.pcm", "rb") as audio:
                while piece := audio.read(640):  # 20 ms
                    await socket.send(piece)
                    await asyncio.sleep(0.02)
            await socket.send('{"type": "stop"}')

        speaking = asyncio.create_task(speak())
        caption = ""
        async for message in socket:
            event = json.loads(message)
            if event["type"] == "transcript.text.delta":
                caption = caption + event["delta"] if event["op"] == "append" else event["delta"]
            if event["type"] == "transcript.text.done":
                caption = event["text"]
            print(event["type"], caption)
        await speaking

asyncio.run(main())`,
    typescript: `import { readFile } from "node:fs/promises"

const protocol = \`openai-insecure-api-key.\${process.env.EDGEWISE_API_KEY}\`
const socket = new WebSocket(${JSON.stringify(address)}, [protocol])
let caption = ""
socket.onmessage = ({ data }) => {
  const event = JSON.parse(data)
  if (event.type === "transcript.text.delta")
    caption = event.op === "append" ? caption + event.delta : event.delta
  if (event.type === "transcript.text.done") caption = event.text
  console.log(event.type, caption)
  if (event.type === "transcript.text.done") process.exit()
}
socket.onerror = () => console.error("the node refused or ended the connection")
socket.onopen = async () => {
  const samples = await readFile("speech.pcm")
  for (let at = 0; at < samples.length; at += 640) {
    socket.send(samples.subarray(at, at + 640)) // 20 ms
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  socket.send('{"type":"stop"}')
}`,
  }
}
