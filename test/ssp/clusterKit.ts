/**
 * An SSP in scheduler mode with its real views, over a fake scheduler and in virtual time.
 *
 * What it logs is kept, because loud and quiet are part of what is decided (D19).
 */
import { Context, Effect, Layer, Logger, LogLevel, Random, type Scope } from "effect"
import { askFront } from "../../kit/checks/frontAsk.ts"
import { VirtualTime } from "../../kit/data/virtualTime.ts"
import type { FakeScheduler } from "../../kit/processes/fakeScheduler.ts"
import { layerNode } from "../../src/host/http/readBody.ts"
import { ConfigSource } from "../../src/ports/ConfigSource.ts"
import { Database } from "../../src/ports/Database.ts"
import { type Answer, Front, Serving } from "../../src/ports/Front.ts"
import { IngestTimes } from "../../src/ports/IngestTimes.ts"
import { Release } from "../../src/ports/Release.ts"
import { SavedState } from "../../src/ports/SavedState.ts"
import { Turn } from "../../src/ports/Turn.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import { registrationHeader } from "../../src/protocol/wire.ts"
import { SspConfig } from "../../src/ssp/Config.ts"
import * as JobPorts from "../../src/ssp/jobs/jobPorts.ts"
import { Lease } from "../../src/ssp/membership/Lease.ts"
import { Lifecycle } from "../../src/ssp/membership/Lifecycle.ts"
import * as Ssp from "../../src/ssp/Ssp.ts"
import { Views } from "../../src/ssp/views/Views.ts"

const scheduled = {
  SCHEDULER_URL: "http://scheduler:9667",
  ADVERTISE_ADDR: "ssp-1:8667",
  SVC_AUTH_SECRET: "s3cret",
  SSP_ID: "me"
}

export interface Line {
  readonly level: string
  readonly message: string
}

/** All layers of the node but its server. */
export const sspLayer = (
  scheduler: FakeScheduler,
  env: { readonly [name: string]: string },
  lines: Array<Line>,
  file: object = {}
) =>
  Ssp.layer.pipe(
    Layer.provide([
      layerNode,
      Release.layerOf("1.2.3"),
      scheduler.layer,
      Database.layerMemory,
      SavedState.layerMemory,
      Turn.layerYield,
      JobPorts.layerNone,
      Upstream.layerNone
    ]),
    Layer.provideMerge(SspConfig.layerEnv),
    Layer.provide(
      ConfigSource.layerMemory({
        env: { ...scheduled, ...env },
        file: { path: "svc.yml", fault: undefined, content: file }
      })
    ),
    Layer.provideMerge(
      Logger.replace(
        Logger.defaultLogger,
        Logger.make(({ logLevel, message }) => void lines.push({ level: logLevel.label, message: String(message) }))
      )
    ),
    Layer.provideMerge(Logger.minimumLogLevel(LogLevel.Info))
  )

/**
 * Runs a body in virtual time; `pass` lets time go on. Pauses between attempts are drawn from a seed: of random ones
 * some are over at once, and a test then misses the state before the next attempt.
 */
export const inTime = <A>(
  body: (pass: (ms: number) => Effect.Effect<void>) => Effect.Effect<A, unknown, Scope.Scope>
): Effect.Effect<A, unknown, Scope.Scope> =>
  Effect.suspend(() => {
    const time = new VirtualTime()
    return body((ms) => time.pass(ms)).pipe(Effect.withClock(time.clock), Effect.withRandom(Random.make("pauses")))
  })

export const startSsp = (
  pass: (ms: number) => Effect.Effect<void>,
  scheduler: FakeScheduler,
  env: { readonly [name: string]: string } = {},
  file?: object
) =>
  Effect.gen(function* () {
    const lines: Array<Line> = []
    const context = yield* Layer.build(Layer.fresh(sspLayer(scheduler, env, lines, file)))
    const serving = Context.get(context, Serving)
    yield* serving.listening(8667)
    yield* pass(0)
    const lifecycle = Context.get(context, Lifecycle)
    return {
      lifecycle,
      phase: lifecycle.phase,
      views: Context.get(context, Views),
      lease: Context.get(context, Lease),
      post: (url: string, body: unknown, registration?: string, token = "s3cret") => {
        const headers = { authorization: `Bearer ${token}`, [registrationHeader]: registration }
        return Effect.promise(() =>
          askFront(Context.get(context, Front), { method: "POST", url, headers, body: JSON.stringify(body) })
        )
      },
      times: Context.get(context, IngestTimes),
      serving,
      lines,
      loud: (level: string) => lines.filter((line) => line.level === level).map((line) => line.message)
    }
  }) as Effect.Effect<
    {
      readonly lifecycle: Lifecycle["Type"]
      readonly phase: Lifecycle["Type"]["phase"]
      readonly views: Views["Type"]
      readonly lease: Lease["Type"]
      readonly post: (url: string, body: unknown, registration?: string, token?: string) => Effect.Effect<Answer>
      readonly times: IngestTimes["Type"]
      readonly serving: Serving["Type"]
      readonly lines: ReadonlyArray<Line>
      readonly loud: (level: string) => ReadonlyArray<string>
    },
    unknown,
    Scope.Scope
  >
