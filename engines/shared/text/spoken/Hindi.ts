// What Hindi writes in signs. eSpeak itself reads whole and decimal numbers and "%". It reads signs and Latin letters in English.
import { abbreviated, counted, moneys, type SpokenForms, saidOf, signsOf } from "./SpokenForms.ts"

/** Nouns after a number have one form here; "one" is before the singular. */
const nouns = (table: string): SpokenForms["units"] => counted(table.replace(/=([^;\n]*)/g, "=एक $1=$1"))

export const hindi: SpokenForms = {
  decimal: ".",
  months: "जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर".split(" "),
  date: (day, month, year) => `${day} ${month} ${year}`,
  time: (hours, minutes) => (minutes === "0" ? `${hours} बजे` : `${hours} बजकर ${minutes} मिनट`),
  currencies: moneys(`
    ₹=एक रुपया=रुपये=एक पैसा=पैसे; €=एक यूरो=यूरो=एक सेंट=सेंट; US$=एक डॉलर=डॉलर=एक सेंट=सेंट
    $=एक डॉलर=डॉलर=एक सेंट=सेंट; £=एक पाउंड=पाउंड=एक पेंस=पेंस; ¥=एक येन=येन=एक सेन=सेन
    ₩=एक वॉन=वॉन=एक जन=जन
  `),
  scales: { words: "हज़ार|हजार|लाख|करोड़|अरब", of: " " },
  and: " ",
  units: nouns(`
    km/h=किलोमीटर प्रति घंटा; किमी/घंटा=किलोमीटर प्रति घंटा; m/s=मीटर प्रति सेकंड
    km2=वर्ग किलोमीटर; m2=वर्ग मीटर
    m3=घन मीटर
    km=किलोमीटर; किमी=किलोमीटर; m=मीटर; cm=सेंटीमीटर; सेमी=सेंटीमीटर; mm=मिलीमीटर
    kg=किलो; किग्रा=किलो; g=ग्राम; mg=मिलीग्राम
    l=लीटर; L=लीटर; ml=मिलीलीटर
    h=घंटे; min=मिनट; s=सेकंड; ms=मिलीसेकंड
    Hz=हर्ट्ज़; kHz=किलोहर्ट्ज़; MHz=मेगाहर्ट्ज़; GHz=गीगाहर्ट्ज़
    KB=किलोबाइट; kB=किलोबाइट; MB=मेगाबाइट; GB=गीगाबाइट; TB=टेराबाइट
    W=वाट; kW=किलोवाट; kWh=किलोवाट घंटे; V=वोल्ट
    °C=डिग्री सेल्सियस; °F=डिग्री फ़ारेनहाइट; °=डिग्री
  `),
  fractions: saidOf("1/2=आधा; 1/3=एक तिहाई; 2/3=दो तिहाई; 1/4=एक चौथाई; 3/4=तीन चौथाई"),
  ordinals: [],
  minus: "माइनस",
  to: " से ",
  number: "नंबर",
  address: { dot: "डॉट", at: "ऐट", slash: "स्लैश" },
  signs: signsOf(`
    & और; + प्लस; = बराबर; @ ऐट; × गुणा; ÷ भाग; ± प्लस माइनस; ≈ लगभग; ≠ बराबर नहीं; ≤ कम या बराबर
    ≥ ज़्यादा या बराबर; < से कम; > से ज़्यादा; ^ घात; √ वर्गमूल; ∞ अनंत; § धारा; # हैश; ° डिग्री; / बटा
  `),
  abbreviations: abbreviated(`
    डॉ.=डॉक्टर; डॉ०=डॉक्टर; प्रो.=प्रोफ़ेसर; पं.=पंडित; रु.=रुपये; कि.मी.=किलोमीटर; कि.ग्रा.=किलो
  `),
}
