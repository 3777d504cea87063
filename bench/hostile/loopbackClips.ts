// Loaded into a node with `--import` by the attacks: lets the node fetch reference clips from 127.0.0.1, where the attacker's web
// server is. Every other rule of such fetches stays in force.
import { registerHooks } from "node:module"

const rule = "export const isPublicAddress = (address: string): boolean => {"

registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context)
    if (!url.endsWith("/src/domain/PublicAddress.ts")) return loaded
    const source = String(loaded.source)
    if (!source.includes(rule)) throw new Error("PublicAddress.ts no longer has isPublicAddress as expected")
    return { ...loaded, source: source.replace(rule, `${rule} if (address === "127.0.0.1") return true;`) }
  },
})
