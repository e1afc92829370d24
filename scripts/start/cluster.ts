/**
 * A whole cluster on this machine, for a first look: scheduler, two SSPs, a backend for jobs, data, views, and a feed.
 *
 * The doors are those of production, told by environment what to do, in a folder that is new for each run and removed
 * after it; nothing of the caller's settings reaches them but what is listed here, so that no other store is touched.
 * All listen on loopback only.
 */
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import * as Backend from "./backend.ts"
import { Board } from "./board/server.ts"
import { Child, type Exit, exitCodeOf, root } from "./child.ts"
import { views, World } from "./data.ts"
import * as Feed from "./feed.ts"
import { freePorts, isFree } from "./ports.ts"

/** What of our environment the doors are told: where programs are, how to trace, how much to log. */
const inherited = /^(?:PATH|HOME|TMPDIR|LANG|TZ|NODE_\w+|OTEL_\w+|SVC_LOG_LEVEL)$/

/** Where we listen when nobody says otherwise and the port is free. */
const wanted = { scheduler: 9667, ssps: [8667, 8668], board: 9668 } as const

/** Why the cluster cannot be, in words for the user. */
export class StartFailed extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Systems give the ports above these to connections. */
const others = { first: 10_000, count: 20_000 }

/**
 * Ports of the cluster: the usual ones as far as they are free, free ones for `0`, and a chosen one as it is, so that
 * its door says what is wrong with it.
 */
const portsFor = async (
  chosen: string
): Promise<{ readonly scheduler: string; readonly ssps: ReadonlyArray<number>; readonly board: number }> => {
  const free = freePorts(others.first, others.count, Math.floor(Math.random() * others.count))
  const near = async (port: number): Promise<number> => (chosen !== "0" && (await isFree(port)) ? port : free())
  const ssps: Array<number> = []
  for (const port of wanted.ssps) ssps.push(await near(port))
  const scheduler = chosen === "" || chosen === "0" ? String(await near(wanted.scheduler)) : chosen
  return { scheduler, ssps, board: await near(wanted.board) }
}

export interface Options {
  /** Things that happen each second. */
  readonly perSecond: number
  readonly env: NodeJS.ProcessEnv
  readonly say: (line: string) => void
  readonly complain: (line: string) => void
}

export interface Ready {
  readonly url: string
  /** Address of the live application. */
  readonly board: string
  readonly ssps: ReadonlyArray<{ readonly url: string; readonly pid: number | undefined }>
  readonly secret: string
  /** The secret is of this run. */
  readonly made: boolean
  /** File with the header that carries the secret, as curl reads it, for this user alone and gone with the cluster. */
  readonly bearerFile: string
}

/** An SSP and what it takes to start it again. */
interface Member {
  readonly id: string
  readonly url: string
  child: Child
  /** Ends in a row without having been ready in between. */
  failures: number
}

/** Time an SSP that has died stays away: long enough to see its views on the other one. */
const awayMs = 8000
/** Silence after which the scheduler gives an SSP up: shorter than in production, because somebody is watching. */
const silenceMs = 4000
/** An SSP that ends this often without getting ready will not get ready. */
const mostFailures = 3

/** What somebody at a terminal has to see of a door's log line; undefined: nothing. */
const trouble = (line: string): string | undefined => {
  if (!line.startsWith("{")) return line.trim() === "" ? undefined : line
  const [, level] = /"level":"(warn|error|fatal)"/.exec(line) ?? []
  const [, message = ""] = /"message":("(?:[^"\\]|\\.)*")/.exec(line) ?? []
  return level === undefined ? undefined : `${level}: ${message === "" ? line : String(JSON.parse(message))}`
}

const howOf = ({ code, signal }: Exit): string => (signal === null ? `with code ${code}` : `by ${signal}`)

const failureOf = (child: Child, exit: Exit): StartFailed =>
  new StartFailed(
    `${child.name} (process ${child.pid}) ended ${howOf(exit)}; it said last:\n${child.lastLines
      .slice(-10)
      .map((line) => `  ${line}`)
      .join("\n")}`,
    exitCodeOf(exit)
  )

