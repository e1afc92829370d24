/**
 * The views and streams of a soak: registered, replaced, refreshed, unregistered and expiring, opened and closed, all
 * the while.
 *
 * So many views at any time, each of its kind, so that a node that grows grows by what it should have let go. A node
 * that is just being restarted is asked again until it answers: what is registered must be known exactly for the
 * compare at the end.
 */
import { isDeepStrictEqual } from "node:util"
import { EventStream } from "../../kit/checks/EventStream.ts"
import { type Answer, request } from "../../kit/checks/http.ts"
import type { Mirror } from "../../kit/checks/Mirror.ts"
import { freshRun } from "../../kit/checks/oracle.ts"
import type { Rng } from "../../kit/data/random.ts"
import { registration } from "../../kit/data/registration.ts"
import { secret, sleep } from "../../kit/processes/Door.ts"
import { kinds, type Query, query } from "./queries.ts"

export const standing = kinds.length * 3
const mostStreams = 12
/** Expiring views live so long from their registration. */
const briefTtl = "3s"
const patienceMs = 180_000

/** Asks until the answer is one of `statuses`; a node that is down, starting or just losing the view is asked again. */
export const insist = async (
  ask: () => Promise<Answer>,
  statuses: ReadonlyArray<number>,
  stopped: () => boolean
): Promise<Answer | undefined> => {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const answer = await ask().catch((error: unknown) => String(error))
    if (typeof answer !== "string" && statuses.includes(answer.status)) return answer
    if (stopped()) return undefined
    const again = typeof answer === "string" || answer.status === 502 || answer.status === 503
    if (!again || performance.now() > deadline)
      throw new Error(
        `answered ${typeof answer === "string" ? answer : `${answer.status} ${answer.text.slice(0, 500)}`}`
      )
    await sleep(100)
  }
}

const first = (left: unknown, right: unknown): string => {
  if (!Array.isArray(left) || !Array.isArray(right)) return `${JSON.stringify(left)} for ${JSON.stringify(right)}`
  const at = left.findIndex((row, i) => !isDeepStrictEqual(row, right[i]))
  const row = at === -1 ? left.length : at
  return `${left.length} rows for ${right.length}; row ${row} is ${JSON.stringify(left[row])?.slice(0, 300)}, should be ${JSON.stringify(right[row])?.slice(0, 300)}`
}

export class Views {
  readonly #url: string
  readonly #rng: Rng
  readonly #streamRng: Rng
  readonly #stopped: () => boolean
  readonly #held = new Map<string, Query>()
  #streams: Array<EventStream> = []
  #briefs = 0
  readonly done = {
    registered: 0,
    replaced: 0,
    refreshed: 0,
    unregistered: 0,
    expiring: 0,
    opened: 0,
    closed: 0,
    events: 0
  }

  constructor(url: string, rng: Rng, streamRng: Rng, stopped: () => boolean) {
    this.#url = url
    this.#rng = rng
    this.#streamRng = streamRng
    this.#stopped = stopped
  }

  get openStreams(): number {
    return this.#streams.filter(({ ended }) => !ended).length
  }

  async fill(): Promise<void> {
    for (let n = 0; n < standing; n++) await this.#register(`soak:${n}`, query(kinds[n % kinds.length]!, this.#rng))
  }

  /** One thing that happens to a view. */
  async act(): Promise<void> {
    const n = this.#rng.below(standing)
    const id = `soak:${n}`
    const roll = this.#rng.next()
    const kind = kinds[n % kinds.length]!
    if (roll < 0.45) {
      await this.#register(id, query(kind, this.#rng))
      this.done.replaced++
    } else if (roll < 0.6) {
      await this.#register(id, this.#held.get(id) ?? query(kind, this.#rng))
      this.done.refreshed++
    } else if (roll < 0.8) {
      await this.#post("/view/unregister", { id }, [200, 404])
      this.#held.delete(id)
      this.done.unregistered++
      await this.#register(id, query(kind, this.#rng))
    } else {
      const { params, surql } = query(kind, this.#rng)
      await this.#post(
        "/view/register",
        registration(`brief:${this.#briefs++}`, surql, { params, ttl: briefTtl }),
        [200]
      )
      this.done.expiring++
    }
  }

  /** Opens a stream or closes one. */
  async stir(): Promise<void> {
    const close = this.#streams.length >= mostStreams || (this.#streams.length > 0 && this.#streamRng.chance(0.45))
    if (close) return this.#close(this.#streams.splice(this.#streamRng.below(this.#streams.length), 1)[0]!)
    const path = `/view/${encodeURIComponent(`soak:${this.#streamRng.below(standing)}`)}/stream`
    // A view may be on its way from one SSP to another, or between unregistered and registered.
    const stream = await EventStream.open(this.#url, path, secret).catch(() => undefined)
    if (stream === undefined) return
    this.#streams.push(stream)
    this.done.opened++
  }

  closeStreams(): void {
    for (const stream of this.#streams.splice(0)) this.#close(stream)
  }

  /** Each view beside a fresh run over the mirror; the differences. */
  async compare(mirror: Mirror): Promise<ReadonlyArray<string>> {
    const wrong: Array<string> = []
    for (const [id, { grouped, params, surql }] of this.#held) {
      const fresh = freshRun(surql, params, mirror, "all")
      const tree = await this.#rows(id, "tree")
      if (!isDeepStrictEqual(tree, fresh.rows))
        wrong.push(`${id} is not a fresh run of ${surql} with ${JSON.stringify(params)}: ${first(tree, fresh.rows)}`)
      const keys = grouped
        ? []
        : ((await this.#rows(id, "flat")) as ReadonlyArray<readonly [string, number]>).map(([key]) => key)
      if (!grouped && !surql.includes("SPLIT") && !isDeepStrictEqual(keys, fresh.keys))
        wrong.push(`${id} lists other records than a fresh run of ${surql}: ${first(keys, fresh.keys)}`)
    }
    return wrong
  }

  #close(stream: EventStream): void {
    this.done.events += stream.events.length
    this.done.closed++
    stream.close()
  }

  async #rows(id: string, format: string): Promise<unknown> {
    const answer = await insist(
      () => request(this.#url, { path: `/view/${encodeURIComponent(id)}?format=${format}`, token: secret }),
      [200],
      this.#stopped
    )
    return (answer?.json as { readonly result_data?: unknown } | undefined)?.result_data
  }

  async #register(id: string, { grouped, params, surql }: Query): Promise<void> {
    const format = this.#rng.pick(["flat", "tree"])
    await this.#post("/view/register", registration(id, surql, { params, format, ttl: "1d" }), [200])
    this.#held.set(id, { grouped, params, surql })
    this.done.registered++
  }

  #post(path: string, body: unknown, statuses: ReadonlyArray<number>): Promise<Answer | undefined> {
    return insist(() => request(this.#url, { method: "POST", path, token: secret, body }), statuses, this.#stopped)
  }
}
