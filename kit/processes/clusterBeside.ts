/**
 * A cluster of processes beside a real database engine whose network is closed, with the change table installed: forty
 * records of `item`, and no compare by the clock, so that what a view lacks stays missing.
 */
import { onTestFinished } from "vitest"
import * as Setup from "../../src/core/surreal/databaseSetup.ts"
import { removeFolder, temporaryFolder } from "./Door.ts"
import { ProcessCluster } from "./processCluster.ts"
import { RpcServer } from "./surreal/RpcServer.ts"
import { serviceUser } from "./surreal/serviceUser.ts"

export interface ClusterBeside {
  readonly server: RpcServer
  readonly cluster: ProcessCluster
  readonly settings: { readonly [name: string]: string }
  readonly ask: <A>(query: string) => Promise<A>
}

type Env = { readonly [name: string]: string }

export interface ClusterBesideOptions {
  /** Further settings of the scheduler. */
  readonly scheduler?: Env
  /** Further settings of the SSP with this id. */
  readonly ssp?: (id: string) => Env
  /** Job tables that are defined and fed besides. */
  readonly jobTables?: ReadonlyArray<string>
  /** Whether the database may post. */
  readonly mayPost?: boolean
  /** Takes what ends it, in the order in which it began; by default the end of the test does. */
  readonly later?: (end: () => Promise<void> | void) => void
}

/** Gone when the test is, unless `later` is given. */
export const startClusterBeside = async (
  ssps: number,
  {
    jobTables = [],
    later = onTestFinished,
    mayPost = false,
    scheduler = {},
    ssp = () => ({})
  }: ClusterBesideOptions = {}
): Promise<ClusterBeside> => {
  const folder = temporaryFolder()
  later(() => removeFolder(folder))
  const server = await RpcServer.start({
    path: `surrealkv://${folder}/database`,
    ...(mayPost ? { capabilities: { network_targets: true } } : {})
  })
  later(() => server.kill())
  const ask = <A>(query: string): Promise<A> => server.ask<A>("n", "d", query)
  await ask("DEFINE TABLE item; FOR $n IN 0..40 { CREATE type::record('item', $n) SET n = 0, on = $n % 2 = 0 }")
  const { pass, user } = await serviceUser(server, jobTables)
  await ask(
    Setup.script({
      url: "http://127.0.0.1:9",
      secret: undefined,
      tables: ["item", ...jobTables],
      mode: "changes",
      openToRecordUsers: false
    })
  )
  const there = `127.0.0.1:${server.port}`
  const settings = {
    SVC_SCHEDULER_DB_URL: there,
    SVC_SCHEDULER_DB_NAMESPACE: "n",
    SVC_SCHEDULER_DB_DATABASE: "d",
    SVC_SCHEDULER_DB_USERNAME: user,
    SVC_SCHEDULER_DB_PASSWORD: pass,
    SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "200",
    SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "5000",
    SVC_RECONCILE_INTERVAL_SECS: "0",
    // Longer than a busy machine keeps a scheduler from renewing it, shorter than a test waits for another to take over.
    SVC_DATABASE_LEASE_SECS: "15",
    ...scheduler
  }
  const cluster = await ProcessCluster.start(ssps, settings, (id) => ({
    ...ssp(id),
    STORE_ADDR: there,
    STORE_NS: "n",
    STORE_DB: "d",
    STORE_USER: user,
    STORE_PASS: pass
  }))
  later(() => cluster.close())
  return { server, cluster, settings, ask }
}
