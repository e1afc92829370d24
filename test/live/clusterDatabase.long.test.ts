/**
 * A cluster of processes beside a real database engine: cloned from it, told of every change by its events, writing
 * edges into it, while SSPs and the scheduler die (D14, D20, D21, D25, D31).
 *
 * At rest the edges of every view are what the query answers when the database itself is asked; what is compared is
 * read there, by statements of the test's own.
 */
import { expect, onTestFinished, test } from "vitest"
import { registration } from "../../kit/data/registration.ts"
import { until } from "../../kit/processes/Door.ts"
import { type Process, ProcessCluster } from "../../kit/processes/processCluster.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { serviceUser } from "../../kit/processes/surreal/serviceUser.ts"
import * as Feed from "../../src/core/surreal/surrealFeed.ts"
import * as Schema from "../../src/core/surreal/surrealSchema.ts"

const views = new Map(
  [0, 1, 2, 3, 4, 5].map((i) => [
    `view-${i}`,
    i < 3 ? `SELECT * FROM item WHERE group = ${i}` : `SELECT * FROM item WHERE n > ${i * 10} AND group != ${i}`
  ])
)

/** The database, with what is asked of it. */
class Beside {
  readonly server: RpcServer
  constructor(server: RpcServer) {
    this.server = server
  }

  ask<A>(query: string): Promise<A> {
    return this.server.ask<A>("n", "d", query)
  }

  async rows(query: string): Promise<ReadonlyArray<{ readonly [field: string]: unknown }>> {
    return (await this.ask<readonly [ReadonlyArray<{ readonly [field: string]: unknown }>]>(query))[0]
  }

  async ids(query: string): Promise<ReadonlyArray<string>> {
    return (await this.rows(query)).map(({ id }) => String(id)).sort()
  }

  async edges(view: string): Promise<ReadonlyArray<string>> {
    return (await this.rows(`SELECT out AS id FROM _svc_list_ref WHERE in = _svc_query:\`${view}\``))
      .map(({ id }) => String(id))
      .sort()
  }

  /** SSPs that own the registrations there. */
  async owners(): Promise<ReadonlySet<unknown>> {
    return new Set((await this.rows("SELECT owner FROM _svc_query")).map(({ owner }) => owner))
  }

  /** Waits until the edges are what the queries say; the last difference is what a failure shows. */
  async equal(when: string, ids: Iterable<string>): Promise<void> {
    let last: readonly [unknown, unknown] = [undefined, undefined]
    for (const id of ids) {
      await until(
        `edges of ${id} ${when}`,
        async () => {
          last = [await this.edges(id), await this.ids(views.get(id)!)]
          return JSON.stringify(last[0]) === JSON.stringify(last[1])
        },
        90_000
      ).catch(() => expect(last[0], `edges of ${id} ${when}`).toEqual(last[1]))
      expect((last[1] as ReadonlyArray<string>).length, `rows of ${id}`).toBeGreaterThan(0)
    }
  }
}

const bootstraps = (ssp: Process): number => ssp.logs.match(/bootstrapped at position/g)?.length ?? 0

test("D21 D25 D31 cloned, fed, killed and restarted beside a real database: edges are what the queries say, and rows without an owner are gone from it", async () => {
  const server = await RpcServer.start({ capabilities: { network_targets: true } })
  onTestFinished(() => server.kill())
  const database = new Beside(server)
  await database.ask(
    "DEFINE TABLE item; DEFINE FIELD group ON item TYPE int; FOR $n IN 0..60 { CREATE type::record('item', $n) SET n = $n, group = $n % 6 }"
  )
  const there = `127.0.0.1:${server.port}`
  const { pass, user } = await serviceUser(server)
  const cluster = await ProcessCluster.start(
    2,
    {
      SVC_SCHEDULER_DB_URL: there,
      SVC_SCHEDULER_DB_NAMESPACE: "n",
      SVC_SCHEDULER_DB_DATABASE: "d",
      SVC_SCHEDULER_DB_USERNAME: user,
      SVC_SCHEDULER_DB_PASSWORD: pass,
      SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "5000"
    },
    () => ({ STORE_ADDR: there, STORE_NS: "n", STORE_DB: "d", STORE_USER: user, STORE_PASS: pass })
  )
  onTestFinished(() => cluster.close())
  const [first, second] = cluster.ssps as readonly [Process, Process]
  try {
    const install = (): Promise<unknown> =>
      database.ask(
        Schema.script([
          ...Schema.sharedDefinitions,
          ...Feed.feedDefinitions({
            url: cluster.scheduler.url,
            secret: undefined,
            tables: ["item"],
            mode: "sync",
            openToRecordUsers: true
          })
        ])
      )
    const register = async (id: string): Promise<unknown> =>
      (
        await cluster.scheduler.ask(
          { method: "POST", path: "/view/register", body: registration(id, views.get(id)!) },
          20_000
        )
      )?.status
    await install()
    expect(await cluster.query("SELECT VALUE id FROM item")).toHaveLength(60)
    for (const id of views.keys()) expect(await register(id)).toBe(200)
    await database.equal("behind the clone", views.keys())
    expect(await database.owners()).toEqual(new Set(["ssp-1", "ssp-2"]))

    await database.ask(
      "UPDATE item:1 SET group = 0; UPDATE item SET n += 5 WHERE group = 2; CREATE item:new SET n = 31, group = 1; DELETE item:6"
    )
    await database.equal("behind changes", views.keys())

    await first.kill()
    await database.ask("UPDATE item:2 SET group = 1; DELETE item:12; CREATE item:during SET n = 100, group = 0")
    await until("every view is the other's", async () => [...(await database.owners())].join() === "ssp-2", 60_000)
    await database.ask("UPDATE item:3 SET group = 1")
    await database.equal("behind the death of one SSP", views.keys())

    await second.kill()
    await until("nobody is left", async () => (await cluster.ready()).length === 0, 60_000)
    expect(
      (await cluster.scheduler.ask({ method: "POST", path: "/view/unregister", body: { id: "view-0" } }))?.status
    ).toBe(200)
    await until(
      "D16 what it left is gone",
      async () =>
        (await database.edges("view-0")).length === 0 &&
        (await database.rows("SELECT * FROM _svc_query:`view-0`")).length === 0
    )
    expect(await database.edges("view-1")).not.toHaveLength(0)
    await Promise.all([first.start(), second.start()])
    await cluster.settled()
    const left = [...views.keys()].slice(1)
    await database.equal("behind the return of both", left)
    expect(await register("view-0")).toBe(200)
    await database.equal("registered again", ["view-0"])

    await cluster.scheduler.kill()
    const before = cluster.ssps.map(bootstraps)
    await database.ask(Feed.removal(["item"]).join("; "))
    await database.ask("UPDATE item:4 SET group = 0; DELETE item:7; CREATE item:quiet SET n = 77, group = 2")
    await cluster.scheduler.start()
    await cluster.settled()
    await install()
    await database.equal("behind a restart of the scheduler with changes while it was down", views.keys())
    expect(cluster.ssps.map(bootstraps), "what it missed comes as changes").toEqual(before)
    await database.ask("UPDATE item:5 SET group = 0")
    await database.equal("at the end", views.keys())
  } catch (error) {
    throw new Error(
      `${error instanceof Error ? error.message : String(error)}\n${cluster.all.map(({ logs, name }) => `--- ${name}\n${logs.slice(-3000)}`).join("\n")}`
    )
  }
}, 600_000)
