/**
 * `GET /metrics` and `GET /progress` of a real SSP (D34): what it says is what it has done, and every declared metric
 * is there.
 *
 * Why on the process: process figures and the embedded store are only there.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, expectError, send } from "../../kit/checks/contract.ts"
import { parse, type ReadFamily } from "../../kit/checks/exposition.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door } from "../../kit/processes/Door.ts"
import { metrics } from "../../src/core/telemetry/metrics.ts"

let door: Door
beforeAll(async () => {
  door = await Door.start({ env: { SSP_ID: "ssp-metrics", STORE_ADDR: undefined } })
})
afterAll(() => door.close())

/** Only where there is a database, a scheduler, a job. */
const elsewhere =
  /^svc_ssp_(?:edge|log_seq$|jobs$|job_(?:attempts|leases_lost)_total$)|^svc_reconcile_age|^svc_change_table_/

const read = async (): Promise<ReadonlyMap<string, ReadFamily>> => {
  const answer = await send(door, { ask: "GET /metrics" })
  expect([answer.status, answer.headers["content-type"]]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"])
  return parse(answer.text)
}
const valueOf = (families: ReadonlyMap<string, ReadFamily>, name: string, label?: string): number | undefined =>
  [...families.values()]
    .flatMap(({ samples }) => samples)
    .find((sample) => sample.name === name && (label === undefined || Object.values(sample.labels).includes(label)))
    ?.value

describe("GET /metrics", () => {
  it("GET /metrics 200 D34 has every metric declared for an SSP, each as declared", async () => {
    const families = await read()
    const own = metrics.filter(({ name, on }) => on !== "scheduler" && !elsewhere.test(name))
    expect([...families.keys()].filter((name) => !elsewhere.test(name))).toEqual(own.map(({ name }) => name))
    for (const { help, name, type } of own)
      expect([families.get(name)?.type, families.get(name)?.help]).toEqual([type, help])
  })
  it("GET /metrics 200 D34 counts what was done, and shows what there is", async () => {
    const before = await read()
    await send(door, { ask: "POST /view/register", body: registration("m", "SELECT * FROM m") })
    await send(door, { ask: "POST /ingest", body: [create("m:1"), create("m:2"), create("n:1")] })
    await send(door, { ask: "POST /ingest", body: "{" })
    await send(door, { ask: "POST /ingest", body: create("m:9"), token: "wrong" })
    const after = await read()
    const grown = (name: string, label?: string): number =>
      (valueOf(after, name, label) ?? NaN) - (valueOf(before, name, label) ?? NaN)
    expect([
      grown("svc_ingest_changes_total"),
      grown("svc_ssp_view_updates_total"),
      grown("svc_ingest_duration_seconds_count"),
      grown("svc_ingest_refused_total", "4xx"),
      grown("svc_ingest_refused_total", "5xx")
    ]).toEqual([3, 1, 1, 2, 0])
    expect(grown("svc_ssp_store_commit_duration_seconds_count")).toBeGreaterThanOrEqual(2)
    expect(grown("svc_ingest_duration_seconds_sum")).toBeGreaterThan(0)
    expect(
      [
        "svc_ssp_views",
        "svc_ssp_view_rows",
        "svc_ssp_records",
        "svc_ssp_tables",
        "svc_ssp_streams",
        "svc_ingest_pending_changes"
      ].map((name) => valueOf(after, name))
    ).toEqual([1, 2, 3, 2, 0, 0])
    expect([
      valueOf(after, "svc_ssp_status", "ready"),
      valueOf(after, "svc_ssp_status", "failed"),
      valueOf(after, "svc_task_duration_seconds_count", "restore"),
      valueOf(after, "svc_build_info", "ssp")
    ]).toEqual([1, 0, 1, 1])
    expect(valueOf(after, "process_start_time_seconds")).toBeLessThan(Date.now() / 1000 + 1)
    expect(valueOf(after, "process_resident_memory_bytes")).toBeGreaterThan(
      valueOf(after, "svc_heap_used_bytes") ?? Infinity
    )
    expect(grown("process_cpu_seconds_total")).toBeGreaterThan(0)
  })
  it("GET /metrics 401 D34 D15 without the secret", async () =>
    void expectError(await send(door, { ask: "GET /metrics", token: null }), 401, "UNAUTHORIZED"))
})

describe("GET /progress", () => {
  contract(
    () => door,
    [
      {
        name: "GET /progress 200 D34 nothing goes on",
        ask: "GET /progress",
        status: 200,
        is: { state: "ready", seq: null, tasks: [] }
      },
      {
        name: "GET /progress 401 D34 without the secret",
        ask: "GET /progress",
        token: null,
        status: 401,
        code: "UNAUTHORIZED"
      }
    ]
  )
})
