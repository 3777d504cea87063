// The tables of the English front end: months, currencies, units, abbreviations. Data only.
import { counted, moneys } from "./spoken/SpokenForms.ts"

export const months: ReadonlyArray<string> =
  "January February March April May June July August September October November December".split(" ")

/** 1 to 12 for a month's name or its abbreviation; 0 for anything else. */
export const monthOf = (name: string): number =>
  1 + months.findIndex((month) => month.startsWith(name.replace(".", "").slice(0, 3)))

export const currencies = moneys(`
  $=dollar=dollars=cent=cents; £=pound=pounds=penny=pence; €=euro=euros=cent=cents
  ¥=yen=yen=sen=sen; ₹=rupee=rupees=paisa=paise; ₩=won=won=jeon=jeon
`)

/** Units after a number. Single letters that are also words or initials ("a", "i", "A") are omitted. */
export const units = counted(`
  km/h=kilometer per hour=kilometers per hour; m/s=meter per second=meters per second
  km=kilometer; cm=centimeter; mm=millimeter; nm=nanometer; m=meter; mi=mile; ft=foot=feet; yd=yard
  kg=kilogram; mg=milligram; g=gram; lbs=pound; lb=pound; oz=ounce
  mph=mile per hour=miles per hour; kph=kilometer per hour=kilometers per hour
  ml=milliliter; mL=milliliter; L=liter; l=liter
  ms=millisecond; sec=second; secs=second; s=second; min=minute; mins=minute; hr=hour; hrs=hour; h=hour
  Hz=hertz=hertz; kHz=kilohertz=kilohertz; MHz=megahertz=megahertz; GHz=gigahertz=gigahertz
  kB=kilobyte; KB=kilobyte; MB=megabyte; GB=gigabyte; TB=terabyte
  kbps=kilobit per second=kilobits per second; Mbps=megabit per second=megabits per second
  Gbps=gigabit per second=gigabits per second
  W=watt; kW=kilowatt; MW=megawatt; kWh=kilowatt hour=kilowatt hours; V=volt
  mAh=milliamp hour=milliamp hours; px=pixel; dB=decibel; kcal=kilocalorie
  °C=degree Celsius=degrees Celsius; °F=degree Fahrenheit=degrees Fahrenheit; °=degree
`)

/** Patterns in order. "St." before a capital letter is "saint", after a capitalised word "street". */
export const abbreviations: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bMr\b\.?/g, "Mister"],
  [/\bMrs\b\.?/g, "Missis"],
  [/\bMs\b\./g, "Miz"],
  [/\bDrs\b\./g, "Doctors"],
  [/\bDr\b\.?(?= ?[A-Z]|$)/g, "Doctor"],
  [/(?<=[a-z] )Dr\b\./g, "Drive"],
  [/\bDr\./g, "Doctor"],
  [/\bProf\b\./g, "Professor"],
  [/(?<=[A-Za-z]{2} )St\.(?! ?[A-Z][a-z])/g, "Street"],
  [/\bSt\.?(?= [A-Z])/g, "Saint"],
  [/\bJr\b\.?/g, "Junior"],
  [/\bSr\b\./g, "Senior"],
  [/\bRev\./g, "Reverend"],
  [/\bHon\.(?= [A-Z])/g, "Honorable"],
  [/\bCapt\./g, "Captain"],
  [/\bLt\./g, "Lieutenant"],
  [/\bCol\.(?= [A-Z])/g, "Colonel"],
  [/\bGen\.(?= [A-Z])/g, "General"],
  [/\bSgt\./g, "Sergeant"],
  [/\bGov\./g, "Governor"],
  [/\bSen\.(?= [A-Z])/g, "Senator"],
  [/\bMt\.?(?= [A-Z])/g, "Mount"],
  [/\bFt\.(?= [A-Z])/g, "Fort"],
  [/\bAve\b\./g, "Avenue"],
  [/\bRd\b\./g, "Road"],
  [/\bBlvd\b\.?/g, "Boulevard"],
  [/\bInc\b\./g, "Incorporated"],
  [/\bLtd\b\.?/g, "Limited"],
  [/\bCorp\b\./g, "Corporation"],
  [/\bCo\.(?=\s|$)/g, "Company"],
  [/\bdept\b\.?/gi, "department"],
  [/\best\.(?= \d)/gi, "established"],
  [/\bapprox\b\.?/gi, "approximately"],
  [/\bvs\b\.?/gi, "versus"],
  [/\betc\b\.?/gi, "etcetera"],
  [/\be\.g\.,?/gi, "for example,"],
  [/\bi\.e\.,?/gi, "that is,"],
  [/\bcf\./g, "compare"],
  [/\bfigs?\.(?= ?\d)/gi, "figure"],
  [/\bvol\.(?= ?\d)/gi, "volume"],
  [/\bpp?\.(?= ?\d)/g, "page"],
  [/\bPh\.? ?D\b\.?/g, "P H D"],
  [/\bw\/o\b/gi, "without"],
  [/\bw\/(?=\s)/gi, "with"],
]

/** Roman numerals are numbers only after a word that takes a number; "I" alone never is. */
export const romanPattern =
  /\b(Chapter|Part|Volume|Section|Act|Phase|World War|Super Bowl|Type|Class|Appendix|Article) ((?=[IVX])(?:X{0,3})(?:IX|IV|V?I{0,3}))\b/g

export const romanValue = (roman: string): number => {
  const values: Readonly<Record<string, number>> = { I: 1, V: 5, X: 10 }
  let total = 0
  for (let i = 0; i < roman.length; i++) {
    const value = values[roman[i]!]!
    total += value < (values[roman[i + 1] ?? ""] ?? 0) ? -value : value
  }
  return total
}