export class Cluster {
  readonly #options: Options
  readonly #folder = mkdtempSync(join(tmpdir(), "live-sidecar-start-"))
  #backend: Backend.Backend | undefined
  #board: Board | undefined
  #scheduler: Child | undefined
  readonly #ssps: Array<Member> = []
  #feed: Feed.Feed | undefined
  /** Everything has been there once. */
  #up = false
  #stopping: Promise<void> | undefined
  #failed: (error: StartFailed) => void = () => {}
  /**
   * Rejects when a process ends that nobody stopped and that is not started again: anything before all are up, the
   * scheduler, an SSP that does not get ready.
   */
  readonly failure: Promise<never>

  constructor(options: Options) {
    this.#options = options
    this.failure = new Promise<never>((_, failed) => {
      this.#failed = failed
    })
    this.failure.catch(() => {})
  }

  /** Everything up, filled, with its views, and changing. */
  async start(): Promise<Ready> {
    const { complain, env, perSecond, say } = this.#options
    const made = (env["SVC_AUTH_SECRET"] ?? "") === ""
    const secret = made ? randomBytes(18).toString("base64url") : env["SVC_AUTH_SECRET"]!
    const ports = await portsFor(env["SVC_SCHEDULER_INGEST_PORT"] ?? "")
    const url = `http://127.0.0.1:${ports.scheduler}`
    const token = randomBytes(18).toString("base64url")
    this.#backend = await Backend.start(token)
    this.#board = await Board.listen(ports.board)
    writeFileSync(
      join(this.#folder, "svc.yml"),
      `job_tables:\n  alert:\n    name: alerts\n    base_url: ${this.#backend.url}\n    auth_token: ${token}\n`,
      { mode: 0o600 }
    )
    const bearerFile = join(this.#folder, "bearer")
    writeFileSync(bearerFile, `authorization: Bearer ${secret}\n`, { mode: 0o600 })
    say("starting a scheduler and two SSPs ...")
    this.#scheduler = this.#spawn(
      "scheduler",
      "dist/scheduler.js",
      {
        SVC_AUTH_SECRET: secret,
        SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
        SVC_SCHEDULER_INGEST_PORT: ports.scheduler,
        SVC_BROWSER_ORIGINS: this.#board.origins.join(),
        SCHEDULER_ID: "scheduler",
        SVC_SCHEDULER_REPLICA_DB_PATH: join(this.#folder, "replica"),
        SVC_SCHEDULER_WAL_PATH: join(this.#folder, "event_wal.log"),
        SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "200",
        SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: String(silenceMs),
        SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "500"
      },
      (exit, child) => this.#failed(failureOf(child, exit))
    )
    await this.#until(async () => (await fetch(`${url}/readyz`)).ok)
    for (const [n, port] of ports.ssps.entries()) this.#join(`ssp-${n + 1}`, port, url, secret)
    const world = new World(() => new Date(), Math.random)
    const filling = world.filling()
    say(`loading ${filling.length.toLocaleString("en")} records ...`)
    await Feed.fill(url, filling)
    say("waiting for both SSPs to have them ...")
    await this.#until(
      async () =>
        ((await (await fetch(`${url}/metrics`)).json()) as { readonly scheduler: { readonly ready_ssps: number } })
          .scheduler.ready_ssps === ports.ssps.length
    )
    say(`registering ${views.length} views ...`)
    for (const view of views) await register(url, view)
    await this.#board.open({ url, secret })
    this.#up = true
    this.#feed = Feed.run(url, world, perSecond, complain)
    const board = this.#board.url
    return {
      url,
      board,
      ssps: this.#ssps.map((ssp) => ({ url: ssp.url, pid: ssp.child.pid })),
      secret,
      made,
      bearerFile
    }
  }

  /** Ends everything, SSPs before the scheduler they sign off at; may be called at any time, and again. */
  stop(): Promise<void> {
    return (this.#stopping ??= (async () => {
      await this.#feed?.stop()
      await Promise.all(this.#ssps.map(({ child }) => child.stop(8000)))
      await this.#scheduler?.stop(8000)
      await this.#backend?.close()
      await this.#board?.close()
      rmSync(this.#folder, { recursive: true, force: true })
    })())
  }

  /** Ends everything at once. */
  kill(): void {
    for (const child of [this.#scheduler, ...this.#ssps.map(({ child }) => child)]) child?.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #spawn(
    name: string,
    script: string,
    settings: { readonly [name: string]: string },
    onDeath: (exit: Exit, child: Child) => void
  ): Child {
    const kept = Object.fromEntries(Object.entries(this.#options.env).filter(([key]) => inherited.test(key)))
    const child = new Child(
      name,
      [`${root}/${script}`],
      { ...kept, SVC_LOG_FORMAT: "json", SVC_CONFIG_PATH: join(this.#folder, "svc.yml"), ...settings },
      this.#folder,
      (line) => {
        const text = this.#stopping === undefined ? trouble(line) : undefined
        if (text !== undefined) this.#options.complain(`[${name}] ${text}`)
      }
    )
    void child.exited.then((exit) => {
      if (this.#stopping === undefined) onDeath(exit, child)
    })
    return child
  }

  /** Starts an SSP, and again whenever it dies once the cluster is up. */
  #join(id: string, port: number, scheduler: string, secret: string): void {
    const spawn = (): Child =>
      this.#spawn(
        id,
        "dist/ssp.js",
        {
          SVC_AUTH_SECRET: secret,
          LISTEN_ADDR: `127.0.0.1:${port}`,
          SCHEDULER_URL: scheduler,
          SSP_ID: id,
          HEARTBEAT_INTERVAL_MS: "1000",
          SVC_DATA_DIR: join(this.#folder, id),
          SVC_JOB_RETRY_BASE_MS: "500"
        },
        (exit, child) => {
          if (!this.#up || member.failures === mostFailures) this.#failed(failureOf(child, exit))
          else void this.#restart(member, exit, spawn)
        }
      )
    const member: Member = { id, url: `http://127.0.0.1:${port}`, child: spawn(), failures: 0 }
    this.#ssps.push(member)
  }

  /** What a supervisor does in production, slowly and in words. */
  async #restart(member: Member, exit: Exit, spawn: () => Child): Promise<void> {
    const { complain } = this.#options
    member.failures++
    complain(
      `${member.id} (process ${member.child.pid}) ended ${howOf(exit)}: the scheduler gives its views and jobs to another SSP; it is started again in ${awayMs / 1000} seconds`
    )
    await sleep(awayMs, undefined, { ref: false })
    if (this.#stopping !== undefined) return
    const child = (member.child = spawn())
    complain(`${member.id} starts again (process ${child.pid}) and pulls the records`)
    while (this.#stopping === undefined && member.child === child && !child.ended) {
      if (
        await fetch(`${member.url}/health`).then(
          ({ ok }) => ok,
          () => false
        )
      ) {
        member.failures = 0
        return complain(`${member.id} is ready again`)
      }
      await sleep(100, undefined, { ref: false })
    }
  }

  /** Asks until the answer is yes, or a process has died. A process that does not answer yet is asked again. */
  async #until(check: () => Promise<boolean>): Promise<void> {
    const asking = async (): Promise<void> => {
      while (this.#stopping === undefined && !(await check().catch(() => false))) await sleep(50)
    }
    await Promise.race([asking(), this.failure])
  }
}

/** Registers a view for a day. */
const register = async (url: string, { id, params, surql }: (typeof views)[number]): Promise<void> => {
  const plan = { surql, params: params ?? {}, clientId: "demo", ttl: "1d", format: "tree" }
  const answer = await fetch(`${url}/query/register`, {
    method: "POST",
    body: JSON.stringify({ query_id: id, view_plan: plan })
  })
  if (!answer.ok) throw new StartFailed(`view ${id} was refused: ${answer.status} ${await answer.text()}`, 1)
}
