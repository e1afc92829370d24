/** Snapshots that are kept apart from the schedulers' disks: in a folder, and in an object store beside the log on NATS. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { campaign } from "../../kit/data/random.ts"
import { bytesOf, filled, fresh, open, run } from "../../kit/data/replicaFiles.ts"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import * as Nats from "../../kit/processes/nats.ts"
import { TcpProxy } from "../../kit/processes/tcpProxy.ts"
import { streamOf } from "../../src/drivers/nats/objects.ts"
import * as KeptSnapshots from "../../src/host/snapshots/keptSnapshots.ts"
import * as SnapshotFolder from "../../src/host/snapshots/snapshotFolder.ts"
import { SharedLog } from "../../src/ports/SharedLog.ts"
import type { SnapshotStore } from "../../src/ports/Snapshots.ts"
import { type Place, snapshotsSuite } from "./Snapshots.suite.ts"

describe("snapshots in a folder", () => {
  snapshotsSuite(() =>
    Effect.sync((): Place => {
      const folder = fresh()
      return {
        store: (name, logId) => SnapshotFolder.make({ folder, logId, name }),
        damage: (name) =>
          Effect.sync(() => writeFileSync(join(folder, name), readFileSync(join(folder, name)).subarray(0, 9000))),
        leave: (half) =>
          Effect.sync(() => {
            mkdirSync(folder, { recursive: true })
            writeFileSync(join(folder, "svc-a-log-gone.part"), half)
          }),
        held: Effect.sync(() => readdirSync(folder).length),
        lose: Effect.sync(() => removeFolder(folder))
      }
    })
  )

  test("D64 what this scheduler left when it was killed goes at its next start", () =>
    run(
      Effect.gen(function* () {
        const folder = fresh()
        mkdirSync(folder, { recursive: true })
        for (const name of ["one", "two"]) writeFileSync(join(folder, `svc-a-log-${name}.part`), "half")
        yield* SnapshotFolder.make({ folder, logId: "a-log", name: "one" })
        expect(readdirSync(folder)).toEqual(["svc-a-log-two.part"])
      })
    ))

  test("what is no folder ends the start, and the setting is named", () =>
    run(
      Effect.gen(function* () {
        const folder = fresh()
        writeFileSync(folder, "a file")
        const options = { folder, logId: "a-log", name: "one" }
        expect((yield* Effect.flip(SnapshotFolder.make(options))).message).toContain("SVC_SNAPSHOT_URL")
      })
    ))
})

/** The object store of a log, by its address. */
const beside = (url: string, leaseMs?: number) =>
  Effect.flatMap(
    Layer.build(Nats.sharedOf(url, leaseMs)),
    (context): Effect.Effect<SnapshotStore, unknown> => Context.get(context, SharedLog).snapshots!
  )

interface Info {
  readonly config: { readonly [name: string]: unknown }
  readonly state: { readonly last_seq: number; readonly subjects?: { readonly [subject: string]: number } }
}

const bucketOf = (url: string): string => streamOf(Nats.nameOf(url))

const asking = (url: string, command: string, body?: object) =>
  Effect.promise(() =>
    Nats.asking((ask) => ask(`${command}.${bucketOf(url)}`, body), url.slice(0, url.lastIndexOf("/")))
  )

const infoOf = (url: string) =>
  Effect.map(asking(url, "STREAM.INFO", { subjects_filter: ">" }), (answer) => answer as unknown as Info)

/** Pieces of how many objects there are. */
const piecesOf = (url: string) =>
  Effect.map(infoOf(url), ({ state }) => Object.keys(state.subjects ?? {}).filter((each) => each.includes(".C.")))

const missing = Nats.isReachable ? "" : " (skipped: no NATS at 127.0.0.1:4222; SVC_TEST_NATS names one)"

