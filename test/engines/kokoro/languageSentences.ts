// Two hundred sentences in each of Kokoro's languages but English: each of twenty beginnings with ten of twenty endings.

interface Parts {
  readonly begins: ReadonlyArray<string>
  readonly ends: ReadonlyArray<string>
}

const parts: Readonly<Record<string, Parts>> = {
  es: {
    begins:
      "El niño|Mi hermana mayor|La vieja profesora|Nuestro vecino|Un cirujano joven|Aquella muchacha|El guitarrista|La lluvia de marzo|El carpintero|Su abuelo|Cada viernes el jefe|Ningún pasajero|La jueza|El perro del huésped|Toda la familia|Quizás el rey|Una extraña voz|El ingeniero inglés|La cigüeña blanca|Ayer el cartero".split(
        "|",
      ),
    ends: "llegó tarde a la estación|quiere comprar queso y pan|nunca olvida las llaves|escribió una carta larguísima|vive junto al río|cantaba bajo la luna llena|explicó el ejercicio con paciencia|trajo cinco naranjas jugosas|espera una respuesta clara|cruzó la calle sin mirar|prefiere el café caliente|construyó un puente de hierro|guarda su dinero en el cajón|oyó un ruido muy raro|durmió ocho horas seguidas|vendió el coche azul|hablará mañana con el médico|no sabe qué decir|aprendió portugués y alemán|rompió el jarrón chino".split(
      "|",
    ),
  },
  fr: {
    begins:
      "Le petit garçon|Ma sœur aînée|Notre voisin|La vieille dame|Un jeune médecin|Cet homme|Le boulanger du coin|Chaque matin ma mère|L'oiseau blanc|Aucun élève|La chanteuse|Le chien de Jean|Toute la famille|Hier le facteur|Une étrange lumière|L'ingénieur anglais|Les grands arbres|Quelqu'un|Mon oncle Louis|La neige".split(
        "|",
      ),
    ends: "arrive en retard à la gare|achète du pain et du fromage|oublie toujours ses clés|écrit une longue lettre|habite près de la rivière|chante sous la pluie|explique l'exercice avec patience|apporte cinq oranges bien mûres|attend une réponse claire|traverse la rue sans regarder|préfère le café très chaud|construit un pont en fer|cache son argent dans un tiroir|entend un bruit étrange|dort huit heures par nuit|vend la voiture bleue|parlera demain au docteur|ne sait pas quoi dire|apprend l'allemand et le portugais|casse le vase chinois".split(
      "|",
    ),
  },
  hi: {
    begins:
      "छोटा लड़का|मेरी बड़ी बहन|हमारा पड़ोसी|बूढ़ी अध्यापिका|एक युवा डॉक्टर|वह आदमी|गाँव का बढ़ई|हर सुबह माँ|सफ़ेद पक्षी|कोई विद्यार्थी|गायिका|राजा का घोड़ा|पूरा परिवार|कल डाकिया|एक अजीब आवाज़|नया इंजीनियर|ऊँचे पेड़|शायद ठेकेदार|मेरे चाचा|भारत की टीम".split(
        "|",
      ),
    ends: "स्टेशन पर देर से पहुँचा|रोटी और दूध खरीदता है|हमेशा चाबी भूल जाता है|एक लंबा पत्र लिखता है|नदी के पास रहता है|बारिश में गाता है|धीरज से समझाता है|पाँच मीठे संतरे लाया|साफ़ जवाब चाहता है|सड़क पार करता है|गरम चाय पसंद करता है|लोहे का पुल बनाता है|पैसे छिपाकर रखता है|कुछ अजीब सुनता है|आठ घंटे सोता है|नीली गाड़ी बेचता है|कल डॉक्टर से बात करेगा|नहीं जानता क्या कहे|हिंदी और अंग्रेज़ी सीखता है|फूलदान तोड़ देता है".split(
      "|",
    ),
  },
  it: {
    begins:
      "Il bambino|Mia sorella maggiore|Il nostro vicino|La vecchia maestra|Un giovane medico|Quell'uomo|Il falegname|Ogni mattina la mamma|L'uccello bianco|Nessuno studente|La cantante|Il cane di Giovanni|Tutta la famiglia|Ieri il postino|Una strana luce|L'ingegnere inglese|Gli alberi alti|Forse il giudice|Lo zio Luigi|La neve di gennaio".split(
        "|",
      ),
    ends: "arriva tardi alla stazione|compra pane e formaggio|dimentica sempre le chiavi|scrive una lunga lettera|abita vicino al fiume|canta sotto la pioggia|spiega l'esercizio con pazienza|porta cinque arance mature|aspetta una risposta chiara|attraversa la strada senza guardare|preferisce il caffè caldo|costruisce un ponte di ferro|nasconde il denaro nel cassetto|sente uno strano rumore|dorme otto ore per notte|vende la macchina azzurra|parlerà domani con il medico|non sa che cosa dire|impara il tedesco e il portoghese|rompe il vaso cinese".split(
      "|",
    ),
  },
  pt: {
    begins:
      "O menino|Minha irmã mais velha|Nosso vizinho|A velha professora|Um jovem médico|Aquele homem|O carpinteiro|Toda manhã a mãe|O pássaro branco|Nenhum aluno|A cantora|O cachorro do João|Toda a família|Ontem o carteiro|Uma luz estranha|O engenheiro inglês|As árvores altas|Talvez o juiz|Meu tio Luís|A chuva de janeiro".split(
        "|",
      ),
    ends: "chega tarde à estação|compra pão e queijo|sempre esquece as chaves|escreve uma carta longa|mora perto do rio|canta debaixo da chuva|explica o exercício com paciência|traz cinco laranjas maduras|espera uma resposta clara|atravessa a rua sem olhar|prefere o café bem quente|constrói uma ponte de ferro|esconde o dinheiro na gaveta|ouve um barulho estranho|dorme oito horas por noite|vende o carro azul|falará amanhã com o médico|não sabe o que dizer|aprende alemão e espanhol|quebra o vaso chinês".split(
      "|",
    ),
  },
  ja: {
    begins:
      "小さな男の子が|私の姉は|隣の人が|年を取った先生は|若い医者が|昨日郵便屋さんが|毎朝母は|白い鳥が|学生たちは|その歌手は|田中さんの犬が|家族みんなが|不思議な光が|イギリスの技師は|高い木が|たぶん裁判官は|叔父は|一月の雪が|銀行の店長は|東京の友達が".split(
        "|",
      ),
    ends: "駅に遅く着いた|パンとチーズを買った|いつも鍵を忘れる|長い手紙を書いた|川の近くに住んでいる|雨の中で歌った|丁寧に練習を説明した|みかんを五つ持ってきた|はっきりした返事を待っている|道を見ないで渡った|熱いコーヒーが好きだ|鉄の橋を作った|引き出しにお金を隠した|変な音を聞いた|毎日八時間寝る|青い車を売った|明日医者と話す|何を言えばいいか分からない|中国語と日本語を勉強する|花瓶を割ってしまった".split(
      "|",
    ),
  },
  zh: {
    begins:
      "那个小男孩|我姐姐|我们的邻居|老教师|一位年轻医生|昨天邮递员|每天早上妈妈|白色的鸟|没有一个学生|这位歌手|小王的狗|全家人|那个女警察|英国工程师|新来的校长|也许法官|我叔叔|会计|银行经理|重庆的朋友".split(
        "|",
      ),
    ends: "很晚才到火车站|买了面包和奶酪|总是忘记带钥匙|写了一封长信|住在河边|在雨中唱歌|耐心地解释了练习|带来了五个橙子|等着明确的答复|不看路就过马路|喜欢喝热咖啡|建了一座铁桥|把钱藏在抽屉里|听见了奇怪的声音|每天睡八个小时|卖掉了蓝色的汽车|明天要和医生谈话|不知道说什么好|学习汉语和日语|打破了中国花瓶".split(
      "|",
    ),
  },
}

/** @param language one of `es`, `fr`, `hi`, `it`, `ja`, `pt`, `zh` */
export const sentencesIn = (language: string): ReadonlyArray<string> => {
  const { begins, ends } = parts[language]!
  const [space, stop] = language === "ja" || language === "zh" ? ["", "。"] : [" ", "."]
  return begins.flatMap((begin, at) =>
    Array.from({ length: 10 }, (_, more) => `${begin}${space}${ends[(at + 2 * more) % ends.length]}${stop}`),
  )
}
