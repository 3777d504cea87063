// The certificates that the command line trusts over https: those that Node.js trusts (including NODE_EXTRA_CA_CERTS),
// and the node's own, if its settings or its data directory are available.
import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import type { RequestOptions } from "node:https"
import { checkServerIdentity, getCACertificates } from "node:tls"
import type { Config } from "#config/Settings.ts"
import { selfSignedFiles } from "#store/signing/SelfSigned.ts"
import { tlsFiles } from "./NodeCertificate.ts"

const read = (path: string): { readonly pem: string; readonly fingerprint: string } | undefined => {
  try {
    const pem = readFileSync(path, "latin1")
    return { pem, fingerprint: new X509Certificate(pem).fingerprint256 }
  } catch {
    // Not on this machine, or not readable by this user: the node is then trusted like any other server.
    return undefined
  }
}

export const trustOptions = (config: Config): RequestOptions => {
  const own = read(tlsFiles(config)?.cert ?? selfSignedFiles(config.dataDir).cert)
  if (own === undefined) return {}
  return {
    ca: [...getCACertificates("default"), own.pem],
    // A certificate of an unknown authority is trusted itself.
    allowPartialTrustChain: true,
    // The node is called by its address, and its certificate may be for a name only. The fingerprint shows that it is
    // the same certificate.
    checkServerIdentity: (host, peer) =>
      peer.fingerprint256 === own.fingerprint ? undefined : checkServerIdentity(host, peer),
  }
}
