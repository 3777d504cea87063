// Kana → symbols of the voices: the published table of Kokoro v1.0's Japanese front end. Pure.

const rows = (text: string): ReadonlyArray<readonly [string, string]> =>
  text.split(" ").map((row) => row.split("=") as [string, string])

/** Hiragana with an "i" that a small や, ゆ or よ joins: "き" and "ゃ" are "kʲa". */
const palatal = rows("き=kʲ ぎ=ɡʲ し=ɕ じ=ʥ ち=ʨ ぢ=ʥ に=ɲ ひ=ç び=bʲ ぴ=pʲ み=mʲ り=ɾʲ")
const joined = rows("ゃ=a ゅ=ɨ ょ=o")

const table: ReadonlyMap<string, string> = new Map([
  ...rows("あ=a い=i う=ɯ え=e お=o ぁ=a ぃ=i ぅ=ɯ ぇ=e ぉ=o ゃ=ja ゅ=jɯ ょ=jo ゎ=βa ゕ=ka ゖ=ke"),
  ...rows("か=ka く=kɯ け=ke こ=ko が=ɡa ぐ=ɡɯ げ=ɡe ご=ɡo さ=sa す=sɨ せ=se そ=so ざ=ʣa ず=zɨ ぜ=ʣe ぞ=ʣo"),
  ...rows("た=ta つ=ʦɨ て=te と=to だ=da づ=zɨ で=de ど=do な=na ぬ=nɯ ね=ne の=no は=ha ふ=ɸɯ へ=he ほ=ho"),
  ...rows("ば=ba ぶ=bɯ べ=be ぼ=bo ぱ=pa ぷ=pɯ ぺ=pe ぽ=po ま=ma む=mɯ め=me も=mo や=ja ゆ=jɯ よ=jo"),
  ...rows("ら=ɾa る=ɾɯ れ=ɾe ろ=ɾo わ=βa ゐ=i ゑ=e を=o ゔ=vɯ ヷ=va ヸ=vʲi ヹ=ve ヺ=vo ー=ː っ=ʔ"),
  ...palatal.map(([kana, sound]) => [kana, `${sound}i`] as const),
  ...palatal.flatMap(([kana, sound]) =>
    joined.map(([small, vowel]) => [kana + small, sound + vowel] as const),
  ),
  ...rows(
    "いぇ=je うぃ=βi うぇ=βe うぉ=βo きぇ=kʲe くぁ=kᵝa くぃ=kᵝi くぇ=kᵝe くぉ=kᵝo ぐぁ=ɡᵝa ぐぃ=ɡᵝi ぐぇ=ɡᵝe ぐぉ=ɡᵝo",
  ),
  ...rows(
    "しぇ=ɕe じぇ=ʥe ちぇ=ʨe つぁ=ʦa つぃ=ʦʲi つぇ=ʦe つぉ=ʦo てぃ=tʲi てゅ=tʲɨ でぃ=dʲi でゅ=dʲɨ とぅ=tɯ どぅ=dɯ",
  ),
  ...rows(
    "にぇ=ɲe ひぇ=çe ふぁ=ɸa ふぃ=ɸʲi ふぇ=ɸe ふぉ=ɸo ふゅ=ɸʲɨ ふょ=ɸʲo ゔぁ=va ゔぃ=vʲi ゔぇ=ve ゔぉ=vo ゔゅ=bʲɨ ゔょ=bʲo",
  ),
])

const small = "ぁぃぅぇぉゃゅょ"

/** "ん" sounds like what follows it in its word. */
const nasal = (next: string | undefined): string => {
  const sound = next ?? ""
  if (/^[mpb]/.test(sound)) return "m"
  if (/^[kɡ]/.test(sound)) return "ŋ"
  if (/^[ɲʨʥ]/.test(sound)) return "ɲ"
  return /^[ntdɾz]/.test(sound) ? "n" : "ɴ"
}

/** The small katakana of Ainu, which sound like the large ones. */
const ainu = new Map(
  [..."ㇰㇱㇲㇳㇴㇵㇶㇷㇸㇹㇺㇻㇼㇽㇾㇿ"].map(
    (kana, at) => [kana, "くしすとぬはひふへほむらりるれろ"[at]!] as const,
  ),
)

const toHiragana = (kana: string): string =>
  kana
    .replace(/[ァ-ヶ]/g, (one) => String.fromCodePoint(one.codePointAt(0)! - 0x60))
    .replace(/[ㇰ-ㇿ]/g, (one) => ainu.get(one)!)

/** The symbols of a word in kana; "" for what is no kana. */
export const kanaSymbols = (word: string): string => {
  const kana = [...toHiragana(word)]
  let symbols = ""
  for (let at = 0; at < kana.length; at++) {
    const one = kana[at]!
    const next = kana[at + 1]
    const pair = next === undefined ? undefined : table.get(one + next)
    if (pair !== undefined) {
      symbols += pair
      at++
    } else if (one === "ん") symbols += nasal(next === undefined ? undefined : table.get(next))
    else if (next !== undefined && small.includes(next) && one !== "っ" && table.has(one)) {
      // A pair without an entry: the first without its vowel.
      symbols += table.get(one)!.slice(0, -1) + table.get(next)!
      at++
    } else symbols += table.get(one) ?? ""
  }
  return symbols
}
