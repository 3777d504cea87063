// URLs and e-mail addresses in a text that is spoken. Pure.

/** What is spoken of an address, without its scheme and a slash at its end, and the marks of the sentence behind it. */
export const addressParts = (address: string): { readonly spoken: string; readonly tail: string } => {
  const tail = /[.,;:!?)]+$/.exec(address)?.[0] ?? ""
  const whole = address.slice(0, address.length - tail.length)
  return { spoken: whole.replace(/^https?:\/\//i, "").replace(/\/$/, ""), tail }
}
