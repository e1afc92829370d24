/**
 * What must hold in a cluster of processes at rest, whatever was done to them: records, views and trees are the same
 * everywhere, and what was acknowledged last.
 */
import { expect } from "vitest"
import { until } from "../processes/Door.ts"
import type { Process } from "../processes/processCluster.ts"

type Asked = Pick<Process, "ask">

/** A cluster as far as it is asked; `scheduler` may be any of several. */
export interface Checked {
  readonly scheduler: Asked
  readonly ssps: ReadonlyArray<Process>
  readonly query: (text: string) => Promise<ReadonlyArray<{ readonly [field: string]: unknown }>>
}

export const queries = (i: number): string =>
  [
    `SELECT * FROM item WHERE group = ${i % 50}`,
    `SELECT id, n FROM item WHERE n > ${i * 3} AND even = true ORDER BY n DESC LIMIT 20`,
    `SELECT count() AS count, even FROM item WHERE group < ${i % 20} GROUP BY even`,
    `SELECT VALUE n FROM item WHERE group = ${i % 50} ORDER BY n`
  ][i % 4]!

export const viewIds = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, i) => `view-${i}`)

export const registerViews = async (cluster: Checked, count: number): Promise<void> => {
  for (const [i, id] of viewIds(count).entries()) {
    const answer = await cluster.scheduler.ask(
      {
        method: "POST",
        path: "/view/register",
        body: { id, surql: queries(i), clientId: "c", ttl: "1d", format: "tree" }
      },
      10_000
    )
    expect([answer?.status, id], answer?.text).toEqual([200, id])
  }
}

/** Every SSP holds what the replica holds, versions included; the replica holds what was acknowledged last. */
export const checkRecords = async (cluster: Checked, known: ReadonlyMap<number, number | undefined>): Promise<void> => {
  const replica = (await cluster.query("SELECT *, _svc_rv FROM item")).map(
    ({ id, n, _svc_rv }) => [id, n, _svc_rv] as const
  )
  const expected = [...known].filter(([, n]) => n !== undefined).sort(([a], [b]) => a - b)
  expect(replica.map(([id, n]) => [id, n])).toEqual(expected.map(([key, n]) => [`item:${key}`, n]))
  for (const ssp of cluster.ssps) {
    const body = { id: "check", surql: "SELECT * FROM item", clientId: "test", ttl: "1h" }
    // A pause that was the last blow may have an SSP removed only now: it is away for as long as it takes to come back.
    const [flat, tree] = await until(
      `the records of ${ssp.name}`,
      async () => {
        const answers = [
          await ssp.ask({ method: "POST", path: "/view/register", body }, 20_000),
          await ssp.ask({ path: "/view/check?format=tree" }, 20_000)
        ] as const
        return answers.every((answer) => answer?.status === 200)
          ? answers.map((answer) => (answer?.json as { readonly result_data: unknown }).result_data)
          : undefined
      },
      60_000
    )
    expect(flat, `versions on ${ssp.name}`).toEqual(replica.map(([id, , version]) => [id, version]))
    expect(
      (tree as ReadonlyArray<{ readonly [field: string]: unknown }>).map(({ id, n }) => [id, n]),
      `records on ${ssp.name}`
    ).toEqual(replica.map(([id, n]) => [id, n]))
    await ssp.ask({ method: "POST", path: "/view/unregister", body: { id: "check" } })
  }
}

/** Every view is on exactly one SSP and shows what the plain evaluation of its query shows. */
export const checkViews = async (cluster: Checked, count: number): Promise<void> => {
  for (const [i, id] of viewIds(count).entries()) {
    const found = await until(
      `${id} on one SSP`,
      async () => {
        const answers = await Promise.all(cluster.ssps.map((ssp) => ssp.ask({ path: `/view/${id}?format=tree` })))
        const here = answers.filter((answer) => answer?.status === 200)
        return here.length === 1 ? here[0] : undefined
      },
      20_000
    )
    const expected = await cluster.query(queries(i))
    expect((found.json as { readonly result_data: unknown }).result_data, `${id}: ${queries(i)}`).toEqual(expected)
  }
}

/** At rest the integrity trees of all are the same (D41). */
export const checkTrees = async (cluster: Checked): Promise<void> => {
  const roots = async (process: Asked) =>
    (
      (await process.ask({ path: "/integrity" }, 20_000))?.json as {
        readonly tables: ReadonlyArray<{ readonly table: string }>
      }
    ).tables.filter(({ table }) => table === "item")
  const expected = await roots(cluster.scheduler)
  expect(expected).toHaveLength(1)
  for (const ssp of cluster.ssps) expect(await roots(ssp), `the tree of ${ssp.name}`).toEqual(expected)
}
