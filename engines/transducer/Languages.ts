// Which languages a transducer knows, and the number that its encoder takes for each. Pure.

/** The number that lets the published multilingual model find the language itself. */
const autoPrompt = 101

/** `prompt_dictionary` of the published multilingual streaming export, for files that do not carry it. */
const published: ReadonlyMap<string, number> = new Map(
  `
    en-US 0, en-GB 1, es-ES 2, es-US 3, zh-CN 4, zh-TW 5, hi 6, ar 7, fr 8, de 9, ja 10, ru 11, pt-BR 12,
    pt-PT 13, ko 14, it 15, nl 16, pl 17, tr 18, uk 19, ro 20, el 21, cs 22, hu 23, sv 24, da 25, fi 26,
    no 27, sk 28, hr 29, bg 30, lt 31, th 32, vi 33, et 60, lv 61, sl 62, he 64, fr-CA 100, auto 101,
    mt 102, nb 103, nn 104
  `
    .split(",")
    .map((row) => {
      const [tag = "", number] = row.trim().split(" ")
      return [tag, Number(number)] as const
    }),
)

export interface Languages {
  readonly codes: ReadonlyArray<string>
  /** The encoder's number of a language; of undefined that of detection. Always 0 for models without this input. */
  readonly promptOf: (code: string | undefined) => number
}

const codeOf = (tag: string): string => tag.split("-")[0]!.toLowerCase()

/** `named`: the catalog's. `prompts`: the configuration's dictionary. */
export const languagesOf = (
  named: ReadonlyArray<string> | undefined,
  prompts: ReadonlyMap<string, number> | undefined,
  hasPrompt: boolean,
): Languages => {
  if (!hasPrompt) return { codes: named ?? ["en"], promptOf: () => 0 }
  const dictionary = prompts ?? published
  const byCode = new Map<string, number>()
  for (const [tag, id] of dictionary) if (!byCode.has(codeOf(tag))) byCode.set(codeOf(tag), id)
  const auto = dictionary.get("auto") ?? autoPrompt
  byCode.delete("auto")
  const codes = (named ?? [...byCode.keys()]).filter((code) => byCode.has(code))
  return { codes, promptOf: (code) => (code === undefined ? auto : (byCode.get(code) ?? auto)) }
}
