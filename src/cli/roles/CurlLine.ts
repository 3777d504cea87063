// The last lines that `serve` prints: the playground's link, the key, and a curl command that works when pasted, also with
// TLS. Pure.
import type { NodeCertificate } from "../shared/NodeCertificate.ts"

interface CurlTarget {
  /** Base address of the edge listener. */
  readonly base: string
  /** Undefined if the operator must make a key first; the command then has the shell variable `$KEY`. */
  readonly key: string | undefined
  readonly model: string
  readonly certificate: Pick<NodeCertificate, "certificate" | "files" | "selfSigned"> | undefined
}

/** Addresses that mean all interfaces, and the one to call instead. */
const everyInterface: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "[::]": "[::1]" }

/** In single quotes for a shell if necessary. */
export const quoted = (path: string): string =>
  /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`

/** The address and options with which curl accepts the certificate. */
const reached = ({
  base,
  certificate: served,
}: CurlTarget): { readonly url: string; readonly options: string } => {
  const { hostname, port, protocol } = new URL(base)
  const address = everyInterface[hostname] ?? hostname
  const url = `${protocol}//${address}:${port}`
  if (served === undefined) return { url, options: "" }
  if (served.selfSigned) return { url, options: `--cacert ${quoted(served.files.cert)} ` }
  const { covers, names } = served.certificate
  const name = names.find((each) => /^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/.test(each) && !/^[0-9.]+$/.test(each))
  if (name === undefined || covers(address.replace(/[[\]]/g, ""))) return { url, options: "" }
  // The development key is refused for requests whose `Host` is another machine.
  return {
    url: `https://${name}:${port}`,
    options: `--resolve ${name}:${port}:${address} -H 'Host: localhost' `,
  }
}

/** The playground takes the key out of its address. The part behind `#` is not sent to the node. */
export const playgroundLink = (address: string, key: string): string =>
  `${address}/#key=${encodeURIComponent(key)}`

/** The line above the curl command. */
export const readyLine = (target: CurlTarget): string => {
  const { url } = reached(target)
  const { key } = target
  const playground = `ready: playground ${key === undefined ? `${url}/` : playgroundLink(url, key)}`
  return `${playground}, key ${key ?? "$KEY"}, and one request to try it:`
}

/** Temperature 0: the first answer that a new operator sees should be the model's best one. */
export const curlLine = (target: CurlTarget): string => {
  const { options, url } = reached(target)
  const authorization =
    target.key === undefined ? '"Authorization: Bearer $KEY"' : `'Authorization: Bearer ${target.key}'`
  return (
    `curl ${options}${url}/v1/chat/completions -H ${authorization} ` +
    `-H 'Content-Type: application/json' ` +
    `-d '{"model":"${target.model}","temperature":0,` +
    `"messages":[{"role":"user","content":"What is the capital of Italy?"}]}'`
  )
}
