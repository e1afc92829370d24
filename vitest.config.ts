/**
 * How the tests run: which files, how many at once, how long one may take.
 *
 * Why so: the machines this runs on have two cores, and many tests wait for servers of their own, so four workers: three
 * leave too much of the time unused (407 s for 363), and five load what they share once more (about 390 s). Never fewer:
 * the runner ends a worker that is idle for a moment, and loses the file that it was given next. Time-outs are far above
 * what anything needs, because no test may depend on the speed of the machine. Files named `*.long.test.ts` start a
 * dozen processes for one promise and belong to `npm run test:long`; those named `*.campaign.test.ts` run for hours and
 * belong to `npm run campaign`, which has all.
 *
 * `npm test` and `npm run campaign` build first, and their tests load the modules that were built (`SVC_BUILT=1`): Node
 * reads them by itself, where the runner would rewrite each import of a source, and the same tests take an eighth less
 * CPU. `npx vitest run` of a file takes the sources as they are.
 */
import { defineConfig } from "vitest/config"
import { Interleaved } from "./kit/rules/Interleaved.ts"
import { TallyReporter } from "./kit/rules/TallyReporter.ts"

/** Where a module of the sources is loaded from, by its name in a match. */
const source = `${import.meta.dirname}/${process.env["SVC_BUILT"] === "1" ? "dist/$1.js" : "src/$1.ts"}`
/** Built modules, but for the one that has `solid-js`: the runner gives it another build of that, below. */
const native = new RegExp(`^${import.meta.dirname.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}/dist/(?!client/solid\\.js)`)

const campaign = process.env["SVC_CAMPAIGN"] === "1"
const long = campaign || process.env["SVC_LONG"] === "1"
/** What takes a dozen processes for one promise, and what runs for hours. */
const others = [...(long ? [] : ["test/**/*.long.test.ts"]), ...(campaign ? [] : ["test/**/*.campaign.test.ts"])]

export default defineConfig({
  // The examples name the package as others do.
  resolve: {
    alias: [
      { find: /^surreal-live-sidecar\/(.*)$/, replacement: source },
      { find: /^(?:\.\.\/)+src\/(.*)\.ts$/, replacement: source },
      // In Node the package gives its build for servers, in which no signal ever changes.
      { find: /^solid-js$/, replacement: `${import.meta.dirname}/node_modules/solid-js/dist/solid.js` }
    ]
  },
  test: {
    // CommonJS packages look as they do in Node: the default export is `module.exports`.
    deps: { interopDefault: false },
    server: { deps: { external: [native] } },
    include: ["test/**/*.test.ts"],
    setupFiles: ["kit/rules/setup.ts"],
    exclude: ["**/node_modules/**", ...others],
    environment: "node",
    pool: "forks",
    // Files share a worker's modules: loading the libraries once per file was a quarter of the whole run. No module of
    // ours keeps state, and tests that share a node say so.
    poolOptions: { forks: { isolate: false } },
    sequence: { sequencer: Interleaved },
    maxWorkers: 4,
    minWorkers: 4,
    testTimeout: campaign ? 1_800_000 : 120_000,
    hookTimeout: 120_000,
    // Campaigns print what they measured.
    silent: campaign ? false : "passed-only",
    reporters: ["default", new TallyReporter()]
  }
})
