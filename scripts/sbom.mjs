/**
 * `node scripts/sbom.mjs [folder]`: the bill of materials of what is installed there, as CycloneDX on standard output;
 * the image's build runs it.
 *
 * `npm sbom` reads the lock, and only what is on disk as well is kept: with `--omit=dev` alone npm leaves out packages
 * that a development dependency has a use for too (`effect`; npm 11.19), and a package that the build has removed would
 * be named. Ends with 1 where a package is on disk that the lock does not have.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"

const folder = resolve(process.argv[2] ?? ".")

/** `name@version` of every package below a folder of packages. */
const installed = (modules) =>
  !existsSync(modules)
    ? []
    : readdirSync(modules)
        .filter((name) => !name.startsWith("."))
        .flatMap((name) => {
          const at = join(modules, name)
          if (name.startsWith("@")) return installed(at)
          const manifest = join(at, "package.json")
          if (!existsSync(manifest)) return []
          const { name: called, version } = JSON.parse(readFileSync(manifest, "utf8"))
          return [`${called}@${version}`, ...installed(join(at, "node_modules"))]
        })

const { error, status, stderr, stdout } = spawnSync(
  "npm",
  ["sbom", "--package-lock-only", "--sbom-format=cyclonedx", "--sbom-type=application"],
  { cwd: folder, encoding: "utf8", maxBuffer: 256 * 1024 * 1024 }
)
if (status !== 0) throw new Error(`npm sbom ended with ${status}: ${error?.message ?? stderr}`)
const bill = JSON.parse(stdout)
const there = new Set(installed(join(folder, "node_modules")))
const key = ({ name, version }) => `${name}@${version}`
const components = bill.components.filter((component) => there.has(key(component)))
const listed = new Set(components.map(key))
const unknown = [...there].filter((each) => !listed.has(each))
if (unknown.length > 0) throw new Error(`installed and not in package-lock.json: ${unknown.join(", ")}`)
const { name } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
const refs = new Set([bill.metadata.component["bom-ref"], ...components.map((component) => component["bom-ref"])])
const dependencies = bill.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map((entry) => ({ ...entry, dependsOn: entry.dependsOn.filter((ref) => refs.has(ref)) }))
console.log(
  JSON.stringify(
    {
      ...bill,
      metadata: { ...bill.metadata, component: { ...bill.metadata.component, name } },
      components,
      dependencies
    },
    undefined,
    1
  )
)
