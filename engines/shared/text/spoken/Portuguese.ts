// What Brazilian Portuguese writes in signs. eSpeak itself reads whole numbers, decimals with a comma, "%", "&", "+", "=", "@", "nº", and ordinals
// written with "º" and "ª". The point of "3.5" it leaves out.
import { abbreviated, counted, moneys, type SpokenForms, saidOf, signsOf } from "./SpokenForms.ts"

export const portuguese: SpokenForms = {
  decimal: ",",
  point: "ponto",
  months: "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro".split(
    " ",
  ),
  date: (day, month, year) => `${day === "1" ? "primeiro" : day} de ${month} de ${year}`,
  time: (hours, minutes) =>
    `${hours === "1" ? "uma hora" : `${hours} horas`}${minutes === "0" ? "" : ` e ${minutes}`}`,
  currencies: moneys(`
    R$=um real=reais=um centavo=centavos; €=um euro=euros=um cêntimo=cêntimos
    US$=um dólar=dólares=um centavo=centavos; $=um dólar=dólares=um centavo=centavos
    £=uma libra=libras=um penny=pence; ¥=um iene=ienes=um sen=sen; ₹=uma rúpia=rúpias=uma paisa=paisas
    ₩=um won=wons=um jeon=jeon
  `),
  scales: { words: "mil|milhão|milhões|bilhão|bilhões|trilhão|trilhões", of: " de " },
  and: " e ",
  units: counted(`
    km/h=um quilômetro por hora=quilômetros por hora; m/s=um metro por segundo=metros por segundo
    km2=um quilômetro quadrado=quilômetros quadrados; m2=um metro quadrado=metros quadrados
    cm2=um centímetro quadrado=centímetros quadrados
    m3=um metro cúbico=metros cúbicos; cm3=um centímetro cúbico=centímetros cúbicos
    km=um quilômetro; m=um metro; cm=um centímetro; mm=um milímetro; ha=um hectare
    kg=um quilo; g=um grama; mg=um miligrama; t=uma tonelada
    l=um litro; L=um litro; ml=um mililitro; cl=um centilitro
    h=uma hora; min=um minuto; s=um segundo; ms=um milissegundo
    Hz=um hertz=hertz; kHz=um quilohertz=quilohertz; MHz=um megahertz=megahertz
    GHz=um gigahertz=gigahertz
    KB=um quilobyte; kB=um quilobyte; MB=um megabyte; GB=um gigabyte; TB=um terabyte
    W=um watt; kW=um quilowatt; kWh=um quilowatt hora=quilowatts hora; V=um volt
    °C=um grau Celsius=graus Celsius; °F=um grau Fahrenheit=graus Fahrenheit; °=um grau
  `),
  fractions: saidOf("1/2=meio; 1/3=um terço; 2/3=dois terços; 1/4=um quarto; 3/4=três quartos"),
  ordinals: [[/(?<![\p{L}\d])(\d{1,3})\.(?=[ºª])/gu, "$1"]],
  minus: "menos",
  to: " a ",
  number: "número",
  address: { dot: "ponto", at: "arroba", slash: "barra" },
  signs: signsOf(`
    × vezes; ÷ dividido por; ± mais ou menos; ≈ aproximadamente; ≠ diferente de; ≤ menor ou igual a
    ≥ maior ou igual a; < menor que; > maior que; ^ elevado a; √ raiz de; ∞ infinito; § parágrafo
    # cerquilha; ° graus
  `),
  abbreviations: abbreviated(`
    Sr.=senhor; Sra.=senhora; Srta.=senhorita; Srs.=senhores; Dr.=doutor; Dra.=doutora; Prof.=professor
    Profa.=professora; Eng.=engenheiro; etc.=etcétera.; p. ex.=por exemplo; pág.=página; págs.=páginas
    tel.=telefone; aprox.=aproximadamente; av.=avenida; ltda.=limitada; a. C.=antes de Cristo
    d. C.=depois de Cristo
  `),
}
