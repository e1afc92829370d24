/**
 * What the bench of streams measures: an SSP alone, a cluster asked at its scheduler, and the yardstick.
 */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { request } from "../../../kit/checks/http.ts"
import { follow, hangUp } from "../../../kit/checks/manyStream.ts"
import { registration } from "../../../kit/data/registration.ts"
import { Door, freePort, secret, until } from "../../../kit/processes/Door.ts"
import { ProcessCluster } from "../../../kit/processes/processCluster.ts"
import { root } from "../../../kit/rules/source.ts"
import { cpuMicros } from "../load.ts"

export interface Server {
  readonly port: number
  /** Of all processes that have a part in an answer. */
  readonly pids: ReadonlyArray<number>
  readonly close: () => Promise<void> | void
}

/** How a client follows the one view: by itself, or as one of several with its rows. */
export type Form = "one" | "several"

export const view = "ten"
export const surql = "SELECT * FROM post WHERE author = user:1"
export const post = (n: number, title: string): object => ({
  table: "post",
  op: "UPDATE",
  id: `post:${n}`,
  record: { author: "user:1", title, likes: n, tags: ["a", "b"], draft: false }
})

const most = {
  SVC_LOG_LEVEL: "error",
  SVC_MAX_CONNECTIONS: "20000",
  SVC_MAX_CONNECTIONS_PER_ADDRESS: "20000"
}
const mostOfSsp = { ...most, SVC_MAX_STREAMS: "20000" }

export const urlOf = ({ port }: Pick<Server, "port">): string => `http://127.0.0.1:${port}`

export const take = (server: Pick<Server, "port">, path: string, body: unknown) =>
  request(urlOf(server), { method: "POST", path, body, token: secret, keepAlive: false })

const filled = async (server: Server): Promise<Server> => {
  for (let n = 0; n < 10; n++) await take(server, "/ingest", post(n, `Post number ${n}`))
  await take(server, "/view/register", registration(view, surql))
  return server
}

export const ssp = async (): Promise<Server> => {
  const door = await Door.start({ env: mostOfSsp })
  return filled({ port: door.port, pids: [door.pid], close: () => door.close() })
}

/** One SSP, asked through its scheduler: both have a part in every answer. */
export const throughScheduler = async (): Promise<Server> => {
  const cluster = await ProcessCluster.start(1, most, () => mostOfSsp)
  return filled({
    port: Number(new URL(cluster.scheduler.url).port),
    pids: cluster.all.map(({ door }) => door!.pid),
    close: () => cluster.close()
  })
}

/** The texts that a service sends, read from it. */
const textsOf = async (server: Server, form: Form) => {
  const url = urlOf(server)
  const many =
    form === "several"
      ? await follow(url, { views: [{ view }] })
      : await follow(url, {}, secret, `/view/${view}/stream`, "GET")
  await until("the snapshot", () => /data: .*\n\n$/.test(many.text) && many.text.includes("snapshot"))
  const snapshot = many.text
  await take(server, "/ingest", post(3, "A new title"))
  await until("the delta", () => many.text.length > snapshot.length && many.text.endsWith("\n\n"))
  const delta = many.text.slice(snapshot.length)
  hangUp()
  const answer = await request(url, { path: `/view/${view}?format=tree`, token: secret })
  return { snapshot, delta, answer: answer.text }
}

/** The yardstick, with the texts of a service. */
export const bare = async (beside: Server, form: Form): Promise<Server> => {
  const port = await freePort()
  const code = ts.transpileModule(readFileSync(join(root, "scripts/bench/streams/bare.ts"), "utf8"), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
  }).outputText
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    env: { BARE: JSON.stringify({ ...(await textsOf(beside, form)), port, heartbeatMs: 15_000 }) },
    stdio: "inherit"
  })
  await until("the bare server listens", () =>
    request(urlOf({ port }), { path: "/", keepAlive: false }).then(
      () => true,
      () => false
    )
  )
  return { port, pids: [child.pid ?? -1], close: () => void child.kill() }
}

/** CPU microseconds that the processes of a server have spent on some work. */
export const spent = async ({ pids }: Server, work: () => Promise<unknown>): Promise<number> => {
  const total = (): number => pids.reduce((sum, pid) => sum + cpuMicros(pid), 0)
  const before = total()
  await work()
  return total() - before
}
