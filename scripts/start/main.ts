/**
 * `npm start`: a local cluster with data that changes, its dashboard's address, its secret, and commands to try.
 *
 * `npm start -- --standalone` is the SSP alone, as `node dist/ssp.js --quickstart` serves it. Exit codes are the
 * service's: 0 after Ctrl-C or SIGTERM, the code of a process that died, 2 for a command line that is not understood.
 */
import { existsSync, readFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { Child, exitCodeOf, root } from "./child.ts"
import { Cluster, type Ready, StartFailed } from "./cluster.ts"
import { views } from "./data.ts"

const usage = `npm start                      a scheduler, two SSPs, a backend for jobs, and data that changes
npm start -- --rate 200        with that many things happening each second (20)
npm start -- --standalone      one SSP on the embedded store under ./data; its settings apply`

const complain = (line: string): void => void process.stderr.write(`${line}\n`)
const say = (line: string): void => void process.stdout.write(`${line}\n`)

const greeting = ({ bearerFile, board, made, secret, ssps, url }: Ready, perSecond: number): string => {
  // A secret that somebody chose is not printed, and no other terminal knows it: the lines name a file that has it.
  const bearer = made ? `-H 'Authorization: Bearer ${secret}'` : `-H '@${bearerFile}'`
  return `
  board        ${board}/   (a live application: open it in two windows; scripts/start/board is its code)
  dashboard    ${url}/
  secret       ${made ? `${secret}   (made up for this run; set SVC_AUTH_SECRET to choose one)` : `the one you set   (for the lines below in ${bearerFile}, for you alone, until Ctrl-C)`}
  cluster      scheduler ${url}, SSPs ${ssps.map((ssp) => `${ssp.url} (process ${ssp.pid})`).join(" and ")}
  data         3,201 films and a week of earthquakes, ${views.length} views, ${perSecond} things happen each second

Try it in another terminal: any query, a view followed for five seconds, meanwhile a film of yours that enters it, and the end of an SSP,
whose views move to the other one, as the dashboard shows; it is started again a few seconds later.

  curl -s ${url}/proxy/query -d '{"query":"SELECT place, mag FROM quake ORDER BY mag DESC LIMIT 3"}'
  curl -sN --max-time 5 ${url}/view/${views[0]!.id}/stream ${bearer} &
  sleep 1; curl -s ${url}/ingest -d '{"table":"film","op":"CREATE","id":"film:mine","record":{"title":"My own","genre":"Drama","rating":9.9,"votes":99999}}'
  kill -9 ${ssps[0]!.pid}

Ctrl-C stops everything and removes its data.
`
}

/** Our parent and its parent: npm starts a shell that starts us. Where there is no /proc, the parent alone. */
const ancestors = (): string => {
  const parent = `/proc/${process.ppid}/stat`
  return `${process.ppid} ${existsSync(parent) ? readFileSync(parent, "utf8").split(") ").at(-1)?.split(" ")[1] : ""}`
}

/** Our parent may be killed without a word; npm is the parent that matters. */
const onOrphaned = (stop: () => void): void => {
  const before = ancestors()
  setInterval(() => {
    if (ancestors() !== before) stop()
  }, 500).unref()
}

/** npm passes on the signal that a terminal has already sent to all of us; that is one signal, not two. */
const sameMs = 500

/** Calls `stop` at the first signal, `kill` at a later one. */
const onStop = (stop: () => void, kill: () => void): void => {
  let first: number | undefined
  const signalled = (): void => {
    const now = performance.now()
    if (first === undefined) stop()
    else if (now - first > sameMs) kill()
    first ??= now
  }
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, signalled)
  if (process.env["npm_lifecycle_event"] === "start")
    onOrphaned(() => {
      if (first === undefined) signalled()
    })
}

const serveCluster = async (perSecond: number): Promise<number> => {
  const cluster = new Cluster({ perSecond, env: process.env, say, complain })
  let asked = false
  const stopped = new Promise<number>((done) =>
    onStop(
      () => {
        asked = true
        void cluster.stop().then(() => done(0))
      },
      () => {
        cluster.kill()
        process.exit(1)
      }
    )
  )
  const running = cluster.start().then((ready) => {
    if (!asked) say(greeting(ready, perSecond))
    return cluster.failure
  })
  // What fails because it was stopped half-way is no failure.
  const failed = running.catch(async (error: unknown) => {
    if (asked) return stopped
    complain(error instanceof StartFailed ? error.message : String(error instanceof Error ? error.stack : error))
    await cluster.stop()
    return error instanceof StartFailed ? error.exitCode : 1
  })
  return Promise.race([stopped, failed])
}

/** The SSP on the terminal as it is, with our environment. */
const serveAlone = async (): Promise<number> => {
  const ssp = new Child("ssp", [`${root}/dist/ssp.js`, "--quickstart"], process.env, root)
  onStop(
    () => void ssp.stop(11_000),
    () => ssp.kill()
  )
  const exit = await ssp.exited
  return exit.code === 0 ? 0 : exitCodeOf(exit)
}

const main = async (): Promise<number> => {
  const read = (): { readonly standalone: boolean; readonly help: boolean; readonly rate: number } => {
    const { values } = parseArgs({
      args: process.argv.slice(2).filter((arg) => arg !== "--"),
      options: {
        standalone: { type: "boolean", default: false },
        rate: { type: "string", default: "20" },
        help: { type: "boolean", short: "h", default: false }
      }
    })
    const rate = Number(values.rate)
    if (!(rate >= 0 && rate <= 10_000))
      throw new Error(`--rate is ${JSON.stringify(values.rate)}; must be a number from 0 to 10000`)
    return { ...values, rate }
  }
  try {
    const { help, rate, standalone } = read()
    if (help) return (say(usage), 0)
    return await (standalone ? serveAlone() : serveCluster(rate))
  } catch (error) {
    complain(`${error instanceof Error ? error.message : String(error)}\n${usage}`)
    return 2
  }
}

void main().then((code) => {
  process.exitCode = code
  process.stdout.write("", () => process.exit(code))
})
