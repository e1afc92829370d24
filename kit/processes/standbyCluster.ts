/**
 * Several schedulers over one log, in PostgreSQL or on NATS, and their SSPs, as real processes: killed, stopped in their
 * tracks, told to stop and started again by a test.
 */
import { join } from "node:path"
import type { Answer, Ask } from "../checks/http.ts"
import { Door, freePort, removeFolder, schedulerEnv, temporaryFolder, until } from "./Door.ts"
import * as Postgres from "./postgres.ts"
import { Process } from "./processCluster.ts"

interface Told {
  readonly state: string
  readonly seq: number
  readonly log: {
    readonly role: "leader" | "follower"
    readonly epoch: number
    readonly leader: string | null
    readonly durability: string
    readonly schedulers: ReadonlyArray<{ readonly id: string; readonly applied: number; readonly waiting: number }>
  }
}

type Env = { readonly [name: string]: string }

/** Where and how a scheduler runs. */
export interface Place {
  readonly host?: string
  /** By default one that is free. */
  readonly port?: number
  /** A command that runs what follows it. */
  readonly within?: ReadonlyArray<string>
  readonly env?: Env
}

export class StandbyCluster {
  readonly url: string
  private readonly folder = temporaryFolder()
  readonly schedulers: ReadonlyArray<Process>
  readonly ssps: ReadonlyArray<Process>
  /** The schedulers that an SSP knows which is started from now on. */
  known: ReadonlyArray<Process>

  private constructor(
    ports: ReadonlyArray<number>,
    sspPorts: ReadonlyArray<number>,
    env: Env,
    url = Postgres.freshLog(),
    places: ReadonlyArray<Place | undefined> = []
  ) {
    this.url = url
    const urls = ports.map((port, i) => `http://${places[i]?.host ?? "127.0.0.1"}:${port}`)
    this.schedulers = ports.map((port, i) => {
      const name = `scheduler-${i + 1}`
      return new Process(name, urls[i]!, () =>
        Door.spawn({
          command: [...(places[i]?.within ?? []), process.execPath, "dist/scheduler.js"],
          dataDir: join(this.folder, name),
          env: {
            ...schedulerEnv(join(this.folder, name), port),
            SCHEDULER_ID: name,
            SVC_LOG_URL: this.url,
            SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "200",
            SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "200",
            SVC_SCHEDULER_INGEST_HOST: places[i]?.host ?? "127.0.0.1",
            ...env,
            ...places[i]?.env
          }
        })
      )
    })
    this.known = this.schedulers
    this.ssps = sspPorts.map((port, i) => {
      const name = `ssp-${i + 1}`
      return new Process(name, `http://127.0.0.1:${port}`, () =>
        Door.spawn({
          dataDir: join(this.folder, name),
          env: {
            LISTEN_ADDR: `127.0.0.1:${port}`,
            STORE_ADDR: undefined,
            SCHEDULER_URL: this.known.map(({ url }) => url).join(","),
            SSP_ID: name,
            HEARTBEAT_INTERVAL_MS: "500"
          }
        })
      )
    })
  }

  /** Ends of schedulers that led no more: a supervisor's work, for a machine that is busy may cost a leader its lease. */
  superseded = 0
  private supervisor: NodeJS.Timeout | undefined
  /** Starts by the supervisor that are under way: their processes are in no door yet. */
  private readonly restarts = new Set<Promise<void>>()

  /** Starts schedulers again that led no more, or could not reach their log at the start. */
  private supervise(): void {
    this.supervisor = setInterval(() => {
      for (const each of this.schedulers) {
        const code = each.door?.exit?.code
        if (each.door === undefined || (code !== 4 && code !== 1)) continue
        if (code === 4) this.superseded++
        each.past += each.door.logs
        each.door = undefined
        const restart = each.start().finally(() => this.restarts.delete(restart))
        this.restarts.add(restart)
      }
    }, 50)
  }

  /** From here on none is started but by the test, and those that were are there. */
  private async leaveAlone(): Promise<void> {
    clearInterval(this.supervisor)
    await Promise.all(this.restarts)
  }

  static async start(
    schedulers: number,
    ssps: number,
    env: Env = {},
    options: {
      readonly isSupervised?: boolean
      /** Of the schedulers, the last ones that are left to the test to start. */
      readonly idle?: number
      readonly idleSsps?: number
      /** Where a scheduler runs, by its place in the list; on loopback where there is none. */
      readonly places?: ReadonlyArray<Place | undefined>
      /** Where the log is; by default one of its own in the PostgreSQL of the tests. */
      readonly url?: string
    } = {}
  ): Promise<StandbyCluster> {
    const { places, url } = options
    const ports = await Promise.all(
      Array.from(
        { length: schedulers + ssps },
        (_, i) => (i < schedulers ? places?.[i]?.port : undefined) ?? freePort()
      )
    )
    const cluster = new StandbyCluster(ports.slice(0, schedulers), ports.slice(schedulers), env, url, places)
    // A busy machine may cost the only one its lease before it has begun.
    cluster.supervise()
    const begun = cluster.schedulers.slice(0, schedulers - (options.idle ?? 0))
    const sspsBegun = cluster.ssps.slice(0, ssps - (options.idleSsps ?? 0))
    await Promise.all([...begun, ...sspsBegun].map((each) => each.start()))
    await cluster.leader()
    if (options.isSupervised !== true) await cluster.leaveAlone()
    return cluster
  }

