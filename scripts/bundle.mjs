/**
 * Bundles what the doors load behind them: `dist/ssp.js`, `dist/scheduler.js` and `dist/jobs.js` become one line each that loads `dist/bundle`.
 *
 * Finding and reading some 900 small modules was more than half of a start, which is time without an SSP after each crash. Only what is ours and Effect
 * go in; every other package stays where it is, drivers with native code first. The modules beside remain as they are, for those who compose their own.
 * Without this step the doors work as the compiler wrote them.
 */
// @ts-check
import { build } from "esbuild"
import { rmSync, writeFileSync } from "node:fs"

const doors = ["ssp", "scheduler", "jobs"]
// fast-check comes with Effect's Schema.
const inside = /^(?:effect|@effect\/[^/]+|fast-check|pure-rand)(?:\/|$)/

rmSync("dist/bundle", { recursive: true, force: true })
await build({
  // All in one folder one below `dist`, as the modules are that look for files by where they are themselves.
  entryPoints: doors.map((name) => `src/${name}.ts`), outdir: "dist/bundle", chunkNames: "chunk-[hash]",
  bundle: true, splitting: true, format: "esm", platform: "node", target: "node20", logLevel: "warning",
  plugins: [{
    name: "packages",
    setup: ({ onResolve }) => onResolve({ filter: /^[^./]/ }, ({ kind, path }) => (kind === "entry-point" || inside.test(path) ? undefined : { path, external: true }))
  }]
})
for (const name of doors) writeFileSync(`dist/${name}.js`, `#!/usr/bin/env node\nimport "./bundle/${name}.js"\n`)
