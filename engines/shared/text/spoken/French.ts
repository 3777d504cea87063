// What French writes in signs. eSpeak itself reads whole and decimal numbers, "10:30", "%", "&", "+", "=", "@", "1er", and most units of length.
import { abbreviated, counted, moneys, type SpokenForms, saidOf, signsOf } from "./SpokenForms.ts"

export const french: SpokenForms = {
  decimal: ",",
  months: "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(" "),
  date: (day, month, year) => `${day === "1" ? "1er" : day} ${month} ${year}`,
  time: (hours, minutes) =>
    `${hours === "1" ? "une heure" : `${hours} heures`}${minutes === "0" ? "" : ` ${minutes}`}`,
  currencies: moneys(`
    R$=un réal=réals=un centavo=centavos; €=un euro=euros=un centime=centimes
    US$=un dollar=dollars=un cent=cents; $=un dollar=dollars=un cent=cents
    £=une livre=livres=un penny=pence; ¥=un yen=yens=un sen=sen; ₹=une roupie=roupies=un paisa=paisas
    ₩=un won=wons=un jeon=jeon
  `),
  scales: { words: "mille|million|millions|milliard|milliards", of: " de " },
  and: " et ",
  units: counted(`
    km/h=un kilomètre heure=kilomètres heure; m/s=un mètre par seconde=mètres par seconde
    km2=un kilomètre carré=kilomètres carrés; m2=un mètre carré=mètres carrés
    cm2=un centimètre carré=centimètres carrés
    m3=un mètre cube=mètres cubes; cm3=un centimètre cube=centimètres cubes
    km=un kilomètre; m=un mètre; cm=un centimètre; mm=un millimètre; ha=un hectare
    kg=un kilo; g=un gramme; mg=un milligramme; t=une tonne
    l=un litre; L=un litre; ml=un millilitre; cl=un centilitre
    h=une heure; min=une minute; s=une seconde; ms=une milliseconde
    Hz=un hertz=hertz; kHz=un kilohertz=kilohertz; MHz=un mégahertz=mégahertz
    GHz=un gigahertz=gigahertz; Ko=un kilooctet; Mo=un mégaoctet; Go=un gigaoctet; To=un téraoctet
    KB=un kilooctet; kB=un kilooctet; MB=un mégaoctet; GB=un gigaoctet; TB=un téraoctet
    W=un watt; kW=un kilowatt; kWh=un kilowatt heure=kilowatts heure; V=un volt
    °C=un degré Celsius=degrés Celsius; °F=un degré Fahrenheit=degrés Fahrenheit; °=un degré
  `),
  fractions: saidOf("1/2=un demi; 1/3=un tiers; 2/3=deux tiers; 1/4=un quart; 3/4=trois quarts"),
  ordinals: [[/(?<![\p{L}\d])(\d{1,3})(?:e|ème|è)(?![\p{L}\d])/gu, "$1ème"]],
  minus: "moins",
  to: " à ",
  number: "numéro",
  address: { dot: "point", at: "arobase", slash: "barre" },
  signs: signsOf(`
    × fois; ÷ divisé par; ± plus ou moins; ≈ environ; ≠ différent de; ≤ inférieur ou égal à
    ≥ supérieur ou égal à; < inférieur à; > supérieur à; ^ puissance; √ racine de; ∞ infini
    § paragraphe; # dièse; ° degrés
  `),
  abbreviations: abbreviated(`
    M.=monsieur; MM.=messieurs; Mme=madame; Mmes=mesdames; Mlle=mademoiselle; Dr=docteur; Dr.=docteur
    Pr=professeur; St=saint; Ste=sainte; etc.=et cetera.; p. ex.=par exemple; c.-à-d.=c'est-à-dire
    av. J.-C.=avant Jésus-Christ; apr. J.-C.=après Jésus-Christ; env.=environ; tél.=téléphone
    bd.=boulevard; av.=avenue; chap.=chapitre
  `),
}
