/**
 * The pool in a world that loses, delays and repeats messages, kills SSPs and the scheduler, and then heals.
 *
 * Because single cases show what somebody thought of: safety is checked after every decision of every seed, and at the
 * end everything must be where it belongs. `SVC_SEED=<n>` replays one world, `SVC_RUNS` multiplies their number.
 */
import { expect, it } from "vitest"
import * as Random from "../../../kit/data/random.ts"
import { always, healed } from "./checks.ts"
import { tickMs, World } from "./world.ts"

const troubleMs = 12_000
/** A model SSP that takes one event at a time must also have replayed what it was slower than before. */
const healMs = 30_000

/** What a client was last told of each view; undefined where it does not know. */
type Wanted = Map<string, boolean | undefined>

const client = (world: World, wanted: Wanted, key: string): void => {
  const { rng } = world
  if (world.now > 1000 + troubleMs) return
  const before = wanted.get(key)
  const again = (outcome: boolean | undefined): void => {
    wanted.set(key, outcome)
    world.after(200 + rng.below(1500), () => client(world, wanted, key))
  }
  wanted.set(key, undefined)
  if (rng.chance(0.3)) {
    return world.ask(
      (ref) => ({ tag: "UnregisterView", ref, view: key }),
      (reply) => again(reply?.kind === "ok" || reply?.kind === "unknownView" ? false : undefined)
    )
  }
  const short = key.startsWith("short")
  const body = rng.chance(0.1) ? "bad" : "SELECT"
  const spec = { body, ttlMs: short ? 2000 : 10_000_000, lastActiveAt: world.now }
  world.ask(
    (ref) => ({ tag: "RegisterView", ref, view: key, spec }),
    (reply) =>
      again(reply?.kind === "assigned" ? (short ? undefined : true) : reply?.kind === "refused" ? before : undefined)
  )
}

const feed = (world: World, pace: number): void => {
  if (world.now > 1000 + troubleMs + 5000) return
  world.append(1 + world.rng.below(world.rng.chance(0.02) ? 70 : 3))
  if (world.rng.chance(0.1)) world.decide({ tag: "JobArrived", job: `job${world.head}`, table: "job", ref: undefined })
  if (world.rng.chance(0.08)) world.decide({ tag: "JobDone", job: `job${world.rng.below(world.head)}` })
  world.after(world.rng.below(pace), () => feed(world, pace))
}

const trouble = (world: World): void => {
  const { rng } = world
  if (world.now > 1000 + troubleMs) return
  const victim = rng.pick(world.ssps)
  const fault = rng.below(8)
  if (fault <= 1) victim.die()
  if (fault === 2) world.crash()
  if (fault === 3) victim.forget(1 + rng.below(10))
  if (fault === 4) victim.hangs = true
  if (fault === 5) world.decide({ tag: "CheckpointDue" })
  if (fault === 6) world.start(victim.id, victim.batch)
  if (fault === 7 && rng.chance(0.5))
    world.ask(
      (ref) => ({ tag: "Deregister", ref, from: { ssp: victim.id, incarnation: victim.incarnation } }),
      () => {}
    )
  world.count(`fault ${fault}`)
  if (!victim.alive && rng.chance(0.8))
    world.after(
      rng.below(2500),
      () => world.ssps.some((ssp) => ssp.id === victim.id && ssp.alive) || world.start(victim.id, victim.batch)
    )
  world.after(rng.below(1500), () => trouble(world))
}

const heal = (world: World): void => {
  Object.assign(world, { loss: 0, twice: 0, death: 0 })
  for (const ssp of world.ssps) {
    ssp.hangs = false
    if (ssp.alive && ssp.state === "bootstrapping") ssp.enroll()
  }
  for (const id of new Set(world.ssps.map((ssp) => ssp.id))) {
    const living = world.ssps.filter((ssp) => ssp.id === id && ssp.alive)
    if (living.length === 0) world.start(id, true)
  }
}

export const simulate = (seed: number): World => {
  const rng = Random.rng(seed)
  const world = new World(rng)
  const wanted: Wanted = new Map()
  world.check = () => always(world)
  Object.assign(world, { loss: rng.pick([0, 0.02, 0.15]), twice: rng.pick([0, 0.1]), death: rng.pick([0, 0.002]) })
  const tick = (): void => {
    world.decide({ tag: "Tick" })
    world.after(tickMs, tick)
  }
  tick()
  for (let i = 0; i < 2 + rng.below(3); i++) world.after(rng.below(2000), () => world.start(`ssp${i}`, rng.chance(0.7)))
  for (let i = 0; i < 6 + rng.below(10); i++)
    world.after(rng.below(4000), () => client(world, wanted, `${rng.chance(0.2) ? "short" : "view"}${i}`))
  world.after(100, () => feed(world, rng.pick([60, 200, 600])))
  world.after(2500, () => trouble(world))
  try {
    world.run(1000 + troubleMs)
    heal(world)
    world.run(1000 + troubleMs + healMs)
    healed(world, new Map([...wanted].filter((entry): entry is [string, boolean] => entry[1] !== undefined)))
  } catch (error) {
    throw new Error(
      `seed ${seed} at ${world.now}: ${error instanceof Error ? error.message : String(error)}\nreplay: SVC_SEED=${seed} npx vitest run test/core/cluster/simulation.test.ts\n${world.trace
        .slice(-25)
        .map(({ at, what }) => `${at} ${JSON.stringify(what)}`)
        .join("\n")}`,
      { cause: error }
    )
  }
  return world
}

it("D26 D31 a cluster under loss, delay, repetition and death keeps its promises and heals", () => {
  const replay = process.env["SVC_SEED"] !== undefined
  const total: Record<string, number> = {}
  const count = replay ? 1 : Random.rounds(40)
  for (let i = 0; i < count; i++)
    for (const [what, n] of Object.entries(simulate(Random.seed + i).counts)) total[what] = (total[what] ?? 0) + n
  if (process.env["SVC_SHOW"] !== undefined) process.stdout.write(`${JSON.stringify(total)}\n`)
  if (replay) return
  for (const what of [
    "crash",
    "gap",
    "conflict",
    "fenced",
    "overloaded",
    "refused",
    "noSsp",
    "unknownView",
    "assigned",
    "ViewCalled",
    "Trimmed",
    "JobCalled",
    "ActivityFound",
    "refusal",
    "removed by refusal"
  ]) {
    expect(total[what] ?? 0, `the worlds were too quiet: ${what}`).toBeGreaterThan(count / 10)
  }
})
