// The image from which the Dockerfile starts, made on this machine: Debian's `debootstrap` from the mirror that apt uses,
// without the files that the slim image of Docker Hub leaves out either.
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** The public mirror, for a machine whose apt reads none of Debian. */
const publicMirror = "http://deb.debian.org/debian"

/** Addresses from which apt on this machine takes packages. */
const sites = (): ReadonlyArray<string> => {
  try {
    const text = execFileSync("apt-get", ["indextargets", "--format", "$(SITE)", "Created-By: Packages"], {
      encoding: "utf8",
    })
    return [...new Set(text.trim().split("\n"))]
  } catch {
    return []
  }
}

/** Debian's list for its slim image. Texts of licences stay: dpkg includes them again. */
const leftOut = ["doc", "man", "groff", "info", "lintian", "linda", "locale"]
const dpkgRules = [
  ...leftOut.map((name) => `path-exclude /usr/share/${name}/*`),
  "path-include /usr/share/doc/*/copyright",
  "",
].join("\n")

const removeLeftOut = (root: string): void => {
  for (const name of leftOut) {
    const folder = join(root, "usr/share", name)
    if (!existsSync(folder)) continue
    execFileSync("find", [folder, "-type", "f", "!", "-name", "copyright", "-delete"])
  }
  for (const name of ["var/cache/apt", "var/lib/apt/lists", "var/log"]) {
    rmSync(join(root, name), { recursive: true, force: true })
    mkdirSync(join(root, name))
  }
}

/** Where an operator of a Debian machine puts authorities that it trusts besides Debian's, e.g. that of a proxy. */
const ownAuthorities = "/usr/local/share/ca-certificates"

/**
 * Takes about a minute. Needs root. The system trusts what this machine trusts.
 * @param suite of Debian, e.g. `trixie`
 * @param root a folder that does not exist yet
 */
export const makeDebian = (suite: string, root: string): void => {
  const found = sites()
  const mirror = found.find((site) => /\/debian\/?$/.test(site)) ?? publicMirror
  const security = found.find((site) => /\/debian-security\/?$/.test(site)) ?? `${publicMirror}-security`
  execFileSync("debootstrap", ["--variant=minbase", suite, root, mirror], { stdio: "pipe" })
  writeFileSync(
    join(root, "etc/apt/sources.list"),
    `deb ${mirror} ${suite} main\ndeb ${security} ${suite}-security main\n`,
  )
  writeFileSync(join(root, "etc/dpkg/dpkg.cfg.d/docker"), dpkgRules)
  if (existsSync(ownAuthorities)) cpSync(ownAuthorities, join(root, ownAuthorities), { recursive: true })
  removeLeftOut(root)
}
