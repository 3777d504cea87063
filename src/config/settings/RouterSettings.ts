// Settings of the router: regions, their health and the places of addresses.
import { integer, nonEmpty, type Setting } from "./Setting.ts"

export const routerSettings = {
  edgeDomain: {
    variable: "EDGEWISE_EDGE_DOMAIN",
    value: "DOMAIN",
    help: "domain of the edges' addresses, https://api.<region>.edge.<domain>; without it the router names only this node",
    allowed: "a domain name, e.g. example.com",
    fallback: "",
    fallbackText: "none",
    parse: (text: string) => (/^[a-z0-9](?:[a-z0-9.-]{0,200}[a-z0-9])?$/.test(text) ? text : undefined),
  },
  regions: {
    variable: "EDGEWISE_REGIONS",
    value: "FILE",
    help: "regions file of the router",
    allowed: "the path of a regions file (JSON)",
    fallback: "",
    fallbackText: "the built-in regions",
    parse: nonEmpty,
  },
  routeTtlSeconds: {
    variable: "EDGEWISE_ROUTE_TTL_SECONDS",
    value: "SECONDS",
    help: "how long a client may keep the router's answer",
    // A guess: clients leave an unhealthy region within a minute.
    fallback: 60,
    ...integer(0, 86_400),
  },
  regionHealthSeconds: {
    variable: "EDGEWISE_REGION_HEALTH_SECONDS",
    value: "SECONDS",
    help: "how often the router probes each region's health and round trip; 0 turns the probes off",
    fallback: 0,
    ...integer(0, 3_600),
  },
  geoipDb: {
    variable: "EDGEWISE_GEOIP_DB",
    value: "FILE",
    help: "MaxMind-format file with the places of IP addresses, for the router",
    allowed: "the path of a .mmdb file",
    fallback: "",
    fallbackText: "none",
    parse: nonEmpty,
  },
} as const satisfies Record<string, Setting<unknown>>