describe.skipIf(!Nats.isReachable)(`snapshots in an object store of NATS${missing}`, () => {
  afterAll(Nats.forget)

  snapshotsSuite(() =>
    Effect.gen(function* () {
      const url = Nats.freshLog()
      yield* beside(url)
      return {
        store: () => beside(url),
        damage: (name) =>
          Effect.gen(function* () {
            const subject = `$O.svc-snapshots-${Nats.nameOf(url)}.M.${Buffer.from(name).toString("base64url")}`
            const { state } = yield* infoOf(url)
            const meta = Object.keys(state.subjects ?? {}).find((each) => each.replace(/=+$/, "") === subject)!
            const found = (yield* asking(url, "STREAM.MSG.GET", { last_by_subj: meta })) as unknown as {
              readonly message: { readonly seq: number }
            }
            yield* asking(url, "STREAM.MSG.DELETE", { seq: found.message.seq - 1 })
          }),
        leave: (half) => Effect.promise(() => Nats.publishing(`$O.svc-snapshots-${Nats.nameOf(url)}.C.left`, half)),
        held: Effect.map(piecesOf(url), (all) => all.length),
        lose: asking(url, "STREAM.DELETE")
      } satisfies Place
    })
  )

  test("D64 it is laid out as the clients of NATS lay it out, and what they delete is offered no more", () =>
    run(
      Effect.gen(function* () {
        const url = Nats.freshLog()
        const store = yield* beside(url)
        const { own, replica } = yield* open()
        yield* filled(replica, 1, 40)
        const snapshot = yield* own.snapshot("a-log")
        const name = yield* store.write(snapshot)
        const { config, state } = yield* infoOf(url)
        const bucket = `svc-snapshots-${Nats.nameOf(url)}`
        expect(config).toMatchObject({
          subjects: [`$O.${bucket}.C.>`, `$O.${bucket}.M.>`],
          allow_rollup_hdrs: true,
          discard: "new"
        })
        const meta = `$O.${bucket}.M.${Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_")}`
        const { message } = (yield* asking(url, "STREAM.MSG.GET", { last_by_subj: meta })) as unknown as {
          readonly message: { readonly data: string }
        }
        const told = JSON.parse(Buffer.from(message.data, "base64").toString()) as { readonly [name: string]: unknown }
        const digest = Buffer.from(snapshot.sha256, "hex").toString("base64").replaceAll("+", "-").replaceAll("/", "_")
        expect(told).toMatchObject({ name, bucket, size: snapshot.bytes, digest: `SHA-256=${digest}`, deleted: false })
        expect(state.subjects).toEqual({ [meta]: 1, [`$O.${bucket}.C.${String(told.nuid)}`]: told.chunks })
        expect(told.chunks).toBe(Math.ceil(snapshot.bytes / 524_288))
        yield* Effect.promise(() => Nats.publishing(meta, Buffer.from(JSON.stringify({ ...told, deleted: true }))))
        expect(yield* store.names).toEqual([])
      })
    ))

  test("D64 a connection that breaks off on the way is gone on with, in both directions", async () => {
    const { hostname, port } = new URL(Nats.address)
    const proxy = await TcpProxy.to(hostname, Number(port || 4222))
    onTestFinished(() => proxy.close())
    await run(
      Effect.gen(function* () {
        const url = Nats.freshLog(`nats://127.0.0.1:${proxy.port}`)
        const store = yield* beside(url)
        const { own, replica } = yield* open()
        yield* filled(replica, 1, 120)
        const snapshot = yield* own.snapshot("a-log")
        expect(snapshot.bytes).toBeGreaterThan(2_000_000)
        const whole = yield* bytesOf(snapshot)
        for (const [seq, [bytes, isBack]] of (
          [
            [900_000, false],
            // Behind the answer to a piece, whose server has it then, and before the whole of the next.
            [150, true]
          ] as const
        ).entries()) {
          proxy.cutAfter(bytes, isBack)
          const name = yield* store.write({ ...snapshot, seq, content: Stream.make(whole) })
          proxy.cutAfter(900_000, true)
          const { content } = yield* store.open(name)
          expect(Buffer.compare(yield* bytesOf({ content }), whole)).toBe(0)
        }
        expect(proxy.cuts).toBe(4)
      })
    )
  })

  test("D64 a bucket that loses snapshots by itself is refused, and what is wrong is named", () =>
    run(
      Effect.gen(function* () {
        const url = Nats.freshLog()
        yield* beside(url)
        const { config } = yield* infoOf(url)
        yield* asking(url, "STREAM.UPDATE", { ...config, max_age: 3_600_000_000_000, duplicate_window: 60_000_000_000 })
        expect(String(yield* Effect.flip(beside(url)))).toMatch(/SVC_SNAPSHOT_URL.*max_age/)
      })
    ))
})

const noServer = Nats.hasServer ? "" : " (skipped: no nats-server in the path)"

describe.skipIf(!Nats.hasServer)(`an object store without room${noServer}`, () => {
  let servers: Nats.Servers
  const store = temporaryFolder()
  beforeAll(async () => {
    servers = await Nats.Servers.start(1, `jetstream { store_dir: "${store}", max_file_store: 2097152 }`)
  })
  afterAll(async () => {
    await servers?.close()
    removeFolder(store)
  })

  test("D64 it says that it is full, keeps the one it has, and nothing of the other", () =>
    run(
      Effect.gen(function* () {
        const url = Nats.freshLog(servers.url)
        const snapshots = KeptSnapshots.make(yield* beside(url), { logId: "a-log", intervalMs: 0 })
        const { own, replica } = yield* open()
        yield* filled(replica, 1, 40)
        expect(yield* snapshots.keep(own, 40)).toBe(40)
        yield* filled(replica, 41, 40)
        const fault = yield* Effect.flip(snapshots.keep(own, 80))
        expect(fault).toMatchObject({ reason: "full", message: expect.stringMatching(/SVC_SNAPSHOT_URL/) })
        expect((yield* piecesOf(url)).length).toBe(1)
        // What was taken away is room again, for the log too.
        const { wal } = yield* Nats.leading(url, "one")
        expect(yield* wal.append(["1"])).toBe(1)
        const to = yield* open()
        const [offer] = yield* snapshots.offers(0)
        yield* Effect.scoped(Effect.flatMap(offer!.open, to.own.restore))
        expect(yield* to.replica.applied).toBe(40)
      })
    ))

  // The longest that a scheduler waits for an answer, twice.
  test.runIf(campaign)(
    "D64 a server that is gone is named in the end, by setting and address",
    () =>
      run(
        Effect.gen(function* () {
          const url = Nats.freshLog(servers.url)
          const snapshots = KeptSnapshots.make(yield* beside(url, 1_000), { logId: "a-log", intervalMs: 0 })
          const { own } = yield* open()
          yield* Effect.promise(() => servers.kill(0))
          const named = {
            reason: "failed",
            message: expect.stringMatching(/SVC_SNAPSHOT_URL.*127\.0\.0\.1.*does not answer/)
          }
          expect(yield* Effect.flip(snapshots.keep(own, 9))).toMatchObject(named)
          expect(yield* Effect.flip(snapshots.offers(0))).toMatchObject(named)
        })
      ),
    120_000
  )
})
