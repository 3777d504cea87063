// How sentences and questions end, by language, for adding punctuation. Data, deliberately small: each pattern lists
// openings (or endings, depending on the language) that nearly always mark a question; all else is a statement.

interface SentenceRules {
  /** Written with spaces between words. */
  readonly spaced: boolean
  readonly end: string
  readonly question: string
  /** Put before a question. */
  readonly questionStart?: string
  /** Matches the beginning or end of a lower-case sentence that is a question. */
  readonly asks: RegExp
}

/** Matches a sentence that begins with one of these as whole words. */
const opens = (...patterns: ReadonlyArray<string>): RegExp =>
  new RegExp(`^(?:${patterns.join("|")})(?![\\p{L}\\p{M}\\p{N}])`, "u")

const latin = { spaced: true, end: ".", question: "?" }
const ideographic = { spaced: false, end: "。", question: "？" }

const english = opens(
  "(?:who|what|when|where|why|how|which|whose|whom) (?:is|are|was|were|do|does|did|can|could|will|would|should|shall|has|have|had|am|may|might)",
  "(?:who|what|when|where|why|how)['’](?:s|re|ll|d)",
  "how (?:much|many|long|far|old|often|about)",
  "what (?:time|about|if|kind)",
  "why (?:not|don['’]t)",
  "(?:is|are|was|were|do|does|did|can|could|will|would|has|have|am)(?:n['’]t)? (?:i|you|he|she|it|we|they|this|these|those|there|your|my|our|anyone|anybody|someone|everyone)",
  "(?:may|shall|should) (?:i|we)",
)

const german = opens(
  "wer|was|wann|wo|warum|wieso|weshalb|wohin|woher|wem|wen|wessen|welche[rsmn]?",
  "wie (?:geht|ist|sind|war|viele?|lange|oft|spät|alt|heißt|heißen|kann|komme|macht)",
  "(?:ist|sind|war|waren|hat|haben|hast|habt|bist|kann|kannst|können|könnt|könnten?|könntest|darf|dürfen|soll|sollen|sollte|muss|müssen|willst|wollen|wollt|wird|werden|würden?|möchten|möchtest|gibt) (?:ich|du|er|sie|es|wir|ihr|das|der|die|dies|man|jemand)",
)

const french = opens(
  "est-ce (?:que|qu['’]\\p{L}+)|qu['’]est-ce|pourquoi|comment|combien|où|quand est-ce",
  "qui (?:est|sont|a|va|peut|veut)",
  "quel(?:le)?s? (?:est|sont|était|heure|âge|jour)",
  "(?!rendez-|allez-)\\p{L}+-(?:t-)?(?:je|tu|il|elle|on|nous|vous|ils|elles)",
)

const italian = opens(
  "che (?:cosa|ora|ore|tempo)|cosa|chi|dove|dov['’]è|qual|qual['’]è|quale|quali|quant[oaie]|com['’]è",
  "come (?:va|stai|sta|state|mai|si)",
  "perché non",
)

const dutch = opens(
  "wie|wat|wanneer|waar|waarom|welke?|waarheen|hoe (?:gaat|is|laat|lang|veel|vaak|oud|heet|kan|moet|kom)",
  "(?:is|zijn|was|heb|heeft|hebben|kan|kun|kunnen|mag|wil|wilt|zal|zullen|ga|gaat|moet|moeten) (?:ik|je|jij|u|hij|ze|zij|het|we|wij|jullie|dit|dat|er)",
)

const polish = opens(
  "czy|kto|kogo|komu|gdzie|dlaczego|czemu|ile|skąd|dokąd|jaki|jaka|jakie|który|która|które",
  "co (?:to|się|jest|u|tam|robisz|robi|pan|pani)",
  "jak (?:się|to|jest|długo|daleko|często)",
  "kiedy (?:to|jest|będzie|był|była)",
)

const portuguese = opens(
  "por que|o que|quem|onde|aonde|qual|quais|quant[oa]s?|será que|cadê",
  "como (?:vai|está|estão|é|faço|posso|se)",
  "quando (?:é|foi|vai|será)",
)

/** By ISO-639-1 code. */
export const sentenceRules: Readonly<Partial<Record<string, SentenceRules>>> = {
  ar: {
    ...latin,
    question: "؟",
    asks: opens("هل|أين|متى|كيف|لماذا|ماذا|كم|من (?:هو|هي|أنت|هم)|ما (?:هو|هي|هذا|هذه|اسمك|رأيك)"),
  },
  de: { ...latin, asks: german },
  el: {
    ...latin,
    question: ";",
    asks: opens("τι|ποι(?:ος|α|ο|οι|ες|ον|αν)|πότε|πού|πώς|πόσ(?:ο|η|α|οι|ες|ος)|μήπως|γιατί (?:δεν|είναι)"),
  },
  en: { ...latin, asks: english },
  es: {
    ...latin,
    questionStart: "¿",
    asks: opens("por qué|para qué|qué|quién(?:es)?|cuándo|dónde|adónde|cómo|cuál(?:es)?|cuánt[oa]s?"),
  },
  fr: { ...latin, asks: french },
  it: { ...latin, asks: italian },
  ja: { ...ideographic, asks: /(?:です|ます|した|せん|しょう|だろう|の|る|い)か$|かな$/u },
  ko: { ...latin, asks: /(?:까|까요|나요|인가요|은가요|는가요|던가요|뭐예요|누구예요|어디예요|어때요)$/u },
  nl: { ...latin, asks: dutch },
  pl: { ...latin, asks: polish },
  pt: { ...latin, asks: portuguese },
  vi: {
    ...latin,
    asks: /^(?:ai|tại sao|vì sao|khi nào|làm sao|làm thế nào|bao giờ|bao nhiêu|có phải)(?![\p{L}\p{M}])|(?:^| )(?:không|chưa|hả|nhỉ)$/u,
  },
  zh: {
    ...ideographic,
    asks: /^(?:为什么|為什麼|怎么|怎麼|谁|誰|几点|幾點|是不是|有没有|有沒有|能不能|可不可以)|(?:吗|嗎|呢|什么|什麼|怎么样|怎麼樣|谁|誰|哪里|哪裡|哪儿|多少)$/u,
  },
}

export const punctuatedLanguages: ReadonlyArray<string> = Object.keys(sentenceRules).sort()