  async told(of: Process): Promise<Told | undefined> {
    const answer = await of.ask({ path: "/progress" })
    return answer?.status === 200 ? (answer.json as Told) : undefined
  }

  /** The folder of a scheduler's replica. */
  replicaOf({ name }: Process): string {
    return join(this.folder, name, "replica")
  }

  private static readonly shared: Array<string> = []

  /** A folder for what the schedulers of a cluster share; it goes with the next one that is closed. */
  static newShared(): string {
    const folder = temporaryFolder()
    StandbyCluster.shared.push(folder)
    return folder
  }

  /** Kills it, and takes its disk away. */
  async lose(scheduler: Process): Promise<void> {
    await scheduler.kill()
    removeFolder(join(this.folder, scheduler.name))
  }

  /** It leads by its own word, and is open. */
  async leads(scheduler: Process): Promise<boolean> {
    const told = await this.told(scheduler)
    return told?.log.role === "leader" && told.state !== "standby"
  }

  /** It stands by, and knows who leads. */
  async standsBy(scheduler: Process): Promise<boolean> {
    const told = await this.told(scheduler)
    return told?.state === "standby" && told.log.role === "follower" && told.log.leader !== null
  }

  /** One leads, and the others stand by. */
  async isWhole(): Promise<boolean> {
    const leads = await Promise.all(this.schedulers.map((each) => this.leads(each)))
    const standsBy = await Promise.all(this.schedulers.map((each) => this.standsBy(each)))
    return leads.filter(Boolean).length === 1 && standsBy.filter(Boolean).length === this.schedulers.length - 1
  }

  /** The scheduler that leads. */
  async leader(): Promise<Process> {
    return until(
      "one scheduler leads",
      async () => {
        for (const each of this.schedulers) if (await this.leads(each)) return each
        return undefined
      },
      60_000
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.logs}`)
    })
  }

  /** One scheduler, as a feed that knows all of them: asked once, and another the next time where it took nothing. */
  readonly one = {
    ask: async (ask: Ask, ms = 2000): Promise<Answer | undefined> => {
      const asked = this.last
      const answer = await this.schedulers[asked]!.ask(ask, ms)
      if ((answer === undefined || answer.status === 503) && this.last === asked)
        this.last = (asked + 1) % this.schedulers.length
      return answer
    }
  }

  /** Any scheduler: the others are asked too, as long as one takes nothing. */
  readonly scheduler = {
    ask: async (ask: Ask, ms = 2000): Promise<Answer | undefined> => {
      let answer: Answer | undefined
      for (let tries = 0; tries < this.schedulers.length; tries++) {
        answer = await this.one.ask(ask, ms)
        if (answer !== undefined && answer.status !== 503) return answer
      }
      return answer
    }
  }

  private last = 0

  /** Rows of the leader's replica, once a scheduler leads. */
  async query(query: string): Promise<ReadonlyArray<{ readonly [field: string]: unknown }>> {
    const answer = await until(
      `an answer to ${query}`,
      async () => {
        const given = await this.scheduler.ask({ method: "POST", path: "/proxy/query", body: { query } }, 30_000)
        return given === undefined || given.status === 503 ? undefined : given
      },
      60_000
    )
    if (answer.status !== 200) throw new Error(`${query}: ${answer.status} ${answer.text}`)
    return answer.json as ReadonlyArray<{ readonly [field: string]: unknown }>
  }

  /** All SSPs are ready, by the leader's word. */
  async settled(): Promise<void> {
    const isReady = async (): Promise<boolean> => {
      const answer = await this.scheduler.ask({ path: "/overview" })
      const { ssps = [] } = (answer?.json ?? {}) as { readonly ssps?: ReadonlyArray<{ readonly state: string }> }
      return ssps.filter(({ state }) => state === "ready").length === this.ssps.length
    }
    await until("all SSPs ready", isReady, 60_000).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.logs}`)
    })
  }

  get logs(): string {
    return [...this.schedulers, ...this.ssps]
      .map(({ door, logs, name }) => {
        const ended = door?.exit === undefined ? "running" : `ended, ${JSON.stringify(door.exit)}`
        return `--- ${name}: ${door === undefined ? "not started" : ended}\n${logs.slice(-3000)}`
      })
      .join("\n")
  }

  async close(): Promise<void> {
    await this.leaveAlone()
    await Promise.all([...this.schedulers, ...this.ssps].map((each) => each.kill()))
    for (const folder of [this.folder, ...StandbyCluster.shared.splice(0)]) removeFolder(folder)
    await Postgres.forget()
  }
}
