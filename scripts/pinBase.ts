/**
 * `npx vite-node scripts/pinBase.ts 24.22.0`: moves the Dockerfile's bases to this version of Node, at the digests that
 * their tags have now.
 *
 * Needs `docker buildx` and a way to the registry. Run the tests on that version too (`test/runtimes`); a test says
 * when they differ.
 */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { repinned } from "../kit/processes/dockerfile.ts"
import { root } from "../kit/rules/source.ts"

const digestOf = (tag: string): string =>
  execFileSync(
    "docker",
    ["buildx", "imagetools", "inspect", `docker.io/library/${tag}`, "--format", "{{.Manifest.Digest}}"],
    { encoding: "utf8" }
  ).trim()

const path = join(root, "Dockerfile")
writeFileSync(path, repinned(readFileSync(path, "utf8"), process.argv.at(-1) ?? "", digestOf))
