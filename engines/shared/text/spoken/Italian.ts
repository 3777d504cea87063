// What Italian writes in signs. eSpeak itself reads whole and decimal numbers, "10:30", "%", "+", "=", "@", and ordinals written with "º" and "ª".
import { abbreviated, counted, moneys, type SpokenForms, saidOf, signsOf } from "./SpokenForms.ts"

export const italian: SpokenForms = {
  decimal: ",",
  months:
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre".split(
      " ",
    ),
  date: (day, month, year) => `${day === "1" ? "primo" : day} ${month} ${year}`,
  currencies: moneys(`
    R$=un real=real=un centavo=centavos; €=un euro=euro=un centesimo=centesimi
    US$=un dollaro=dollari=un centesimo=centesimi; $=un dollaro=dollari=un centesimo=centesimi
    £=una sterlina=sterline=un penny=pence; ¥=uno yen=yen=un sen=sen; ₹=una rupia=rupie=una paisa=paise
    ₩=un won=won=un jeon=jeon
  `),
  scales: { words: "mila|milione|milioni|miliardo|miliardi", of: " di " },
  and: " e ",
  units: counted(`
    km/h=un chilometro orario=chilometri orari; m/s=un metro al secondo=metri al secondo
    km2=un chilometro quadrato=chilometri quadrati; m2=un metro quadrato=metri quadrati
    mq=un metro quadrato=metri quadrati; cm2=un centimetro quadrato=centimetri quadrati
    m3=un metro cubo=metri cubi; cm3=un centimetro cubo=centimetri cubi
    km=un chilometro=chilometri; m=un metro=metri; cm=un centimetro=centimetri
    mm=un millimetro=millimetri; ha=un ettaro=ettari
    kg=un chilo=chili; g=un grammo=grammi; mg=un milligrammo=milligrammi; t=una tonnellata=tonnellate
    l=un litro=litri; L=un litro=litri; ml=un millilitro=millilitri; cl=un centilitro=centilitri
    h=un'ora=ore; min=un minuto=minuti; s=un secondo=secondi; ms=un millisecondo=millisecondi
    Hz=un hertz=hertz; kHz=un kilohertz=kilohertz; MHz=un megahertz=megahertz
    GHz=un gigahertz=gigahertz
    KB=un kilobyte=kilobyte; kB=un kilobyte=kilobyte; MB=un megabyte=megabyte; GB=un gigabyte=gigabyte
    TB=un terabyte=terabyte
    W=un watt=watt; kW=un chilowatt=chilowatt; kWh=un chilowattora=chilowattora; V=un volt=volt
    °C=un grado Celsius=gradi Celsius; °F=un grado Fahrenheit=gradi Fahrenheit; °=un grado=gradi
  `),
  fractions: saidOf("1/2=un mezzo; 1/3=un terzo; 2/3=due terzi; 1/4=un quarto; 3/4=tre quarti"),
  ordinals: [[/(?<![\p{L}\d])(\d{1,3})\.(?=[ºª])/gu, "$1"]],
  minus: "meno",
  to: " a ",
  number: "numero",
  address: { dot: "punto", at: "chiocciola", slash: "barra" },
  signs: signsOf(`
    & e; × per; ÷ diviso; ± più o meno; ≈ circa; ≠ diverso da; ≤ minore o uguale a
    ≥ maggiore o uguale a; < minore di; > maggiore di; ^ elevato a; √ radice di; ∞ infinito; § paragrafo
    # cancelletto; ° gradi
  `),
  abbreviations: abbreviated(`
    Sig.=signor; Sig.ra=signora; Sig.na=signorina; Sigg.=signori; Dott.=dottor; Dott.ssa=dottoressa
    Dr.=dottor; Prof.=professor; Prof.ssa=professoressa; Ing.=ingegner; Avv.=avvocato; ecc.=eccetera.
    p. es.=per esempio; pag.=pagina; pagg.=pagine; tel.=telefono; ca.=circa; a. C.=avanti Cristo
    d. C.=dopo Cristo
  `),
}
