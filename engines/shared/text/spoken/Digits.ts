// Decimal digits of all scripts → "0" to "9": eSpeak is silent for digits of scripts other than its language's. Pure.

const foreignDigit = /(?![0-9])\p{Nd}/gu

/** Unicode keeps the ten digits of a script in order. Runs that touch each other are gone with the compatibility normal form. */
const valueOf = (character: string): number => {
  const code = character.codePointAt(0)!
  let value = 0
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value++
  return value
}

export const plainDigits = (text: string): string =>
  text.replace(foreignDigit, (character) => String(valueOf(character)))
