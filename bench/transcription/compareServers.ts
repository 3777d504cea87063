// Two servers on the same recordings: what each of them hears, how often they differ, and how long they take. For those who leave OpenAI's
// transcription endpoints and want to know what that costs them, before they do.
//
//   OTHER_KEY=sk-… KEY=svc_… node bench/transcription/compareServers.ts FOLDER https://api.openai.com/v1 http://127.0.0.1:8080/v1
//
// Every audio file of FOLDER is sent to both, one after the other: `POST {base}/audio/transcriptions`, in `verbose_json`. MODEL and OTHER_MODEL name
// the models, by default whisper-1. Where FOLDER has NAME.txt beside NAME.wav, it is taken for the right text. Prints one line a file, without the
// texts, and sums; `--texts` prints the texts too. Words are those of `edgewise bench`, of the letters a to z: for recordings in English. It sends your recordings to both servers and nowhere else.
import { readdir, readFile } from "node:fs/promises"
import { basename, extname, join } from "node:path"
import { wordErrorsOf } from "#harness/figures/WordErrors.ts"

interface Server {
  readonly base: string
  readonly key: string
  readonly model: string
}

interface Answer {
  readonly text: string
  readonly seconds: number
  readonly tookMs: number
}

const formats = [".wav", ".mp3", ".m4a", ".ogg", ".opus", ".flac", ".webm"]

const transcribed = async ({ base, key, model }: Server, path: string): Promise<Answer> => {
  const form = new FormData()
  form.append("model", model)
  form.append("response_format", "verbose_json")
  form.append("file", new File([await readFile(path)], basename(path)))
  const began = performance.now()
  const response = await fetch(`${base}/audio/transcriptions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: form,
  })
  if (!response.ok) throw new Error(`${new URL(base).host} answered ${response.status}`)
  const { duration, text } = (await response.json()) as { readonly text: string; readonly duration: number }
  return { text, seconds: duration, tookMs: performance.now() - began }
}

const percent = (part: number, whole: number): string =>
  whole === 0 ? "-" : `${((100 * part) / whole).toFixed(1)} %`

const main = async (): Promise<void> => {
  const { KEY = "", MODEL = "whisper-1", OTHER_KEY = "", OTHER_MODEL = "whisper-1" } = process.env
  const named = process.argv.slice(2).filter((arg) => !arg.startsWith("--"))
  const [folder, otherBase, base] = named
  if (folder === undefined || otherBase === undefined || base === undefined) {
    process.stderr.write("usage: compareServers.ts FOLDER OTHER_BASE BASE [--texts]\n")
    process.exitCode = 2
    return
  }
  const other: Server = { base: otherBase, key: OTHER_KEY, model: OTHER_MODEL }
  const own: Server = { base, key: KEY, model: MODEL }
  const names = (await readdir(folder)).filter((name) => formats.includes(extname(name).toLowerCase())).sort()
  const sums = { words: 0, differ: 0, right: 0, otherWrong: 0, ownWrong: 0, seconds: 0, otherMs: 0, ownMs: 0 }
  for (const name of names) {
    const path = join(folder, name)
    const theirs = await transcribed(other, path)
    const ours = await transcribed(own, path)
    const between = wordErrorsOf({ spoken: theirs.text, transcribed: ours.text })
    sums.words += between.words
    sums.differ += between.wrong
    sums.seconds += ours.seconds
    sums.otherMs += theirs.tookMs
    sums.ownMs += ours.tookMs
    const reference = await readFile(path.slice(0, -extname(path).length).concat(".txt"), "utf8").catch(
      () => undefined,
    )
    let judged = ""
    if (reference !== undefined) {
      const [a, b] = [theirs, ours].map(({ text }) => wordErrorsOf({ spoken: reference, transcribed: text }))
      sums.right += a!.words
      sums.otherWrong += a!.wrong
      sums.ownWrong += b!.wrong
      judged = `, wrong ${percent(a!.wrong, a!.words)} and ${percent(b!.wrong, b!.words)}`
    }
    const times = `${(theirs.tookMs / 1_000).toFixed(1)} s and ${(ours.tookMs / 1_000).toFixed(1)} s`
    process.stdout.write(`${name}: ${between.wrong} of ${between.words} words differ${judged}, ${times}\n`)
    if (process.argv.includes("--texts")) process.stdout.write(`  ${theirs.text}\n  ${ours.text}\n`)
  }
  process.stdout.write(
    `${names.length} files, ${sums.seconds.toFixed(0)} s of audio: ${percent(sums.differ, sums.words)} of the words differ; ` +
      `wrong words ${percent(sums.otherWrong, sums.right)} and ${percent(sums.ownWrong, sums.right)}; ` +
      `${(sums.otherMs / 1_000).toFixed(1)} s and ${(sums.ownMs / 1_000).toFixed(1)} s\n`,
  )
}

await main()
