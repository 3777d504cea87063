// What Spanish writes in signs. eSpeak itself reads whole and decimal numbers, "%", "+", "=", "@", and ordinals written with "º" and "ª".
import { abbreviated, counted, moneys, type SpokenForms, saidOf, signsOf } from "./SpokenForms.ts"

export const spanish: SpokenForms = {
  decimal: ",",
  months: "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split(
    " ",
  ),
  date: (day, month, year) => `${day === "1" ? "primero" : day} de ${month} de ${year}`,
  time: (hours, minutes) => (minutes === "0" ? `${hours} en punto` : `${hours} y ${minutes}`),
  currencies: moneys(`
    R$=un real=reales=un centavo=centavos; €=un euro=euros=un céntimo=céntimos
    US$=un dólar=dólares=un centavo=centavos; $=un dólar=dólares=un centavo=centavos
    £=una libra=libras=un penique=peniques; ¥=un yen=yenes=un sen=sen
    ₹=una rupia=rupias=una paisa=paisas; ₩=un won=wones=un jeon=jeon
  `),
  scales: { words: "mil|millón|millones|billón|billones", of: " de " },
  and: " con ",
  units: counted(`
    km/h=un kilómetro por hora=kilómetros por hora; m/s=un metro por segundo=metros por segundo
    km2=un kilómetro cuadrado=kilómetros cuadrados; m2=un metro cuadrado=metros cuadrados
    cm2=un centímetro cuadrado=centímetros cuadrados
    m3=un metro cúbico=metros cúbicos; cm3=un centímetro cúbico=centímetros cúbicos
    km=un kilómetro; m=un metro; cm=un centímetro; mm=un milímetro; ha=una hectárea
    kg=un kilo; g=un gramo; mg=un miligramo; t=una tonelada
    l=un litro; L=un litro; ml=un mililitro; cl=un centilitro
    h=una hora; min=un minuto; s=un segundo; ms=un milisegundo
    Hz=un hercio; kHz=un kilohercio; MHz=un megahercio; GHz=un gigahercio
    KB=un kilobyte; kB=un kilobyte; MB=un megabyte; GB=un gigabyte; TB=un terabyte
    W=un vatio; kW=un kilovatio; kWh=un kilovatio hora=kilovatios hora; V=un voltio
    °C=un grado Celsius=grados Celsius; °F=un grado Fahrenheit=grados Fahrenheit; °=un grado
  `),
  fractions: saidOf("1/2=un medio; 1/3=un tercio; 2/3=dos tercios; 1/4=un cuarto; 3/4=tres cuartos"),
  ordinals: [[/(?<![\p{L}\d])(\d{1,3})\.(?=[ºª])/gu, "$1"]],
  minus: "menos",
  to: " a ",
  number: "número",
  address: { dot: "punto", at: "arroba", slash: "barra" },
  signs: signsOf(`
    & y; × por; ÷ entre; ± más menos; ≈ aproximadamente; ≠ distinto de; ≤ menor o igual que
    ≥ mayor o igual que; < menor que; > mayor que; ^ elevado a; √ raíz de; ∞ infinito; § sección
    # almohadilla; ° grados
  `),
  abbreviations: abbreviated(`
    Sr.=señor; Sra.=señora; Srta.=señorita; Sres.=señores; Dr.=doctor; Dra.=doctora; D.ª=doña; Dña.=doña
    Prof.=profesor; Ud.=usted; Uds.=ustedes; EE. UU.=Estados Unidos; etc.=etcétera.; p. ej.=por ejemplo
    pág.=página; págs.=páginas; núm.=número; tel.=teléfono; aprox.=aproximadamente; avda.=avenida
    a. C.=antes de Cristo; d. C.=después de Cristo; a. m.=de la mañana; p. m.=de la tarde
  `),
}
