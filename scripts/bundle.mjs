/**
 * Bundles the programs: `dist/ssp.js`, `dist/scheduler.js` and `dist/jobs.js` are one line each that loads
 * `dist/bundle`.
 *
 * Finding and reading some 900 small modules was more than half of a start, which is time without an SSP after each
 * crash. Only what is ours and Effect go in; every other package stays where it is, drivers with native code first. The
 * modules beside remain as they are, for those who compose their own. Without the compiler the programs work too, which is
 * what `npm start` makes use of.
 */
// @ts-check

import { createHash } from "node:crypto"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build, transform } from "esbuild"

const root = fileURLToPath(new URL("..", import.meta.url))
const doors = ["ssp", "scheduler", "jobs"]
// fast-check comes with Effect's Schema.
const inside = /^(?:effect|@effect\/[^/]+|fast-check|hash-wasm|pure-rand)(?:\/|$)/

/** @param {string} name */
const door = (name) => `#!/usr/bin/env node\nimport "./bundle/${name}.js"\n`

/** Of all that goes into the bundle: our sources, the versions of the packages, and how it is made. */
const digest = () => {
  const hash = createHash("sha256")
  const sources = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
  for (const file of [...sources.sort(), join(root, "package-lock.json"), fileURLToPath(import.meta.url)]) {
    const text = readFileSync(file)
    hash.update(`${file.slice(root.length)} ${text.length}\n`).update(text)
  }
  return hash.digest("hex")
}

const stamp = join(root, "dist/bundle/sources.sha256")

/** @param {string} file */
const contentOf = (file) => (existsSync(file) ? readFileSync(file, "utf8") : "")

/** Whether `dist` has what the doors need, made from the sources as they are now. */
const isBuilt = () =>
  contentOf(stamp) === digest() && doors.every((name) => contentOf(join(root, `dist/${name}.js`)) === door(name))

/**
 * Removes modules whose source is gone, which the compiler leaves, and takes the comments out of the others: those who
 * use a module read its types, where they stay, and a tenth of the package was comments.
 */
const tidyModules = async () => {
  for (const entry of readdirSync(join(root, "dist"), { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath ?? entry.path, entry.name)
    const [, module, kind] = /^(.*?)\.(js|d\.ts)(?:\.map)?$/.exec(file.slice(join(root, "dist").length + 1)) ?? []
    if (!entry.isFile() || module === undefined || /^(?:bundle|dashboard)\//.test(module)) continue
    if (kind === "js" && doors.includes(module)) continue
    if (!existsSync(join(root, "src", `${module}.ts`)) || file.endsWith(".map")) rmSync(file)
    else if (kind === "js") {
      const text = readFileSync(file, "utf8")
      const { code } = await transform(text, { target: "node20", legalComments: "none" })
      if (code !== text) writeFileSync(file, code)
    }
  }
}

/** Makes the doors, what they load, and the dashboard they serve. */
const bundle = async () => {
  const sources = digest()
  rmSync(join(root, "dist/bundle"), { recursive: true, force: true })
  await build({
    // All in one folder one below `dist`, as the modules are that look for files by where they are themselves.
    absWorkingDir: root,
    entryPoints: [
      ...doors.map((name) => ({ in: `src/programs/${name}/main.ts`, out: name })),
      { in: "src/host/process/watchdogThread.ts", out: "watchdogThread" }
    ],
    // All its functions in one module are 240 KB, the only one that is used in a file of its own 21.
    alias: { "hash-wasm": "hash-wasm/dist/blake3.umd.min.js" },
    outdir: "dist/bundle",
    chunkNames: "chunk-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    // A fifth less to pack; the limit keeps the line short that Node prints of an error that nothing catches.
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 160,
    logLevel: "warning",
    plugins: [
      {
        // The page of the API reference is 2 MB of text, a quarter of the package to download. It is in the installed
        // @effect/platform anyway and is read from there; the exact version is pinned.
        name: "reference page",
        setup: ({ onLoad }) =>
          onLoad({ filter: /platform\/dist\/esm\/internal\/httpApiSwagger\.js$/ }, () => ({
            contents: [
              'import { createRequire } from "node:module"',
              "const require = createRequire(import.meta.url)",
              'const manifest = require.resolve("@effect/platform/package.json")',
              'const page = manifest.replace(/package\\.json$/, "dist/cjs/internal/httpApiSwagger.js")',
              "export const { css, javascript } = require(page)"
            ].join("\n")
          }))
      },
      {
        // The server's module takes the client of its test layer from undici, of which a start is a fifth; a node that
        // calls others loads it when it does.
        name: "test layer",
        setup: ({ onLoad }) =>
          onLoad({ filter: /platform-node\/dist\/esm\/internal\/httpServer\.js$/ }, ({ path }) => {
            const text = readFileSync(path, "utf8")
            const contents = text
              .replace(/^import \* as NodeHttpClient from .*$/m, "")
              .replace(/^export const layerTest = [^;]*;$/ms, "")
            if (contents.includes("NodeHttpClient"))
              throw new Error(`${path} has changed: what does it need undici for?`)
            return { contents }
          })
      },
      {
        // Nothing of ours imports a package for what loading it does, so one of which nothing is used is not loaded: a
        // start costs about a tenth less than with `ws` and `yaml`, which few starts need.
        name: "packages",
        setup: ({ onResolve }) =>
          onResolve({ filter: /^[^./]/ }, ({ kind, path }) =>
            kind === "entry-point" || inside.test(path) ? undefined : { path, external: true, sideEffects: false }
          )
      }
    ]
  })
  mkdirSync(join(root, "dist"), { recursive: true })
  for (const name of doors) writeFileSync(join(root, `dist/${name}.js`), door(name))
  await tidyModules()
  rmSync(join(root, "dist/dashboard"), { recursive: true, force: true })
  cpSync(join(root, "src/dashboard"), join(root, "dist/dashboard"), { recursive: true })
  // Last, so that a build that was cut off is made again.
  writeFileSync(stamp, sources)
}

const begun = performance.now()
const ask = process.argv.includes("--if-changed")
if (ask && isBuilt()) console.log("built before, and no source has changed since")
else {
  if (ask) console.log("building the two servers and the dashboard ...")
  await bundle()
  if (ask)
    console.log(
      `built in ${((performance.now() - begun) / 1000).toFixed(1)} s, without the type checker, which is for npm run build`
    )
}
