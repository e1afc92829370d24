/**
 * `npx vite-node scripts/containerCheck/main.ts`: does what the Dockerfile says, stage by stage, in clean folders and
 * without a container engine; then starts both doors from what the last stage holds, and prints how large it is.
 *
 * What it shows: that the files copied are enough to build, that the production dependencies are enough to run, and
 * that nothing of this checkout is needed besides. What it cannot show is the base image. Leaves with 1 when a step
 * fails.
 */
import { spawnSync } from "node:child_process"
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { request } from "../../kit/checks/http.ts"
import { confined, dataFolder, end, inner, missing } from "../../kit/processes/confined.ts"
import { Door, until } from "../../kit/processes/Door.ts"
import * as Dockerfile from "../../kit/processes/dockerfile.ts"
import { root } from "../../kit/rules/source.ts"

const work = mkdtempSync(join(tmpdir(), "live-sidecar-image-"))
// The image's user reads what is root's.
chmodSync(work, 0o755)
const stages = Dockerfile.stages(readFileSync(join(root, "Dockerfile"), "utf8"))
const folders = new Map<string, string>()

const sh = (command: string, cwd: string): void => {
  const begun = performance.now()
  // A home of its own, so that no setting of ours helps; the cache of packages may.
  const { status } = spawnSync("sh", ["-c", command], {
    cwd,
    stdio: ["ignore", "inherit", "inherit"],
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], npm_config_update_notifier: "false" }
  })
  if (status !== 0) throw new Error(`${command} ended with ${status}`)
  console.log(`  ${((performance.now() - begun) / 1000).toFixed(1)} s: ${command}`)
}

/** One instruction, with paths of the image below the stage's folder. */
const step = ({ rest, word }: Dockerfile.Instruction, folder: string): void => {
  const app = join(folder, "app")
  if (word === "COPY") {
    const [, from] = /^--from=(\S+) /.exec(rest) ?? []
    const paths = rest.replace(/^--from=\S+ /, "").split(/\s+/)
    const to = paths.pop()!
    for (const path of paths) {
      const target = to.endsWith("/") ? join(app, to, basename(path)) : join(app, to)
      cpSync(from === undefined ? join(root, path) : join(folders.get(from)!, path), target, {
        recursive: true,
        verbatimSymlinks: true
      })
    }
  } else if (word === "RUN" && /^(?:npm|node) /.test(rest)) sh(rest, app)
}

const build = (): string => {
  let folder = ""
  for (const [n, stage] of stages.entries()) {
    const [, base = "", name = String(n)] = /^(\S+)(?: AS (\S+))?$/.exec(Dockerfile.all(stage, "FROM")[0] ?? "") ?? []
    folder = join(work, name)
    console.log(`stage ${name} from ${base}`)
    mkdirSync(join(folder, "app"), { recursive: true })
    if (folders.has(base)) cpSync(folders.get(base)!, folder, { recursive: true })
    folders.set(name, folder)
    for (const instruction of stage) step(instruction, folder)
  }
  return folder
}

/** Starts a door from the image's tree, asks it, stops it. */
const serves = async (app: string, door: string, alive: string): Promise<void> => {
  const outer = mkdtempSync(join(work, "volume-"))
  const folder = missing === undefined ? dataFolder(outer) : outer
  const image = Object.fromEntries(
    Object.entries(Dockerfile.envHere(stages.at(-1)!)).map(([name, value]) => [
      name,
      value.replace(/^\/data\b/, folder)
    ])
  )
  const command = [...(missing === undefined ? confined(folder) : []), process.execPath, join(app, door)]
  const running = await Door.spawn({
    command,
    dataDir: folder,
    env: {
      ...image,
      STORE_ADDR: undefined,
      LISTEN_ADDR: "127.0.0.1:{port}",
      SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
      SVC_SCHEDULER_INGEST_PORT: "{port}"
    }
  })
  try {
    for (const path of [alive, "/"])
      await until(
        `${door} answers ${path}`,
        async () => {
          if (running.exit !== undefined) throw new Error(`${door} ended with ${running.exit.code}: ${running.logs}`)
          return (await request(running.url, { path, keepAlive: false }).catch(() => undefined))?.status === 200
        },
        60_000
      )
    process.kill((missing === undefined ? inner(running.pid) : undefined) ?? running.pid, "SIGTERM")
    const { code } = await running.exited
    if (code !== 0) throw new Error(`${door} ended with ${code}: ${running.logs}`)
    console.log(
      `${door} serves from the image's tree${missing === undefined ? ", unprivileged and read-only," : ""} and stops with 0`
    )
  } finally {
    await end(running)
  }
}

try {
  const app = join(build(), "app")
  for (const unwanted of [
    "typescript",
    "vitest",
    "deno",
    "esbuild",
    "playwright-core",
    "@surrealdb/node",
    "vega-datasets"
  ])
    if (existsSync(join(app, "node_modules", unwanted))) throw new Error(`the image holds ${unwanted}`)
  const bill = JSON.parse(readFileSync(join(app, "sbom.cdx.json"), "utf8")) as {
    readonly components: ReadonlyArray<{ readonly name: string }>
  }
  console.log(`sbom.cdx.json names ${bill.components.length} packages`)
  sh("du -sh node_modules dist && du -s --block-size=1M node_modules/* node_modules/@*/* | sort -rn | head -8", app)
  await serves(app, "dist/ssp.js", "/version")
  await serves(app, "dist/scheduler.js", "/livez")
} finally {
  rmSync(work, { recursive: true, force: true })
}
